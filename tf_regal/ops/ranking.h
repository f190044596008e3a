// Priorities as ranks, and ready queues of ranks.
#ifndef TF_REGAL_OPS_RANKING_H_
#define TF_REGAL_OPS_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tf_regal {

// Larger floats get smaller keys, so that rising keys are falling priorities. −0 and +0 are equal.
inline uint32_t DescendingKey(float value) {
  uint32_t bits;
  value += 0.0f;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

// A set of ranks 0 … n − 1 with constant-time insertion and removal of the smallest: three levels of 64-bit words, the
// topmost searched from its start (one word up to 262,144 ranks).
class RankSet {
 public:
  void Reset(int n) {
    const size_t leaves = (static_cast<size_t>(n) >> 6) + 1, middle = (leaves >> 6) + 1, top = (middle >> 6) + 1;
    leaves_.assign(leaves, 0);
    middle_.assign(middle, 0);
    top_.assign(top, 0);
    count_ = 0;
  }
  bool empty() const { return count_ == 0; }

  void Insert(int rank) {
    ++count_;
    leaves_[rank >> 6] |= Bit(rank);
    middle_[rank >> 12] |= Bit(rank >> 6);
    top_[rank >> 18] |= Bit(rank >> 12);
  }

  int PopFirst() {  // the set may not be empty
    --count_;
    int i = 0;
    while (top_[i] == 0) ++i;
    i = i << 6 | __builtin_ctzll(top_[i]);
    i = i << 6 | __builtin_ctzll(middle_[i]);
    const int rank = i << 6 | __builtin_ctzll(leaves_[i]);
    const uint64_t leaf = leaves_[i] &= leaves_[i] - 1;
    const uint64_t middle = middle_[i >> 6] &= ~(uint64_t{leaf == 0} << (i & 63));
    top_[i >> 12] &= ~(uint64_t{middle == 0} << (i >> 6 & 63));
    return rank;
  }

 private:
  static uint64_t Bit(int i) { return uint64_t{1} << (i & 63); }

  std::vector<uint64_t> leaves_, middle_, top_;
  int count_ = 0;
};

// Sorts by descending priority, ties to the lower index. `a` and `b` are scratch space of n words each. The result's low halves are
// the indices, or id[index] where `id` is not null: it lies in `a` or in `b`, whichever is returned.
const uint64_t* SortByPriority(const float* priority, const int32_t* id, int n, uint64_t* a, uint64_t* b);

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_RANKING_H_

#include "ranking.h"

#include <utility>

namespace tf_regal {
namespace {

// Radix sort of the high halves, kBits a pass. Few ops do not pay for the histograms of wide digits.
template <int kBits, int kPasses>
const uint64_t* RadixSort(int n, uint64_t* from, uint64_t* to) {
  constexpr int kBuckets = 1 << kBits;
  uint32_t counts[kPasses][kBuckets] = {};
  for (int i = 0; i < n; ++i) {
    const uint32_t key = static_cast<uint32_t>(from[i] >> 32);
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][key >> (pass * kBits) & (kBuckets - 1)];
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    const int shift = 32 + pass * kBits;
    uint32_t* count = counts[pass];
    if (n > 0 && count[(from[0] >> shift) & (kBuckets - 1)] == static_cast<uint32_t>(n)) continue;  // all in one bucket
    uint32_t sum = 0;
    for (int b = 0; b < kBuckets; ++b) sum += std::exchange(count[b], sum);
    for (int i = 0; i < n; ++i) to[count[(from[i] >> shift) & (kBuckets - 1)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

}  // namespace

const uint64_t* SortByPriority(const float* priority, const int32_t* id, int n, uint64_t* a, uint64_t* b) {
  for (int i = 0; i < n; ++i) a[i] = uint64_t{DescendingKey(priority[i])} << 32 | static_cast<uint32_t>(id ? id[i] : i);
  return n < 1500 ? RadixSort<8, 4>(n, a, b) : RadixSort<11, 3>(n, a, b);
}

}  // namespace tf_regal

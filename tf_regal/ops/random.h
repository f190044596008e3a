// Random streams that can start anywhere, so that results do not depend on which thread draws first.
#ifndef TF_REGAL_OPS_RANDOM_H_
#define TF_REGAL_OPS_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace tf_regal {

// SplitMix64 (Steele, Lea and Flood 2014): small, fast, and any (seed, generation, index) starts an independent stream.
class Random {
 public:
  Random(uint64_t seed, uint64_t generation, uint64_t index)
      : state_(Mix(seed + 0x9e3779b97f4a7c15u) ^ Mix(generation * 0xd1342543de82ef95u + index + 1)) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    return Mix(state_);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>((static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(n)) >> 64); }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // in [0, 1)
  void Uniform(float* keys, size_t n) {                                  // in [0, 1)
    for (size_t i = 0; i < n; i += 2) {
      const uint64_t bits = Next();
      keys[i] = static_cast<float>(bits >> 40) * 0x1p-24f;
      if (i + 1 < n) keys[i + 1] = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
    }
  }

 private:
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_RANDOM_H_

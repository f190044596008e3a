// What a search improves.
#ifndef TF_REGAL_OPS_OBJECTIVE_H_
#define TF_REGAL_OPS_OBJECTIVE_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "simulator.h"

namespace tf_regal {

enum class Objective { kRuntime, kPeakMemory };

constexpr int kMaxThreads = 1024;        // limits of options, so that a slip of the pen takes neither all memory nor for ever
constexpr int kMaxPopulation = 1 << 20;  // individuals, chains, or steps that a chain remembers

// Smaller is better, compared from left to right: bytes above capacity, ns above the makespan limit, the objective, and
// the other objective as tie-break.
using Fitness = std::array<int64_t, 4>;

// makespan_limit: ns; for kPeakMemory.
inline Fitness MakeFitness(const Evaluation& e, Objective objective, int64_t makespan_limit) {
  const int64_t peak = *std::max_element(e.peak.begin(), e.peak.end());
  if (objective == Objective::kRuntime) return {e.excess, 0, e.makespan, peak};
  return {e.excess, std::max<int64_t>(0, e.makespan - makespan_limit), peak, e.makespan};
}

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_OBJECTIVE_H_

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

// Schedules with the same peak differ in how many moments have to change before it falls: what one moment at which memory grew to `bytes` adds to the
// memory near the peak, which begins at `floor`. In units of 256 bytes, and never so large that a sum over moments overflows.
inline int64_t NearPeak(int64_t peak) { return peak - peak / 16; }
inline int64_t MassAbove(int64_t bytes, int64_t floor) { return std::clamp<int64_t>((bytes - floor) >> 8, 0, int64_t{1} << 40); }

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_OBJECTIVE_H_

// What a change of a schedule would do, at about an eighth of a simulation's cost: a single pass over the ops in the order of the schedule that is
// changed, with no queues of events. The local search simulates only the most promising of several changes (docs/search.md has what that gains).
// On one device with one lane it is exact. Else the order stays what it was, except that one gap of each device or link is
// filled, and memory is counted as if an op's copies were made, and its inputs freed, before the next op of the order starts.
#ifndef TF_REGAL_OPS_ESTIMATOR_H_
#define TF_REGAL_OPS_ESTIMATOR_H_

#include <cstdint>
#include <vector>

#include "objective.h"
#include "problem.h"

namespace tf_regal {

class Estimator {
 public:
  // The problem must outlive this object.
  Estimator(const Problem* problem, Objective objective, int64_t makespan_limit);

  // What Estimate looks at, and from where on memory counts as near the peak, for changes of a schedule with these figures.
  void Expect(const Evaluation& current);

  // Of the ops in `order`, which must be topological, with `hold` as of Candidate. Fitness: as of MakeFitness; for kPeakMemory the last figure
  // is what MassNearPeak counts. To be compared with other estimates since the last Expect only. Gives up where it is worse than `bound`.
  Fitness Estimate(const std::vector<int32_t>& order, const std::vector<int32_t>& device, int32_t hold, const Fitness& bound);

 private:
  struct Buffer {
    int64_t bytes;
    int32_t at;    // the residence that holds the buffer's uses and bytes
    int32_t uses;
  };

  // What a device or a link is busy with, and its last gap: where one waits, a later one that is ready goes first.
  struct Line {
    int64_t free = 0, gap_begin = 0, gap_end = 0;
    int64_t Take(int64_t ready, int64_t duration) {
      const int64_t start = ready > gap_begin ? ready : gap_begin;
      if (start < gap_end && start + duration <= gap_end) return gap_begin = start + duration;
      if (ready > free) {
        gap_begin = free;
        gap_end = free = ready;
      }
      return free += duration;
    }
  };

  template <bool kTime, bool kMemory>
  Fitness Run(const int32_t* order, const int32_t* device, int32_t hold, const Fitness& bound);
  int64_t PlaceOutputs(int op, int device);  // bytes of new buffers
  Line& LaneOf(int device);

  const Problem& p_;
  const Objective objective_;
  const int64_t makespan_limit_;
  bool time_ = true, memory_counts_ = true;
  int64_t floor_ = 0;
  std::vector<uint8_t> plain_;         // [n_tensors] no view, nothing to reuse, not persistent: always a buffer of its own
  std::vector<int32_t> persistent_;    // ops with persistent memory
  std::vector<int64_t> tail_;          // [n_ops] ns from the op's end to the end of all, at least
  std::vector<int64_t> arrival_;       // [n_tensors * n_devices] ns; negative: −1 − the end of the producer, and not sent yet
  std::vector<Buffer> buffers_;        // [n_tensors * n_devices + 1]; the last one stands for all persistent buffers
  std::vector<int64_t> end_;           // [n_ops] ns
  std::vector<int64_t> memory_, peak_; // [n_devices]
  std::vector<Line> lanes_;            // of all devices
  std::vector<int32_t> first_lane_;    // [n_devices + 1]
  std::vector<int64_t> unfreed_;       // as lanes_: bytes that the ops that still run will free
  std::vector<int32_t> oldest_;        // [n_devices] which of these is next
  std::vector<Line> links_;            // [n_devices * n_devices]
  std::vector<int32_t> consumers_;     // [n_devices] of one tensor
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_ESTIMATOR_H_

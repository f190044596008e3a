// The simulator: scores one candidate on one Problem, with the semantics of docs/simulator.md.
#ifndef TF_REGAL_OPS_SIMULATOR_H_
#define TF_REGAL_OPS_SIMULATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "problem.h"
#include "ranking.h"

namespace tf_regal {

enum class Discipline { kPriority, kFifo, kLifo };

struct Candidate {
  const int32_t* device;           // [n_ops]
  const float* priority;           // [n_ops]; higher first
  const float* transfer_priority;  // [n_tensors, n_devices], or null: all equal
  Discipline discipline = Discipline::kPriority;
  const int32_t* order = nullptr;    // [n_ops], or null; the ops by falling priority: in place of `priority`, and saves sorting
  bool transfers_by_consumer = false;  // transfers in the priority of their first consumer there, in place of `transfer_priority`
};

struct Transfer {
  int64_t tensor, src, dst, start, end;
};

struct Allocation {
  int64_t time, device, buffer, bytes;  // buffer: tensor * n_devices + device, or n_tensors * n_devices + op for scratch; bytes < 0: freed
};

struct Timeline {
  std::vector<int64_t> start, end;        // [n_ops], ns
  std::vector<int32_t> start_order;       // [n_ops], ops in the order in which they were started
  std::vector<Transfer> transfers;        // in the order in which they were started
  std::vector<std::vector<std::pair<int64_t, int64_t>>> memory;  // per device: (ns, bytes) after each change
  std::vector<Allocation> allocations;    // every change but the persistent memory, in order
};

struct Evaluation {
  int64_t makespan = 0;        // ns
  int64_t transfer_bytes = 0;
  int64_t excess = 0;          // bytes above capacity, summed over devices; 0: feasible
  std::vector<int64_t> peak;   // [n_devices], bytes
};

// What the simulator keeps of a problem for speed: records that fit a cache line each, instead of one array per field.
struct OpRecord {
  int32_t outputs_begin, outputs_end;    // in Problem::outputs.idx
  int32_t inputs_begin, inputs_end;      // in Problem::inputs.idx
  int32_t control_begin, control_end;    // in Problem::control_successors.idx
  int32_t n_predecessors;
  bool has_scratch;
};
struct TensorRecord {
  int32_t consumers_begin, consumers_end;  // in Problem::consumers.idx
  int64_t size;
  bool plain;   // no view, nothing to reuse, not persistent: always a buffer of its own
  bool output;  // lives to the end
};

// Scratch space of one evaluation; one per thread, reused so that an evaluation allocates nothing.
struct Workspace {
  struct OpState {
    int32_t pending;  // predecessors that are missing
    int32_t rank;
    int32_t device;
  };
  struct Residence {
    int32_t buffer;  // residence whose record holds the buffer's uses and bytes; −1: persistent
    int32_t uses;    // of the buffer; before a transfer to this residence: its consumers here
    int64_t bytes;   // of the buffer; before a transfer to this residence: the best rank of its consumers here
  };
  struct Ending {  // an op that runs, or a signal under way
    int64_t time;
    int32_t id, device;
    bool operator>(const Ending& other) const { return time > other.time; }
  };

  std::vector<OpState> ops;                             // [n_ops]
  std::vector<int32_t> op_at_rank;                      // [n_ops]
  std::vector<uint64_t> sort_a, sort_b;                 // [n_ops]
  std::vector<Residence> residences;                    // [n_tensors * n_devices]
  std::vector<RankSet> ready;                           // [n_devices]
  std::vector<int32_t> running;                         // [n_devices] busy lanes
  std::vector<int64_t> memory, peak;                    // [n_devices]
  std::vector<std::vector<uint64_t>> link_queue;        // [n_devices * n_devices] heaps of (priority, tensor)
  std::vector<uint64_t> link_waiting, link_busy;        // [n_devices] by source: masks of destinations
  std::vector<int64_t> link_end;                        // [n_devices * n_devices] end of the transfer on the line
  std::vector<int32_t> link_tensor;                     // [n_devices * n_devices] the tensor on the line
  std::vector<int32_t> blocked_by;                      // [n_devices] queued transfers (blocking transfers only)
  // Next event per device (the first op to end), per source (the first of its transfers to end), and of all signals.
  std::vector<int64_t> next;                            // [2 * n_devices + 1]
  std::vector<int32_t> only;                            // [n_devices] the op that runs, on a device with one lane
  std::vector<std::vector<Ending>> endings;             // [n_devices] heaps of the ops that run, on devices with more lanes
  std::vector<Ending> signals;                          // heap
  std::vector<int32_t> became_ready;                    // ops of one batch (fifo and lifo only)
  int arrivals = 0;                                     // ops that joined a queue so far (fifo and lifo only)
};

template <int kDevices, bool kUsual, bool kTimeline>
class Run;

class Simulator {
 public:
  explicit Simulator(Problem problem);  // throws std::invalid_argument where the problem is not valid

  const Problem& problem() const { return problem_; }

  // Fills `result`, and `timeline` where it is not null. The candidate must be valid (CheckCandidate).
  void Evaluate(const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline = nullptr) const;

  // Throws std::invalid_argument where a device is out of range or not allowed, a group is split, or a priority is NaN.
  void CheckCandidate(const Candidate& candidate) const;

 private:
  template <int kDevices, bool kUsual, bool kTimeline>
  friend class Run;

  Problem problem_;
  std::vector<int32_t> sources_;         // ops without predecessors
  std::vector<OpRecord> ops_;
  std::vector<TensorRecord> tensors_;
  std::vector<int32_t> link_class_;      // [n_devices * n_devices] links with equal latency and bandwidth share a class
  std::vector<int64_t> transfer_time_;   // [classes, n_tensors] ns; empty where there are too many classes
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_SIMULATOR_H_

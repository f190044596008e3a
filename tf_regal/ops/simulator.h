// The simulator: scores one candidate on one Problem, with the semantics of docs/simulator.md.
#ifndef TF_REGAL_OPS_SIMULATOR_H_
#define TF_REGAL_OPS_SIMULATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "paged.h"
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
  // With `order`, which must be topological: the op at place i starts after that at place i − hold has ended, as if an edge joined them. 0: not so.
  int32_t hold = 0;
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

// What the simulator keeps of a problem for speed. A node is an op with its first output; every other output of an op has a
// node of its own, right after it. What an evaluation needs of a node lies in one cache line.
struct Node {
  int64_t size;                // of the output
  int64_t duration[2];         // of the op on devices 0 and 1
  int32_t inputs;              // Simulator::edges_[inputs …]: the nodes of the op's inputs
  int32_t consumers;           // Simulator::edges_[consumers …]: the nodes of the ops that take the output
  int32_t n_inputs, n_consumers;
  int32_t op, tensor;          // which they are in the Problem; tensor −1: the op has no output
  uint16_t flags;
};
constexpr uint16_t kPlain = 1;         // no view, nothing to reuse, not persistent: always a buffer of its own
constexpr uint16_t kOutput = 2;        // lives to the end
constexpr uint16_t kScratch = 4;       // the op has scratch memory
constexpr uint16_t kControl = 8;       // the op has control successors
constexpr uint16_t kSingle = 16;       // the op has exactly one output
static_assert(sizeof(Node) <= 64);

// Scratch space of one evaluation; one per thread, reused so that an evaluation allocates nothing.
struct Workspace {
  struct OpState {
    int32_t pending;  // predecessors that are missing
    int32_t rank;
    int32_t device;
    int32_t unused;
  };
  struct Residence {
    int32_t buffer;  // cell of the residence that holds the buffer's uses and bytes
    int32_t uses;    // of the buffer; before a transfer to this residence: its consumers here
    int64_t bytes;   // of the buffer; before a transfer to this residence: the best rank of its consumers here
  };
  // A node's state: one cell for its op, then one for its output on every device. One cell more stands for all persistent buffers.
  union Cell {
    OpState op;
    Residence residence;
  };
  struct Ending {  // a node whose op runs; or an op whose signal is under way, or ~ of a node that is held back until then
    int64_t time;
    int32_t id, device;
    bool operator>(const Ending& other) const { return time > other.time; }
  };

  PagedVector<Cell> cells;                              // [n_nodes * stride + 1]
  PagedVector<int32_t> node_at_rank;                    // [n_ops]
  PagedVector<uint64_t> sort_a, sort_b;                 // [n_ops]
  std::vector<RankSet> ready;                           // [n_devices]
  std::vector<int32_t> running;                         // [n_devices] busy lanes
  std::vector<int64_t> memory, peak;                    // [n_devices]
  std::vector<std::vector<uint64_t>> link_queue;        // [n_devices * n_devices] heaps of (priority, tensor)
  std::vector<uint64_t> link_waiting, link_busy;        // [n_devices] by source: masks of destinations
  std::vector<int64_t> link_end;                        // [n_devices * n_devices] end of the transfer on the line
  std::vector<int32_t> link_node;                       // [n_devices * n_devices] the node whose output is on the line
  std::vector<int32_t> blocked_by;                      // [n_devices] queued transfers (blocking transfers only)
  // Next event per device (the first op to end), per source (the first of its transfers to end), and of all signals.
  std::vector<int64_t> next;                            // [2 * n_devices + 1]
  std::vector<int32_t> only;                            // [n_devices] the node of the op that runs, on a device with one lane
  std::vector<std::vector<Ending>> endings;             // [n_devices] heaps of the ops that run, on devices with more lanes
  std::vector<Ending> signals;                          // heap
  std::vector<int32_t> became_ready;                    // nodes of one batch (fifo and lifo only)
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

  void BuildNodes();
  int n_nodes() const { return static_cast<int>(nodes_.size()); }

  Problem problem_;
  std::vector<int32_t> sources_;         // nodes of ops without predecessors
  std::vector<int32_t> persistent_;      // ops with persistent memory
  PagedVector<Node> nodes_;
  PagedVector<int32_t> edges_;
  PagedVector<int32_t> node_of_op_, node_of_tensor_;
  std::vector<int32_t> link_class_;      // [n_devices * n_devices] links with equal latency and bandwidth share a class
  PagedVector<int64_t> transfer_time_;   // [classes, n_tensors] ns; empty where there are too many classes
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_SIMULATOR_H_

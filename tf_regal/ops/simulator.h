// The simulator: scores one candidate on one Problem, with the semantics of docs/simulator.md.
#ifndef TF_REGAL_OPS_SIMULATOR_H_
#define TF_REGAL_OPS_SIMULATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "problem.h"

namespace tf_regal {

enum class Discipline { kPriority, kFifo, kLifo };

struct Candidate {
  const int32_t* device;           // [n_ops]
  const float* priority;           // [n_ops]; higher first
  const float* transfer_priority;  // [n_tensors, n_devices], or null: all equal
  Discipline discipline = Discipline::kPriority;
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

// A set of ranks 0 … n − 1 with constant-time insertion and removal of the smallest: a tree of 64-bit words.
class RankSet {
 public:
  void Reset(int n);
  void Insert(int rank);
  int PopFirst();  // the set may not be empty
  bool empty() const { return count_ == 0; }

 private:
  std::vector<uint64_t> words_;   // level after level, the leaves first
  int level_begin_[6] = {};
  int levels_ = 0;
  int count_ = 0;
};

// Scratch space of one evaluation; one per thread, reused so that an evaluation allocates nothing.
struct Workspace {
  struct Event {
    int64_t time;
    uint32_t id;     // op or tensor
    uint8_t kind, src, dst;
    bool operator>(const Event& other) const { return time > other.time; }
  };

  std::vector<int32_t> op_at_rank, rank_of_op;          // [n_ops]
  std::vector<uint64_t> sort_a, sort_b;                 // [n_ops]
  std::vector<int32_t> pending;                         // [n_ops] predecessors that are missing
  std::vector<int32_t> buffer;                          // [n_tensors * n_devices] residence -> buffer, -1 persistent
  std::vector<int32_t> uses;                            // [n_tensors * n_devices] by buffer
  std::vector<int64_t> allocated;                       // [n_tensors * n_devices] by buffer
  std::vector<uint64_t> destinations;                   // [n_tensors] mask of devices to transfer to
  std::vector<RankSet> ready;                           // [n_devices]
  std::vector<int32_t> running;                         // [n_devices] busy lanes
  std::vector<int64_t> memory;                          // [n_devices]
  std::vector<std::vector<uint64_t>> link_queue;        // [n_devices * n_devices] heaps of (priority, tensor)
  std::vector<uint64_t> link_waiting, link_busy;        // [n_devices] by source: masks of destinations
  std::vector<int32_t> blocked_by;                      // [n_devices] queued transfers (blocking transfers only)
  std::vector<Event> events;                            // heap
  std::vector<Event> batch;                             // the events that are handled together
  std::vector<int32_t> became_ready;                    // ops of one batch (fifo and lifo only)
  int arrivals = 0;                                     // ops that joined a queue so far (fifo and lifo only)
};

class Simulator {
 public:
  explicit Simulator(Problem problem) : problem_(std::move(problem)) { problem_.Finish(); }

  const Problem& problem() const { return problem_; }

  // Fills `result`, and `timeline` where it is not null. The candidate must be valid (CheckCandidate).
  void Evaluate(const Candidate& candidate, Workspace* workspace, Evaluation* result, Timeline* timeline = nullptr) const;

  // Throws std::invalid_argument where a device is out of range or not allowed, a group is split, or a priority is NaN.
  void CheckCandidate(const Candidate& candidate) const;

 private:
  Problem problem_;
};

// Ranks by descending priority, ties to the lower index: fills op_at_rank and rank_of_op of the workspace.
void RankByPriority(const float* priority, int n, Workspace* workspace);

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_SIMULATOR_H_

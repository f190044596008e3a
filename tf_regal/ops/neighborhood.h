// Moves of the local search: small changes of a schedule, most of them aimed at what sets its peak or its makespan.
#ifndef TF_REGAL_OPS_NEIGHBORHOOD_H_
#define TF_REGAL_OPS_NEIGHBORHOOD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "objective.h"
#include "random.h"
#include "simulator.h"

namespace tf_regal {

// A candidate of the local search: the ops in the order in which they start, their devices, and how far ahead of the order ops may start.
struct State {
  std::vector<int32_t> order;   // [n_ops]
  std::vector<int32_t> device;  // [n_ops]
  int32_t hold = 0;             // of the Candidate; with one the order is topological
};

// Proposes changes of one schedule. One object per search chain; it learns which of its moves help.
class Neighborhood {
 public:
  enum Move : int {
    kAdvanceConsumers,  // what frees a buffer that is live at the peak runs before the peak
    kDelayProducer,     // a buffer that is live at the peak is made later
    kLightenDevice,     // what holds memory at the peak goes to another device
    kJoinTransfer,      // both ends of a transfer on the critical path come together
    kRelieveDevice,     // an op that the critical path waits for goes to another device
    kAdvanceCritical,   // an op on the critical path, and what it needs, runs earlier
    kMoveCluster,       // connected groups go to another device
    kMoveSegment,       // what starts within a window of time goes to another device
    kSwapClusters,      // two clusters change devices
    kChangeHold,        // ops are held back, more or less far
    kMoveOp,            // an op starts at another time between its inputs and its consumers
    kMoves
  };

  // hold: whether ops may be held back. The simulator must outlive this object.
  Neighborhood(const Simulator* simulator, Objective objective, bool hold);

  // The schedule from which proposals start. Fitness: as of MakeFitness.
  void SetSchedule(const State* state, const Timeline* timeline, const Evaluation* evaluation, const Fitness& fitness);

  // Changes `state`, which must equal the schedule's. Returns the move made, or −1 where this one was not possible (nothing changed).
  int Propose(Random* random, State* state);

  void Reward(int move, bool improved);

  // Larger changes, to get away from where no move helps: some placements, or now and then everything at random.
  void Shake(Random* random, State* state);

 private:
  // A step of the critical path: an op, and what it waited for.
  enum class Cause : uint8_t { kStart, kInput, kTransfer, kDevice };
  struct Step {
    int32_t op;
    Cause cause;
    int32_t other;  // kInput, kTransfer: the producer; kDevice: the op that ran before
  };

  bool Try(Move move, Random* random, State* state);
  void FindPeak();
  void FindCriticalPath();
  const Step* RandomStep(Cause cause, Random* random);
  bool AdvanceConsumers(Random* random, State* state);
  bool DelayProducer(Random* random, State* state);
  bool LightenDevice(Random* random, State* state);
  bool JoinTransfer(Random* random, State* state);
  bool RelieveDevice(Random* random, State* state);
  bool AdvanceCritical(Random* random, State* state);
  bool MoveCluster(Random* random, State* state);
  bool MoveSegment(Random* random, State* state);
  bool SwapClusters(Random* random, State* state);
  bool ChangeHold(Random* random, State* state);
  bool MoveOp(Random* random, State* state);

  bool Relocate(int group, int target, int size, Random* random, State* state);
  int OtherDevice(int group, int device, Random* random) const;  // −1: none
  int ClusterSize(Random* random) const;
  bool CollectAncestors(int op, int from_position, size_t limit);  // into set_: what must run before op, from there on, and op
  void MoveSetTo(int position, State* state);                      // set_ starts together before what is at `position`
  int ProducerHere(int64_t buffer) const;                          // the op that makes the buffer, −1: a copy

  const Simulator& simulator_;
  const Problem& p_;
  const Objective objective_;
  const bool hold_;
  Csr ops_of_group_;

  const State* schedule_ = nullptr;
  const Timeline* timeline_ = nullptr;
  const Evaluation* evaluation_ = nullptr;
  bool seek_memory_ = false, peak_known_ = false, path_known_ = false;
  std::vector<int32_t> position_;  // [n_ops] in the order

  // The peak: device, position in the order, and what is live then.
  struct Live {
    int64_t buffer, bytes;
  };
  int peak_device_ = 0, peak_position_ = 0;
  std::vector<Live> live_;
  std::vector<int64_t> live_sum_;  // running sums of bytes, persistent memory of groups after the buffers
  std::vector<int32_t> persistent_groups_;
  std::vector<int64_t> allocated_;  // by buffer

  std::vector<Step> path_;        // the critical path, from its end
  std::vector<int64_t> arrival_;  // [n_tensors * n_devices]

  std::vector<int32_t> set_, queue_;
  std::vector<uint32_t> mark_, group_mark_;  // == stamp_: in the set
  uint32_t stamp_ = 0;
  std::vector<int32_t> rest_;
  std::array<double, kMoves> tried_, helped_;
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_NEIGHBORHOOD_H_

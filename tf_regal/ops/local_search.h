// Local search over schedules: several chains of late-acceptance hill climbing (Burke and Bykov 2017).
#ifndef TF_REGAL_OPS_LOCAL_SEARCH_H_
#define TF_REGAL_OPS_LOCAL_SEARCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "brkga.h"
#include "estimator.h"
#include "neighborhood.h"
#include "objective.h"
#include "simulator.h"

namespace tf_regal {

struct LocalSearchOptions {
  Objective objective = Objective::kRuntime;
  int64_t makespan_limit = INT64_MAX;  // ns; for kPeakMemory
  int chains = 4;
  int memory = 10;  // a candidate is taken where it is no worse than the current one this many steps ago
  // A candidate is taken, too, where it is worse than the chain's best by less than this share, which falls to 0 at `horizon` evaluations.
  double slack = 0.0;
  int64_t horizon = 5000;
  int proposals = 1;  // changes per step, of which the one with the best estimate is simulated
  bool hold = false;  // whether ops may be held back; for kPeakMemory, and with more than one device
  uint64_t seed = 0;
  int threads = 1;
};

class LocalSearch {
 public:
  // Begins with the best of the starts, each simulated once. Throws std::invalid_argument where an option or a start is not valid.
  LocalSearch(const Simulator* simulator, const LocalSearchOptions& options, const std::vector<Seed>& starts);

  // Goes on until `evaluations` candidates have been simulated since the beginning. The result depends on the seed and the numbers of
  // evaluations asked for only, not on the number of threads.
  void Improve(int64_t evaluations);

  int64_t evaluations() const { return evaluations_; }
  Solution Best() const;

 private:
  struct Trial {
    State state;
    Evaluation evaluation;
    Timeline timeline;
    Fitness fitness;
  };
  struct Chain {
    Chain(const Simulator* simulator, const LocalSearchOptions& options, int index)
        : neighborhood(simulator, options.objective, options.hold),
          estimator(&simulator->problem(), options.objective, options.makespan_limit),
          random(options.seed, 0x10ca1, index) {}
    Neighborhood neighborhood;
    Estimator estimator;
    Random random;
    Workspace workspace;
    Trial current, trial, best;
    State proposal;
    std::vector<Fitness> rejected;  // estimates of changes of the current schedule that were simulated and not taken
    std::vector<Fitness> past;
    int64_t steps = 0, fruitless = 0;  // in all; since the chain's best or its last shake
  };

  void Simulate(const Candidate& candidate, Trial* trial, Workspace* workspace) const;
  void SimulateState(Trial* trial, Workspace* workspace) const;
  bool Near(const Trial& trial, const Trial& best) const;
  void Adopt(Chain* chain, const Trial& from) const;
  int Propose(Chain* chain) const;
  int ProposeBest(Chain* chain) const;
  void Steps(Chain* chain, int64_t count) const;

  const Simulator& simulator_;
  const LocalSearchOptions options_;
  std::vector<std::unique_ptr<Chain>> chains_;
  int64_t evaluations_ = 0;
  int64_t replaced_ = 0;  // chains that went on from the best
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_LOCAL_SEARCH_H_

// BRKGA, the biased random-key genetic algorithm (Gonçalves and Resende 2011), over the simulator.
// The chromosome is REGAL's (arXiv 1905.02494): an affinity per group and device, a priority per op, and a priority per
// tensor and destination. With one device only the priorities are left.
#ifndef TF_REGAL_OPS_BRKGA_H_
#define TF_REGAL_OPS_BRKGA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "objective.h"
#include "random.h"
#include "simulator.h"

namespace tf_regal {

struct BrkgaOptions {
  Objective objective = Objective::kRuntime;
  int64_t makespan_limit = INT64_MAX;  // ns; for kPeakMemory
  int population = 100;
  int elites = 20;
  int mutants = 15;
  double rho = 0.7;  // probability that a key comes from the elite parent
  double proposal_share = 1.0;  // of what is drawn; the rest is uniform
  uint64_t seed = 0;
  int threads = 1;
};

struct Seed {
  std::vector<int32_t> device;           // [n_ops]
  std::vector<float> priority;           // [n_ops]
  std::vector<float> transfer_priority;  // [n_tensors, n_devices], or empty
};

// Where the first population and the mutants are drawn from: a distribution for every affinity and every op's priority; the priorities of
// transfers are uniform. `table` holds the inverse distribution functions, one per row, at `points` equally spaced probabilities from 0
// to 1; between them they are linear. Rows of 0 to 1 in equal steps give exactly what is drawn without a proposal.
struct Proposal {
  std::vector<uint16_t> choice;  // [affinities + n_ops], rows of the table; empty: all uniform
  std::vector<float> table;      // [choices, points]
  int points = 0;
};

// Throws std::invalid_argument where a seed does not fit the problem.
void CheckSeed(const Simulator& simulator, const Seed& seed);

struct Solution {
  std::vector<int32_t> device;
  std::vector<float> priority, transfer_priority;
  Evaluation evaluation;
  int32_t hold = 0;  // of the Candidate, where `priority` is its order
};

class Brkga {
 public:
  // Throws std::invalid_argument where an option, a seed or the proposal is not valid. The simulator must outlive this object.
  Brkga(const Simulator* simulator, const BrkgaOptions& options, std::vector<Seed> seeds, Proposal proposal = {});

  // Goes on until `evaluations` candidates have been simulated since the beginning. The result depends on the seed and
  // the number of evaluations only: not on the number of threads, nor on how a run is cut into calls at whole generations.
  void Evolve(int64_t evaluations);

  int64_t evaluations() const { return evaluations_; }
  // Best and mean value of the objective in the population, per generation.
  const std::vector<std::array<double, 2>>& history() const { return history_; }
  Solution Best() const;  // throws std::logic_error before the first evaluation

 private:
  struct Individual {
    std::vector<float> keys;
    Fitness fitness;
  };
  struct Worker {
    Workspace workspace;
    Evaluation evaluation;
    std::vector<int32_t> device;
  };

  void Encode(const Seed& seed, std::vector<float>* keys) const;
  void Decode(const std::vector<float>& keys, std::vector<int32_t>* device) const;
  Candidate MakeCandidate(const std::vector<float>& keys, const std::vector<int32_t>& device) const;
  void Score(Individual* individual, Worker* worker) const;
  void CheckProposal() const;
  // All keys, from the proposal or uniformly: which of the two, depends on the index in the population.
  void Draw(int index, Random* random, Individual* individual) const;
  void Fill(int index, Individual* individual) const;       // of the first population
  void Breed(int index, Individual* individual) const;
  void Generation(int64_t budget);

  const Simulator& simulator_;
  const BrkgaOptions options_;
  const std::vector<Seed> seeds_;
  const Proposal proposal_;
  size_t n_affinities_ = 0, n_keys_ = 0;
  std::vector<Individual> population_, children_;
  std::vector<Worker> workers_;
  int64_t generation_ = 0, evaluations_ = 0;
  std::vector<std::array<double, 2>> history_;
};

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_BRKGA_H_

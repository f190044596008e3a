#include "brkga.h"

#include <algorithm>
#include <cmath>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace tf_regal {
namespace {

void CheckOptions(const BrkgaOptions& o) {
  auto fail = [](const std::string& message) { throw std::invalid_argument(message); };
  if (o.population < 2 || o.population > kMaxPopulation) {
    fail("population is " + std::to_string(o.population) + "; expected 2 to " + std::to_string(kMaxPopulation));
  }
  if (o.elites < 1 || o.elites >= o.population) {
    fail("elites is " + std::to_string(o.elites) + "; expected 1 to population − 1 = " + std::to_string(o.population - 1));
  }
  if (o.mutants < 0 || o.mutants > o.population - o.elites) {
    fail("mutants is " + std::to_string(o.mutants) + "; expected 0 to population − elites = " +
         std::to_string(o.population - o.elites));
  }
  if (!(o.rho >= 0.5 && o.rho <= 1.0)) fail("rho is " + std::to_string(o.rho) + "; expected 0.5 to 1");
  if (!(o.proposal_share >= 0.0 && o.proposal_share <= 1.0)) fail("proposal_share is " + std::to_string(o.proposal_share) + "; expected 0 to 1");
  if (o.threads < 1 || o.threads > kMaxThreads) {
    fail("threads is " + std::to_string(o.threads) + "; expected 1 to " + std::to_string(kMaxThreads));
  }
  if (o.makespan_limit < 0) fail("makespan_limit is " + std::to_string(o.makespan_limit) + "; it may not be negative");
}

}  // namespace

void CheckSeed(const Simulator& simulator, const Seed& seed) {
  const Problem& p = simulator.problem();
  const size_t n = p.n_ops, residences = static_cast<size_t>(p.n_tensors) * p.n_devices;
  if (seed.device.size() != n || seed.priority.size() != n ||
      (!seed.transfer_priority.empty() && seed.transfer_priority.size() != residences)) {
    throw std::invalid_argument("seeds: the length of device, priority or transfer_priority does not fit the problem");
  }
  simulator.CheckCandidate({seed.device.data(), seed.priority.data(),
                            seed.transfer_priority.empty() ? nullptr : seed.transfer_priority.data()});
}

Brkga::Brkga(const Simulator* simulator, const BrkgaOptions& options, std::vector<Seed> seeds, Proposal proposal)
    : simulator_(*simulator), options_(options), seeds_(std::move(seeds)), proposal_(std::move(proposal)) {
  CheckOptions(options_);
  const Problem& p = simulator_.problem();
  const size_t residences = static_cast<size_t>(p.n_tensors) * p.n_devices;
  for (const Seed& seed : seeds_) CheckSeed(simulator_, seed);
  if (p.n_devices > 1) n_affinities_ = static_cast<size_t>(p.n_groups) * p.n_devices;
  n_keys_ = n_affinities_ + p.n_ops + (p.n_devices > 1 ? residences : 0);
  CheckProposal();
  workers_.resize(options_.threads);
  for (Worker& worker : workers_) worker.device.assign(p.n_ops, 0);
}

void Brkga::CheckProposal() const {
  const std::vector<uint16_t>& choice = proposal_.choice;
  if (choice.empty()) return;
  const size_t wanted = n_affinities_ + simulator_.problem().n_ops;
  if (choice.size() != wanted) {
    throw std::invalid_argument("proposal: choice has " + std::to_string(choice.size()) + " elements; expected " + std::to_string(wanted) +
                                ", one per group and device (none with one device) and one per op");
  }
  if (proposal_.points < 2) throw std::invalid_argument("proposal: the table has " + std::to_string(proposal_.points) + " columns; expected 2 or more");
  const size_t rows = proposal_.table.size() / proposal_.points;
  for (size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] >= rows) {
      throw std::invalid_argument("proposal: choice[" + std::to_string(i) + "] is " + std::to_string(choice[i]) + "; the table has " +
                                  std::to_string(rows) + " rows");
    }
  }
  for (float value : proposal_.table) {
    if (!(value >= 0.0f && value <= 1.0f)) throw std::invalid_argument("proposal: the table has " + std::to_string(value) + "; expected 0 to 1");
  }
}

void Brkga::Draw(int index, Random* random, Individual* individual) const {
  individual->keys.resize(n_keys_);
  float* keys = individual->keys.data();
  random->Uniform(keys, n_keys_);
  const auto proposed = [this](int n) { return static_cast<int64_t>(std::ceil(n * options_.proposal_share)); };  // of the first n
  if (proposed(index + 1) == proposed(index)) return;
  const int last = proposal_.points - 2;
  for (size_t i = 0; i < proposal_.choice.size(); ++i) {
    const float* row = proposal_.table.data() + static_cast<size_t>(proposal_.choice[i]) * proposal_.points;
    const float place = keys[i] * static_cast<float>(last + 1);
    const int below = static_cast<int>(place);  // a uniform key is below 1
    keys[i] = row[below] + (place - static_cast<float>(below)) * (row[below + 1] - row[below]);
  }
}

void Brkga::Encode(const Seed& seed, std::vector<float>* keys) const {
  const Problem& p = simulator_.problem();
  keys->assign(n_keys_, 0.5f);
  if (n_affinities_ > 0) {
    std::fill(keys->begin(), keys->begin() + n_affinities_, 0.25f);
    for (int o = 0; o < p.n_ops; ++o) (*keys)[static_cast<size_t>(p.group[o]) * p.n_devices + seed.device[o]] = 0.75f;
  }
  // Ranks keep the order whatever the range of the seed's priorities is.
  auto spread = [](const float* priority, int n, float* out) {
    std::vector<uint64_t> a(n), b(n);
    const uint64_t* sorted = SortByPriority(priority, nullptr, n, a.data(), b.data());
    for (int rank = 0; rank < n; ++rank) out[sorted[rank] & 0xffffffffu] = 1.0f - (rank + 1.0f) / (n + 1.0f);
  };
  spread(seed.priority.data(), p.n_ops, keys->data() + n_affinities_);
  if (n_affinities_ > 0 && !seed.transfer_priority.empty()) {
    spread(seed.transfer_priority.data(), static_cast<int>(seed.transfer_priority.size()), keys->data() + n_affinities_ + p.n_ops);
  }
}

void Brkga::Decode(const std::vector<float>& keys, std::vector<int32_t>* device) const {
  const Problem& p = simulator_.problem();
  if (p.n_devices == 1) return;  // the worker's devices are all 0 already
  for (int o = 0; o < p.n_ops; ++o) {
    const int g = p.group[o];
    const float* affinity = keys.data() + static_cast<size_t>(g) * p.n_devices;
    int best = -1;
    for (uint64_t rest = p.allowed[g]; rest != 0; rest &= rest - 1) {
      const int q = __builtin_ctzll(rest);
      if (best < 0 || affinity[q] > affinity[best]) best = q;
    }
    (*device)[o] = best;
  }
}

Candidate Brkga::MakeCandidate(const std::vector<float>& keys, const std::vector<int32_t>& device) const {
  const Problem& p = simulator_.problem();
  return {device.data(), keys.data() + n_affinities_, p.n_devices > 1 ? keys.data() + n_affinities_ + p.n_ops : nullptr};
}

void Brkga::Score(Individual* individual, Worker* worker) const {
  Decode(individual->keys, &worker->device);
  simulator_.Evaluate(MakeCandidate(individual->keys, worker->device), &worker->workspace, &worker->evaluation);
  individual->fitness = MakeFitness(worker->evaluation, options_.objective, options_.makespan_limit);
}

void Brkga::Fill(int index, Individual* individual) const {
  if (index < static_cast<int>(seeds_.size())) {
    Encode(seeds_[index], &individual->keys);
    return;
  }
  Random random(options_.seed, 0, index);
  Draw(index, &random, individual);
}

void Brkga::Breed(int index, Individual* individual) const {
  Random random(options_.seed, generation_, index);
  const int n_children = options_.population - options_.elites - options_.mutants;
  if (index >= n_children) {
    Draw(index, &random, individual);
    return;
  }
  individual->keys.resize(n_keys_);
  const float* elite = population_[random.Below(options_.elites)].keys.data();
  const float* other =
      population_[options_.elites + random.Below(static_cast<int>(population_.size()) - options_.elites)].keys.data();
  float* __restrict child = individual->keys.data();
  const uint32_t threshold = static_cast<uint32_t>(options_.rho * 65536.0);
  // 16 bits of randomness decide over a key. Whole blocks are written so that the compiler turns them into vector instructions.
  constexpr size_t kBlock = 16;
  uint64_t bits[kBlock / 4] = {};
  uint16_t draws[kBlock];
  size_t i = 0;
  for (; i < n_keys_; i += kBlock) {
    const size_t count = std::min(kBlock, n_keys_ - i);
    for (size_t j = 0; j < count; j += 4) bits[j / 4] = random.Next();
    std::memcpy(draws, bits, sizeof(bits));
    if (count < kBlock) break;
    for (size_t j = 0; j < kBlock; ++j) child[i + j] = draws[j] < threshold ? elite[i + j] : other[i + j];
  }
  for (size_t j = 0; i + j < n_keys_; ++j) child[i + j] = draws[j] < threshold ? elite[i + j] : other[i + j];
}

void Brkga::Generation(int64_t budget) {
  const bool first = generation_ == 0;
  const int wanted = first ? std::max<int>(options_.population, static_cast<int>(seeds_.size()))
                           : options_.population - options_.elites;
  const int count = static_cast<int>(std::min<int64_t>(wanted, budget));
  children_.resize(count);
  std::atomic<int> next{0};
  auto work = [&](Worker* worker) {
    for (int i; (i = next.fetch_add(1)) < count;) {
      if (first) {
        Fill(i, &children_[i]);
      } else {
        Breed(i, &children_[i]);
      }
      Score(&children_[i], worker);
    }
  };
  const int n_threads = std::min(options_.threads, count);
  std::vector<std::thread> threads;
  for (int t = 1; t < n_threads; ++t) threads.emplace_back(work, &workers_[t]);
  work(&workers_[0]);
  for (std::thread& thread : threads) thread.join();

  // The elites stay, the children replace the others; swapping keeps the memory of those for the next generation.
  const size_t kept = first ? 0 : options_.elites;
  if (population_.size() < kept + count) population_.resize(kept + count);
  for (int i = 0; i < count; ++i) std::swap(population_[kept + i], children_[i]);
  if (!first && count == wanted) population_.resize(options_.population);  // drops what a large first population left over
  std::stable_sort(population_.begin(), population_.end(),
                   [](const Individual& a, const Individual& b) { return a.fitness < b.fitness; });
  evaluations_ += count;
  ++generation_;
  double sum = 0;
  for (const Individual& individual : population_) sum += static_cast<double>(individual.fitness[2]);
  history_.push_back({static_cast<double>(population_[0].fitness[2]), sum / population_.size()});
}

void Brkga::Evolve(int64_t evaluations) {
  while (evaluations_ < evaluations) {
    // A budget below a whole first population leaves nobody to breed with: it just goes on being filled.
    if (generation_ > 0 && static_cast<int>(population_.size()) <= options_.elites) {
      throw std::logic_error("evolve was called again after fewer evaluations than elites");
    }
    Generation(evaluations - evaluations_);
  }
}

Solution Brkga::Best() const {
  if (population_.empty()) throw std::logic_error("best asked for before the first evaluation: call evolve first");
  Worker worker;
  worker.device.assign(simulator_.problem().n_ops, 0);
  const std::vector<float>& keys = population_[0].keys;
  Decode(keys, &worker.device);
  const Candidate candidate = MakeCandidate(keys, worker.device);
  Solution solution;
  simulator_.Evaluate(candidate, &worker.workspace, &solution.evaluation);
  const Problem& p = simulator_.problem();
  solution.priority.assign(candidate.priority, candidate.priority + p.n_ops);
  if (candidate.transfer_priority) {
    solution.transfer_priority.assign(candidate.transfer_priority,
                                      candidate.transfer_priority + static_cast<size_t>(p.n_tensors) * p.n_devices);
  }
  solution.device = std::move(worker.device);
  return solution;
}

}  // namespace tf_regal

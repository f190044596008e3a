#include "local_search.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace tf_regal {
namespace {

constexpr int64_t kRound = 50;      // steps of a chain between two comparisons of the chains
constexpr int64_t kPatience = 300;  // steps without a new best, after which the chain is shaken
constexpr int64_t kReplacements = 10;  // how often within the horizon the worst chain is replaced by the best
constexpr int32_t kHold = 8;         // of the chains that begin with ops held back
constexpr int64_t kUnscreened = 4;     // one step in so many takes the first change, whatever its estimate: the estimator is blind to some gains
constexpr int kFruitless = 20;      // moves that were not possible, one after the other, before a step is given up

void CheckOptions(const LocalSearchOptions& o, size_t starts) {
  auto fail = [](const std::string& message) { throw std::invalid_argument(message); };
  auto within = [&](const char* name, int value, int largest) {
    if (value < 1 || value > largest) fail(std::string(name) + " is " + std::to_string(value) + "; expected 1 to " + std::to_string(largest));
  };
  within("chains", o.chains, kMaxPopulation);
  if (!(o.slack >= 0 && o.slack < 1)) fail("slack is " + std::to_string(o.slack) + "; expected 0 or more and below 1");
  if (o.horizon < 1) fail("horizon is " + std::to_string(o.horizon) + "; expected 1 or more");
  within("proposals", o.proposals, kMaxPopulation);
  within("memory", o.memory, kMaxPopulation);
  within("threads", o.threads, kMaxThreads);
  if (o.makespan_limit < 0) fail("makespan_limit is " + std::to_string(o.makespan_limit) + "; it may not be negative");
  if (starts == 0) fail("starts is empty; expected one or more");
}

// How much memory there is near the peak, summed over the moments when memory grew.
int64_t MassNearPeak(const Timeline& timeline, int64_t peak) {
  const int64_t floor = NearPeak(peak);
  int64_t mass = 0;
  for (const auto& steps : timeline.memory) {
    int64_t before = 0;
    for (const auto& [time, bytes] : steps) {
      if (bytes > before) mass += MassAbove(bytes, floor);
      before = bytes;
    }
  }
  return mass;
}

// The options, with ops held back only where that can help.
LocalSearchOptions WithHold(LocalSearchOptions options, const Simulator& simulator) {
  options.hold = options.hold && options.objective == Objective::kPeakMemory && simulator.problem().n_devices > 1;
  return options;
}

}  // namespace

LocalSearch::LocalSearch(const Simulator* simulator, const LocalSearchOptions& options, const std::vector<Seed>& starts)
    : simulator_(*simulator), options_(WithHold(options, *simulator)) {
  CheckOptions(options_, starts.size());
  std::vector<Trial> found(starts.size());
  Workspace workspace;
  for (size_t i = 0; i < starts.size(); ++i) {
    CheckSeed(simulator_, starts[i]);
    const float* transfers = starts[i].transfer_priority.empty() ? nullptr : starts[i].transfer_priority.data();
    found[i].state.device = starts[i].device;
    Simulate({starts[i].device.data(), starts[i].priority.data(), transfers}, &found[i], &workspace);
  }
  evaluations_ = static_cast<int64_t>(starts.size());
  std::stable_sort(found.begin(), found.end(), [](const Trial& a, const Trial& b) { return a.fitness < b.fitness; });
  for (int i = 0; i < options_.chains; ++i) {
    chains_.push_back(std::make_unique<Chain>(simulator, options_, i));
    Adopt(chains_.back().get(), found[i % found.size()]);
    chains_.back()->best = chains_.back()->current;
    // Where memory counts and there is time, it can pay that a device waits: what every second chain tries first. (Its current figures are
    // those without; that costs no evaluation, and they are only compared with.)
    if (options_.hold && i % 2 == 1) chains_.back()->current.state.hold = kHold;
  }
}

// Afterwards the trial's order is that of the starts; where ops are held back it stays as it is, since they are held back by their places in it.
void LocalSearch::Simulate(const Candidate& candidate, Trial* trial, Workspace* workspace) const {
  simulator_.Evaluate(candidate, workspace, &trial->evaluation, &trial->timeline);
  const bool whole = static_cast<int>(trial->timeline.start_order.size()) == simulator_.problem().n_ops;
  if (trial->state.hold == 0) trial->state.order = trial->timeline.start_order;
  trial->fitness = MakeFitness(trial->evaluation, options_.objective, options_.makespan_limit);
  if (!whole) {
    trial->fitness.fill(INT64_MAX);  // the order was not topological: ops wait for one another
  } else if (options_.objective == Objective::kPeakMemory) {
    trial->fitness[3] = MassNearPeak(trial->timeline, trial->fitness[2]);
  }
}

void LocalSearch::SimulateState(Trial* trial, Workspace* workspace) const {
  Candidate candidate{trial->state.device.data(), nullptr, nullptr};
  candidate.order = trial->state.order.data();
  candidate.hold = trial->state.hold;
  candidate.transfers_by_consumer = true;
  Simulate(candidate, trial, workspace);
}

void LocalSearch::Adopt(Chain* chain, const Trial& from) const {
  chain->current = from;
  chain->rejected.clear();
  chain->past.assign(options_.memory, from.fitness);
  chain->neighborhood.SetSchedule(&chain->current.state, &chain->current.timeline, &chain->current.evaluation, chain->current.fitness);
}

// Whether a trial is worse than the best by less than the slack: in what decides between them, as a share of the memory or time used.
bool LocalSearch::Near(const Trial& trial, const Trial& best) const {
  const double slack = options_.slack * std::max(0.0, 1.0 - static_cast<double>(evaluations_) / static_cast<double>(options_.horizon));
  const int level = best.fitness[0] > 0 ? 0 : best.fitness[1] > 0 ? 1 : 2;
  for (int i = 0; i < level; ++i) {
    if (trial.fitness[i] > best.fitness[i]) return false;
  }
  const std::array<int64_t, 3> scale{*std::max_element(best.evaluation.peak.begin(), best.evaluation.peak.end()), best.evaluation.makespan, best.fitness[2]};
  return static_cast<double>(trial.fitness[level] - best.fitness[level]) < slack * static_cast<double>(scale[level]);
}

// A change of the current schedule in the chain's proposal; −1 where none was possible.
int LocalSearch::Propose(Chain* chain) const {
  chain->proposal = chain->current.state;
  int move = -1;
  for (int i = 0; i < kFruitless && move < 0; ++i) move = chain->neighborhood.Propose(&chain->random, &chain->proposal);
  return move;
}

// The same, of several changes the one with the best estimate. One whose estimate was that of a change that has been refused is most likely that change:
// without this the same mistake of the estimator would be simulated over and over.
int LocalSearch::ProposeBest(Chain* chain) const {
  chain->estimator.Expect(chain->current.evaluation);
  Fitness best;
  best.fill(INT64_MAX);
  int move = -1;
  for (int i = 0; i < options_.proposals; ++i) {
    const int proposed = Propose(chain);
    if (proposed < 0) continue;
    const State& state = chain->proposal;
    Fitness estimate = chain->estimator.Estimate(state.order, state.device, state.hold, best);
    if (std::find(chain->rejected.begin(), chain->rejected.end(), estimate) != chain->rejected.end()) estimate.fill(INT64_MAX - 1);
    if (estimate >= best) continue;
    best = estimate;
    move = proposed;
    std::swap(chain->proposal, chain->trial.state);
  }
  if (move < 0) return Propose(chain);
  std::swap(chain->proposal, chain->trial.state);
  chain->rejected.push_back(best);
  return move;
}

void LocalSearch::Steps(Chain* chain, int64_t count) const {
  for (; count > 0; --count) {
    Trial& current = chain->current;
    Trial& trial = chain->trial;
    const bool shake = ++chain->fruitless > kPatience;
    int move = -1;
    if (shake) {
      chain->fruitless = 0;
      chain->proposal = chain->best.state;
      chain->neighborhood.SetSchedule(&chain->best.state, &chain->best.timeline, &chain->best.evaluation, chain->best.fitness);
      chain->neighborhood.Shake(&chain->random, &chain->proposal);
    } else if (options_.proposals > 1 && chain->random.Below(kUnscreened) > 0) {
      move = ProposeBest(chain);
    } else {
      move = Propose(chain);
    }
    std::swap(trial.state, chain->proposal);
    SimulateState(&trial, &chain->workspace);
    if (move >= 0) chain->neighborhood.Reward(move, trial.fitness < current.fitness);
    const Fitness& past = chain->past[chain->steps % options_.memory];
    if (shake || trial.fitness <= current.fitness || trial.fitness <= past || Near(trial, chain->best)) {
      std::swap(current, trial);
      chain->rejected.clear();
      if (current.fitness < chain->best.fitness) {
        chain->best = current;
        chain->fruitless = 0;
      }
      if (shake) std::fill(chain->past.begin(), chain->past.end(), current.fitness);
      chain->neighborhood.SetSchedule(&current.state, &current.timeline, &current.evaluation, current.fitness);
    }
    chain->past[chain->steps++ % options_.memory] = current.fitness;
  }
}

void LocalSearch::Improve(int64_t evaluations) {
  if (simulator_.problem().n_ops == 0) evaluations_ = std::max(evaluations_, evaluations);  // there is nothing to change
  const int64_t chains = static_cast<int64_t>(chains_.size());
  while (evaluations_ < evaluations) {
    // The last round is shared out as evenly as it goes.
    const int64_t left = std::min(evaluations - evaluations_, chains * kRound);
    std::atomic<int> next{0};
    auto work = [&] {
      for (int i; (i = next.fetch_add(1)) < chains;) Steps(chains_[i].get(), left / chains + (i < left % chains ? 1 : 0));
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < std::min<int64_t>(options_.threads, chains); ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    evaluations_ += left;
    // Not too often: with the same ancestor the chains would all look in the same place.
    if (evaluations_ * kReplacements < options_.horizon * (replaced_ + 1)) continue;
    ++replaced_;
    // The chain that is behind goes on from the best that was found.
    auto better = [](const auto& a, const auto& b) { return a->best.fitness < b->best.fitness; };
    const auto& best = *std::min_element(chains_.begin(), chains_.end(), better);
    auto& worst = *std::max_element(chains_.begin(), chains_.end(), better);
    if (worst->best.fitness > best->best.fitness) {
      Adopt(worst.get(), best->best);
      worst->best = best->best;
    }
  }
}

Solution LocalSearch::Best() const {
  const Trial& best = (*std::min_element(chains_.begin(), chains_.end(), [](const auto& a, const auto& b) {
                        return a->best.fitness < b->best.fitness;
                      }))->best;
  const Problem& p = simulator_.problem();
  Solution solution{best.state.device, std::vector<float>(p.n_ops), {}, best.evaluation, best.state.hold};
  // Ranks of the starts repeat the schedule.
  for (int i = 0; i < p.n_ops; ++i) solution.priority[best.state.order[i]] = static_cast<float>(p.n_ops - i);
  if (p.n_devices > 1) {
    solution.transfer_priority.assign(static_cast<size_t>(p.n_tensors) * p.n_devices, 0.0f);
    float rank = static_cast<float>(best.timeline.transfers.size());
    for (const Transfer& x : best.timeline.transfers) solution.transfer_priority[x.tensor * p.n_devices + x.dst] = rank--;
  }
  return solution;
}

}  // namespace tf_regal

#include "neighborhood.h"

#include <algorithm>
#include <cmath>

namespace tf_regal {
namespace {

constexpr size_t kMaxAncestors = 256;   // more than this is no small change
constexpr double kForget = 0.995;       // of a move's record, each time it is tried
constexpr double kLeastShare = 0.1;     // of the chance of the best move, for every move
constexpr int kHoldLeast = 2, kHoldMost = 64;

}  // namespace

Neighborhood::Neighborhood(const Simulator* simulator, Objective objective, bool hold)
    : simulator_(*simulator), p_(simulator->problem()), objective_(objective), hold_(hold) {
  Csr group_of_op;
  for (int o = 0; o < p_.n_ops; ++o) {
    group_of_op.idx.push_back(p_.group[o]);
    group_of_op.ptr.push_back(o + 1);
  }
  ops_of_group_ = Transpose(group_of_op, p_.n_groups);
  position_.resize(p_.n_ops);
  mark_.assign(p_.n_ops, 0);
  group_mark_.assign(p_.n_groups, 0);
  tried_.fill(4.0);
  helped_.fill(2.0);
}

void Neighborhood::SetSchedule(const State* state, const Timeline* timeline, const Evaluation* evaluation, const Fitness& fitness) {
  schedule_ = state;
  timeline_ = timeline;
  evaluation_ = evaluation;
  // Memory first where it does not fit, time where it is over the limit, else the objective.
  seek_memory_ = fitness[0] > 0 || (fitness[1] == 0 && objective_ == Objective::kPeakMemory);
  peak_known_ = path_known_ = false;
  for (int i = 0; i < p_.n_ops; ++i) position_[state->order[i]] = i;
}

int Neighborhood::Propose(Random* random, State* state) {
  static constexpr Move kMemory[] = {kAdvanceConsumers, kDelayProducer, kMoveOp, kLightenDevice, kMoveCluster, kMoveSegment, kSwapClusters, kChangeHold};
  static constexpr Move kTime[] = {kAdvanceCritical, kMoveOp, kJoinTransfer, kRelieveDevice, kMoveCluster, kMoveSegment, kSwapClusters};
  const Move* moves = seek_memory_ ? kMemory : kTime;
  const int first_placement = seek_memory_ ? 3 : 2;
  const int all = seek_memory_ && hold_ ? 8 : 7;
  const int count = p_.n_devices > 1 ? all : first_placement;
  double rate[kMoves], best = 0, sum = 0;
  for (int i = 0; i < count; ++i) best = std::max(best, rate[i] = helped_[moves[i]] / tried_[moves[i]]);
  for (int i = 0; i < count; ++i) sum += rate[i] = std::max(rate[i], kLeastShare * best);
  double at = random->Unit() * sum;
  int chosen = 0;
  while (chosen + 1 < count && (at -= rate[chosen]) >= 0) ++chosen;
  return Try(moves[chosen], random, state) ? moves[chosen] : -1;
}

void Neighborhood::Shake(Random* random, State* state) {
  if (random->Below(4) == 0) {
    state->hold = 0;  // this order is not topological
    for (int i = p_.n_ops - 1; i > 0; --i) std::swap(state->order[i], state->order[random->Below(i + 1)]);
    for (int g = 0; g < p_.n_groups; ++g) {
      const int target = OtherDevice(g, state->device[ops_of_group_.begin(g)[0]], random);
      if (target < 0 || random->Below(p_.n_devices) == 0) continue;
      for (const int32_t* o = ops_of_group_.begin(g); o != ops_of_group_.end(g); ++o) state->device[*o] = target;
    }
    return;
  }
  MoveOp(random, state);  // only one change of the order: each starts from the schedule's
  if (p_.n_devices == 1) return;
  for (int64_t count = 1 + random->Below(4); count > 0; --count) random->Below(2) == 0 ? MoveCluster(random, state) : SwapClusters(random, state);
}

void Neighborhood::Reward(int move, bool improved) {
  tried_[move] = kForget * tried_[move] + 1;
  helped_[move] = kForget * helped_[move] + (improved ? 1 : 0);
}

bool Neighborhood::Try(Move move, Random* random, State* state) {
  switch (move) {
    case kAdvanceConsumers: return AdvanceConsumers(random, state);
    case kDelayProducer: return DelayProducer(random, state);
    case kLightenDevice: return LightenDevice(random, state);
    case kJoinTransfer: return JoinTransfer(random, state);
    case kRelieveDevice: return RelieveDevice(random, state);
    case kAdvanceCritical: return AdvanceCritical(random, state);
    case kMoveCluster: return MoveCluster(random, state);
    case kMoveSegment: return MoveSegment(random, state);
    case kSwapClusters: return SwapClusters(random, state);
    case kChangeHold: return ChangeHold(random, state);
    default: return MoveOp(random, state);
  }
}

int Neighborhood::ProducerHere(int64_t buffer) const {
  const int64_t residences = static_cast<int64_t>(p_.n_tensors) * p_.n_devices;
  if (buffer >= residences) return static_cast<int>(buffer - residences);  // scratch
  const int op = p_.producer[buffer / p_.n_devices];
  return schedule_->device[op] == buffer % p_.n_devices ? op : -1;
}

void Neighborhood::FindPeak() {
  if (peak_known_) return;
  peak_known_ = true;
  const auto excess = [&](int q) { return evaluation_->peak[q] - p_.capacity[q]; };
  peak_device_ = 0;
  for (int q = 1; q < p_.n_devices; ++q) {
    const bool worse = evaluation_->excess > 0 ? excess(q) > excess(peak_device_) : evaluation_->peak[q] > evaluation_->peak[peak_device_];
    if (worse) peak_device_ = q;
  }
  const auto& allocations = timeline_->allocations;
  int64_t memory = timeline_->memory[peak_device_][0].second;
  size_t last = 0;  // allocations up to here make the peak
  if (memory < evaluation_->peak[peak_device_]) {
    for (size_t i = 0; i < allocations.size(); ++i) {
      if (allocations[i].device != peak_device_) continue;
      memory += allocations[i].bytes;
      if (memory == evaluation_->peak[peak_device_]) {
        last = i + 1;
        break;
      }
    }
  }
  live_.clear();
  allocated_.assign(static_cast<size_t>(p_.n_tensors) * p_.n_devices + p_.n_ops, 0);
  for (size_t i = 0; i < last; ++i) {
    if (allocations[i].device == peak_device_) allocated_[allocations[i].buffer] += allocations[i].bytes;
  }
  for (size_t i = 0; i < last; ++i) {
    const int64_t buffer = allocations[i].buffer;
    if (allocations[i].device != peak_device_ || allocated_[buffer] <= 0) continue;
    live_.push_back({buffer, allocated_[buffer]});
    allocated_[buffer] = 0;
  }
  const int64_t time = last > 0 ? allocations[last - 1].time : 0;
  const int maker = last > 0 ? ProducerHere(allocations[last - 1].buffer) : -1;
  if (maker >= 0) {
    peak_position_ = position_[maker];
  } else {
    const auto later = [&](int op, int64_t t) { return timeline_->start[op] < t; };
    peak_position_ = static_cast<int>(std::lower_bound(schedule_->order.begin(), schedule_->order.end(), time, later) - schedule_->order.begin());
    peak_position_ = std::min(peak_position_, p_.n_ops - 1);
  }
  live_sum_.clear();
  int64_t sum = 0;
  for (const Live& x : live_) live_sum_.push_back(sum += x.bytes);
  persistent_groups_.clear();
  if (p_.n_devices == 1) return;
  for (int o = 0; o < p_.n_ops; ++o) {
    if (p_.persistent[o] == 0 || schedule_->device[o] != peak_device_) continue;
    persistent_groups_.push_back(p_.group[o]);
    live_sum_.push_back(sum += p_.persistent[o]);
  }
}

void Neighborhood::FindCriticalPath() {
  if (path_known_) return;
  path_known_ = true;
  path_.clear();
  const int n = p_.n_ops, d = p_.n_devices;
  arrival_.assign(static_cast<size_t>(p_.n_tensors) * d, -1);
  for (const Transfer& x : timeline_->transfers) arrival_[x.tensor * d + x.dst] = x.end;
  // Per device the ops by their end; positions of the order break ties.
  std::vector<std::vector<std::pair<int64_t, int32_t>>> ends(d);
  int op = -1;
  for (int o : schedule_->order) {
    ends[schedule_->device[o]].emplace_back(timeline_->end[o], o);
    if (op < 0 || timeline_->end[o] > timeline_->end[op]) op = o;
  }
  for (auto& list : ends) std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  while (op >= 0 && static_cast<int>(path_.size()) <= n) {
    const int64_t start = timeline_->start[op];
    const int q = schedule_->device[op];
    Step step{op, Cause::kStart, -1};
    for (const int32_t* t = p_.inputs.begin(op); t != p_.inputs.end(op); ++t) {
      const int source = p_.producer[*t];
      if (schedule_->device[source] == q) {
        if (timeline_->end[source] == start) step = {op, Cause::kInput, source};
      } else if (arrival_[static_cast<size_t>(*t) * d + q] == start) {
        step = {op, Cause::kTransfer, source};
        break;
      }
    }
    if (step.cause == Cause::kStart) {
      for (const int32_t* c = p_.control.begin(op); c != p_.control.end(op); ++c) {
        const int64_t wait = schedule_->device[*c] == q ? 0 : p_.latency[static_cast<size_t>(schedule_->device[*c]) * d + q];
        if (timeline_->end[*c] + wait == start) step = {op, Cause::kInput, *c};
      }
    }
    if (step.cause == Cause::kStart) {
      auto at = std::upper_bound(ends[q].begin(), ends[q].end(), start, [](int64_t t, const auto& x) { return t < x.first; });
      while (at != ends[q].begin() && (--at)->first == start) {
        if (at->second != op && position_[at->second] < position_[op]) {
          step = {op, Cause::kDevice, at->second};
          break;
        }
      }
    }
    path_.push_back(step);
    op = step.other;
  }
}

int Neighborhood::OtherDevice(int group, int device, Random* random) const {
  const uint64_t others = p_.allowed[group] & ~(uint64_t{1} << device);
  if (others == 0) return -1;
  int skip = static_cast<int>(random->Below(__builtin_popcountll(others)));
  uint64_t rest = others;
  while (skip-- > 0) rest &= rest - 1;
  return __builtin_ctzll(rest);
}

// One group often: small ops beside a long chain are worth moving one by one. Else up to a quarter of all, every order of magnitude as likely.
int Neighborhood::ClusterSize(Random* random) const {
  if (random->Below(3) == 0) return 1;
  return static_cast<int>(std::exp(random->Unit() * std::log(std::max(1.0, p_.n_groups / 4.0))));
}

// The group and others around it on its device that may go with it, `size` in all, go to the device.
bool Neighborhood::Relocate(int group, int target, int size, Random* random, State* state) {
  const int from = state->device[ops_of_group_.begin(group)[0]];
  if (target < 0 || target == from || !(p_.allowed[group] >> target & 1)) return false;
  ++stamp_;
  queue_.assign(1, group);
  group_mark_[group] = stamp_;
  const auto visit = [&](int op) {
    const int g = p_.group[op];
    if (group_mark_[g] == stamp_ || state->device[op] != from || !(p_.allowed[g] >> target & 1)) return;
    group_mark_[g] = stamp_;
    queue_.push_back(g);
  };
  for (size_t done = 0; done < queue_.size() && done < static_cast<size_t>(size); ++done) {
    std::swap(queue_[done], queue_[done + random->Below(static_cast<int64_t>(queue_.size() - done))]);
    const int g = queue_[done];
    for (const int32_t* o = ops_of_group_.begin(g); o != ops_of_group_.end(g); ++o) {
      for (const int32_t* t = p_.inputs.begin(*o); t != p_.inputs.end(*o); ++t) visit(p_.producer[*t]);
      for (const int32_t* t = p_.outputs.begin(*o); t != p_.outputs.end(*o); ++t) std::for_each(p_.consumers.begin(*t), p_.consumers.end(*t), visit);
      state->device[*o] = target;
    }
  }
  return true;
}

bool Neighborhood::CollectAncestors(int op, int from_position, size_t limit) {
  ++stamp_;
  set_.assign(1, op);
  mark_[op] = stamp_;
  const auto visit = [&](int source) {
    if (mark_[source] == stamp_ || position_[source] < from_position) return;
    mark_[source] = stamp_;
    set_.push_back(source);
  };
  for (size_t i = 0; i < set_.size() && set_.size() <= limit; ++i) {
    for (const int32_t* t = p_.inputs.begin(set_[i]); t != p_.inputs.end(set_[i]); ++t) visit(p_.producer[*t]);
    std::for_each(p_.control.begin(set_[i]), p_.control.end(set_[i]), visit);
  }
  return set_.size() <= limit;
}

void Neighborhood::MoveSetTo(int position, State* state) {
  std::sort(set_.begin(), set_.end(), [&](int a, int b) { return position_[a] < position_[b]; });
  // Only what lies between the first that moves and the place where it goes changes.
  const int first = std::min(position, position_[set_.front()]), last = std::max(position, position_[set_.back()] + 1);
  rest_.clear();
  for (int i = first; i < position; ++i) {
    if (mark_[schedule_->order[i]] != stamp_) rest_.push_back(schedule_->order[i]);
  }
  rest_.insert(rest_.end(), set_.begin(), set_.end());
  for (int i = std::max(first, position); i < last; ++i) {
    if (mark_[schedule_->order[i]] != stamp_) rest_.push_back(schedule_->order[i]);
  }
  std::copy(rest_.begin(), rest_.end(), state->order.begin() + first);
}

bool Neighborhood::AdvanceConsumers(Random* random, State* state) {
  FindPeak();
  if (live_.empty()) return false;
  const int64_t at = random->Below(live_sum_[live_.size() - 1]);
  const Live& x = live_[std::upper_bound(live_sum_.begin(), live_sum_.begin() + live_.size(), at) - live_sum_.begin()];
  if (x.buffer >= static_cast<int64_t>(p_.n_tensors) * p_.n_devices) return false;
  const int t = static_cast<int>(x.buffer / p_.n_devices);
  // One of the consumers that have not run, the earlier the likelier: two are drawn.
  int chosen = -1, seen = 0;
  for (const int32_t* c = p_.consumers.begin(t); c != p_.consumers.end(t); ++c) {
    if (position_[*c] > peak_position_ && random->Below(++seen) == 0) chosen = *c;
  }
  if (chosen < 0) return false;
  // Before the peak, at any distance: a random place back to the producer, most often right before the peak.
  int target = peak_position_;
  const int producer_position = position_[p_.producer[t]];
  if (producer_position < peak_position_ && random->Below(2) == 0) {
    target = producer_position + 1 + static_cast<int>(random->Below(peak_position_ - producer_position));
  }
  if (!CollectAncestors(chosen, target, kMaxAncestors)) return false;
  MoveSetTo(target, state);
  return true;
}

bool Neighborhood::DelayProducer(Random* random, State* state) {
  FindPeak();
  if (live_.empty()) return false;
  const int64_t at = random->Below(live_sum_[live_.size() - 1]);
  const Live& x = live_[std::upper_bound(live_sum_.begin(), live_sum_.begin() + live_.size(), at) - live_sum_.begin()];
  const int op = ProducerHere(x.buffer);
  if (op < 0) return false;
  // The op, and with luck what only it needs, starts later: at most before its first consumer.
  ++stamp_;
  set_.assign(1, op);
  mark_[op] = stamp_;
  const size_t size = 1 + random->Below(8) * random->Below(4);
  for (size_t i = 0; i < set_.size() && set_.size() < size; ++i) {
    for (const int32_t* t = p_.inputs.begin(set_[i]); t != p_.inputs.end(set_[i]); ++t) {
      const int source = p_.producer[*t];
      if (mark_[source] == stamp_ || position_[source] + 2 * static_cast<int>(size) * 8 < position_[op]) continue;
      const bool only = std::all_of(p_.consumers.begin(*t), p_.consumers.end(*t), [&](int c) { return mark_[c] == stamp_; });
      if (only && p_.outputs.size(source) == 1) mark_[source] = stamp_, set_.push_back(source);
    }
  }
  int limit = p_.n_ops;
  for (int o : set_) {
    const auto visit = [&](int c) {
      if (mark_[c] != stamp_) limit = std::min(limit, position_[c]);
    };
    for (const int32_t* t = p_.outputs.begin(o); t != p_.outputs.end(o); ++t) std::for_each(p_.consumers.begin(*t), p_.consumers.end(*t), visit);
    std::for_each(p_.control_successors.begin(o), p_.control_successors.end(o), visit);
  }
  const int first = std::max(peak_position_, position_[op]) + 1;
  if (limit <= first) return false;
  const int target = random->Below(2) == 0 ? limit : first + static_cast<int>(random->Below(limit - first));
  MoveSetTo(target, state);
  return true;
}

bool Neighborhood::LightenDevice(Random* random, State* state) {
  FindPeak();
  if (live_sum_.empty() || live_sum_.back() <= 0) return false;
  const int64_t at = random->Below(live_sum_.back());
  const size_t i = std::upper_bound(live_sum_.begin(), live_sum_.end(), at) - live_sum_.begin();
  int group = -1;
  if (i >= live_.size()) {
    group = persistent_groups_[i - live_.size()];
  } else {
    const int op = ProducerHere(live_[i].buffer);
    if (op >= 0) {
      group = p_.group[op];
    } else {  // a copy: one of those that wanted it here
      const int t = static_cast<int>(live_[i].buffer / p_.n_devices);
      int seen = 0;
      for (const int32_t* c = p_.consumers.begin(t); c != p_.consumers.end(t); ++c) {
        if (schedule_->device[*c] == peak_device_ && random->Below(++seen) == 0) group = p_.group[*c];
      }
    }
  }
  if (group < 0) return false;
  return Relocate(group, OtherDevice(group, peak_device_, random), ClusterSize(random), random, state);
}

// The first step of that cause from a random place of the critical path on, or null.
const Neighborhood::Step* Neighborhood::RandomStep(Cause cause, Random* random) {
  FindCriticalPath();
  if (path_.empty()) return nullptr;
  const size_t begin = random->Below(static_cast<int64_t>(path_.size()));
  for (size_t k = 0; k < path_.size(); ++k) {
    const Step& step = path_[(begin + k) % path_.size()];
    if (step.cause == cause) return &step;
  }
  return nullptr;
}

bool Neighborhood::JoinTransfer(Random* random, State* state) {
  const Step* step = RandomStep(Cause::kTransfer, random);
  if (step == nullptr) return false;
  const bool forward = random->Below(2) == 0;
  const int op = forward ? step->other : step->op, to = forward ? step->op : step->other;
  return Relocate(p_.group[op], schedule_->device[to], ClusterSize(random), random, state);
}

bool Neighborhood::RelieveDevice(Random* random, State* state) {
  // Most often what waits for its device, and of the two the one that is in the way: on most of a long chain there is nothing to relieve.
  const Step* step = random->Below(4) > 0 ? RandomStep(Cause::kDevice, random) : nullptr;
  if (step == nullptr) {
    FindCriticalPath();
    if (path_.empty()) return false;
    step = &path_[random->Below(static_cast<int64_t>(path_.size()))];
  }
  const int op = step->cause == Cause::kDevice && random->Below(4) > 0 ? step->other : step->op;
  return Relocate(p_.group[op], OtherDevice(p_.group[op], schedule_->device[op], random), ClusterSize(random), random, state);
}

bool Neighborhood::AdvanceCritical(Random* random, State* state) {
  const Step* step = RandomStep(Cause::kDevice, random);
  if (step == nullptr) return false;
  // Before the op that it waits for, or before one further back.
  const int before = position_[step->other];
  const int back = static_cast<int>(random->Below(2) == 0 ? 0 : random->Below(1 + std::min(before, 50)));
  if (!CollectAncestors(step->op, before - back, kMaxAncestors)) return false;
  MoveSetTo(before - back, state);
  return true;
}

bool Neighborhood::MoveCluster(Random* random, State* state) {
  const int group = static_cast<int>(random->Below(p_.n_groups));
  const int from = state->device[ops_of_group_.begin(group)[0]];
  return Relocate(group, OtherDevice(group, from, random), ClusterSize(random), random, state);
}

bool Neighborhood::MoveSegment(Random* random, State* state) {
  const int length = 1 + static_cast<int>(std::exp(random->Unit() * std::log(std::max(1.0, p_.n_ops / 3.0))));
  const int begin = static_cast<int>(random->Below(p_.n_ops));
  const int target = static_cast<int>(random->Below(p_.n_devices));
  bool changed = false;
  for (int i = begin; i < std::min(begin + length, p_.n_ops); ++i) {
    const int op = schedule_->order[i], group = p_.group[op];
    if (state->device[op] == target || !(p_.allowed[group] >> target & 1)) continue;
    for (const int32_t* o = ops_of_group_.begin(group); o != ops_of_group_.end(group); ++o) state->device[*o] = target;
    changed = true;
  }
  return changed;
}

bool Neighborhood::SwapClusters(Random* random, State* state) {
  const int size = ClusterSize(random);
  const int a = static_cast<int>(random->Below(p_.n_groups)), b = static_cast<int>(random->Below(p_.n_groups));
  const int on_a = state->device[ops_of_group_.begin(a)[0]], on_b = state->device[ops_of_group_.begin(b)[0]];
  if (on_a == on_b || !(p_.allowed[a] >> on_b & 1) || !(p_.allowed[b] >> on_a & 1)) return false;
  Relocate(a, on_b, size, random, state);
  if (state->device[ops_of_group_.begin(b)[0]] == on_b) Relocate(b, on_a, size, random, state);
  return true;
}

bool Neighborhood::ChangeHold(Random* random, State* state) {
  if (state->hold == 0) {
    state->hold = kHoldLeast << random->Below(6);
  } else if (random->Below(4) == 0) {
    state->hold = 0;
  } else {
    state->hold = random->Below(2) == 0 ? state->hold * 2 : state->hold / 2;
    if (state->hold < kHoldLeast || state->hold > kHoldMost) state->hold = 0;
  }
  return true;
}

bool Neighborhood::MoveOp(Random* random, State* state) {
  const int op = static_cast<int>(random->Below(p_.n_ops));
  int first = 0, last = p_.n_ops;
  const auto after = [&](int source) { first = std::max(first, position_[source] + 1); };
  const auto before = [&](int successor) { last = std::min(last, position_[successor]); };
  for (const int32_t* t = p_.inputs.begin(op); t != p_.inputs.end(op); ++t) after(p_.producer[*t]);
  std::for_each(p_.control.begin(op), p_.control.end(op), after);
  for (const int32_t* t = p_.outputs.begin(op); t != p_.outputs.end(op); ++t) std::for_each(p_.consumers.begin(*t), p_.consumers.end(*t), before);
  std::for_each(p_.control_successors.begin(op), p_.control_successors.end(op), before);
  const int target = first + static_cast<int>(random->Below(std::max(1, last - first + 1)));
  if (target > p_.n_ops || target == position_[op] || target == position_[op] + 1) return false;
  ++stamp_;
  set_.assign(1, op);
  mark_[op] = stamp_;
  MoveSetTo(target, state);
  return true;
}

}  // namespace tf_regal

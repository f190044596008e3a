#include "estimator.h"

#include <algorithm>

namespace tf_regal {
namespace {

// Time or memory further than this from where it would matter is not looked at.
constexpr double kFar = 0.8;

}  // namespace

Estimator::Estimator(const Problem* problem, Objective objective, int64_t makespan_limit)
    : p_(*problem), objective_(objective), makespan_limit_(makespan_limit) {
  const size_t d = p_.n_devices, residences = d * p_.n_tensors;
  plain_.resize(p_.n_tensors);
  for (int t = 0; t < p_.n_tensors; ++t) plain_[t] = p_.lifetime[t] != kLifetimePersistent && p_.view[t] < 0 && p_.reuse.size(t) == 0;
  for (int o = 0; o < p_.n_ops; ++o) {
    if (p_.persistent[o] != 0) persistent_.push_back(o);
  }
  arrival_.resize(residences);
  buffers_.resize(residences + 1);
  end_.resize(p_.n_ops);
  first_lane_.assign(1, 0);
  for (int lanes : p_.lanes) first_lane_.push_back(first_lane_.back() + std::min(lanes, std::max(1, p_.n_ops)));  // more can't be busy
  lanes_.resize(first_lane_.back());
  unfreed_.resize(first_lane_.back());
  oldest_.resize(d);
  tail_.assign(p_.n_ops, 0);
  for (auto o = p_.topological_order.rbegin(); o != p_.topological_order.rend(); ++o) {
    const auto visit = [&](int successor) { tail_[*o] = std::max(tail_[*o], p_.ShortestDuration(successor) + tail_[successor]); };
    for (const int32_t* t = p_.outputs.begin(*o); t != p_.outputs.end(*o); ++t) std::for_each(p_.consumers.begin(*t), p_.consumers.end(*t), visit);
    std::for_each(p_.control_successors.begin(*o), p_.control_successors.end(*o), visit);
  }
  memory_.resize(d);
  peak_.resize(d);
  links_.resize(d * d);
  consumers_.resize(d);
}

void Estimator::Expect(const Evaluation& current) {
  floor_ = NearPeak(*std::max_element(current.peak.begin(), current.peak.end()));
  time_ = objective_ == Objective::kRuntime || static_cast<double>(current.makespan) > kFar * static_cast<double>(makespan_limit_);
  memory_counts_ = objective_ == Objective::kPeakMemory;
  for (int q = 0; q < p_.n_devices; ++q) {
    memory_counts_ |= static_cast<double>(current.peak[q]) > kFar * static_cast<double>(p_.capacity[q]);
  }
}

Fitness Estimator::Estimate(const std::vector<int32_t>& order, const std::vector<int32_t>& device, int32_t hold, const Fitness& bound) {
  if (!memory_counts_) return Run<true, false>(order.data(), device.data(), hold, bound);
  return time_ ? Run<true, true>(order.data(), device.data(), hold, bound) : Run<false, true>(order.data(), device.data(), hold, bound);
}

int64_t Estimator::PlaceOutputs(int op, int device) {
  const int d = p_.n_devices;
  const int32_t persistent = static_cast<int32_t>(buffers_.size() - 1);
  int64_t bytes = 0;
  for (const int32_t* t = p_.outputs.begin(op); t != p_.outputs.end(op); ++t) {
    const int32_t at = *t * d + device;
    Buffer& x = buffers_[at];
    x.at = at;
    if (!plain_[*t]) {
      if (p_.lifetime[*t] == kLifetimePersistent) {
        x.at = persistent;
        continue;
      }
      if (p_.view[*t] >= 0) {
        x.at = buffers_[p_.view[*t] * d + device].at;
      } else {
        for (const int32_t* r = p_.reuse.begin(*t); r != p_.reuse.end(*t); ++r) {
          const int32_t source = buffers_[*r * d + device].at;
          if (source == persistent || buffers_[source].uses != 1 || buffers_[source].bytes != p_.size[*t]) continue;
          x.at = source;
          break;
        }
      }
      if (x.at != at) {
        ++buffers_[x.at].uses;
        continue;
      }
    }
    x.uses = 1;
    x.bytes = p_.size[*t];
    bytes += x.bytes;
  }
  return bytes;
}

// The lane that is free first.
Estimator::Line& Estimator::LaneOf(int device) {
  int best = first_lane_[device];
  for (int i = best + 1; i < first_lane_[device + 1]; ++i) {
    if (lanes_[i].free < lanes_[best].free) best = i;
  }
  return lanes_[best];
}

template <bool kTime, bool kMemory>
Fitness Estimator::Run(const int32_t* order, const int32_t* device, int32_t hold, const Fitness& bound) {
  const int d = p_.n_devices, n = p_.n_ops;
  const int64_t most_time = kTime && objective_ == Objective::kRuntime && bound[0] == 0 ? bound[2] : INT64_MAX;
  const int64_t most_memory = kMemory && objective_ == Objective::kPeakMemory && bound[0] == 0 && bound[1] == 0 ? bound[2] : INT64_MAX;
  std::fill(memory_.begin(), memory_.end(), 0);
  std::fill(unfreed_.begin(), unfreed_.end(), 0);
  std::copy(first_lane_.begin(), first_lane_.end() - 1, oldest_.begin());
  std::fill(lanes_.begin(), lanes_.end(), Line());
  std::fill(links_.begin(), links_.end(), Line());
  if (kMemory) {
    for (int o : persistent_) memory_[device[o]] += p_.persistent[o];
    buffers_.back() = {0, static_cast<int32_t>(buffers_.size() - 1), 0};
  }
  std::copy(memory_.begin(), memory_.end(), peak_.begin());
  int64_t makespan = 0, mass = 0, peak = *std::max_element(peak_.begin(), peak_.end());
  const auto grown = [&](int q, int64_t memory) {
    peak_[q] = std::max(peak_[q], memory);
    peak = std::max(peak, memory);
    mass += MassAbove(memory, floor_);
  };
  const auto signal = [&](int from, int q) { return end_[from] + (device[from] == q ? 0 : p_.latency[device[from] * d + q]); };
  for (int i = 0; i < n; ++i) {
    const int o = order[i], q = device[o];
    int64_t end = 0;
    if (kTime) {
      int64_t ready = 0;
      for (const int32_t* t = p_.inputs.begin(o); t != p_.inputs.end(o); ++t) {
        int64_t& arrival = arrival_[*t * d + q];
        if (arrival < 0) arrival = links_[device[p_.producer[*t]] * d + q].Take(-1 - arrival, p_.TransferTime(*t, device[p_.producer[*t]], q));
        ready = std::max(ready, arrival);
      }
      for (const int32_t* c = p_.control.begin(o); c != p_.control.end(o); ++c) ready = std::max(ready, signal(*c, q));
      if (hold > 0 && i >= hold) ready = std::max(ready, signal(order[i - hold], q));
      end = LaneOf(q).Take(ready, p_.duration[static_cast<size_t>(o) * d + q]);
      makespan = std::max(makespan, end);
      end_[o] = end;
      if (end + tail_[o] > most_time) makespan = end + tail_[o];
    }
    int64_t freed = 0;
    if (kMemory) {
      freed = p_.scratch[static_cast<size_t>(o) * d + q];
      memory_[q] += PlaceOutputs(o, q) + freed;
      grown(q, memory_[q]);
    }
    for (const int32_t* t = p_.outputs.begin(o); t != p_.outputs.end(o); ++t) {
      const int32_t* const consumer = p_.consumers.begin(*t);
      const int count = p_.consumers.size(*t), at = *t * d;
      uint64_t others = 0;
      int uses = p_.lifetime[*t] == kLifetimeOutput;
      if (d == 2) {  // without a branch on every consumer's device
        int elsewhere = 0;
        for (int c = 0; c < count; ++c) elsewhere += device[consumer[c]];
        if (q == 1) elsewhere = count - elsewhere;
        uses += count - elsewhere;
        consumers_[1 - q] = elsewhere;
        others = elsewhere > 0 ? uint64_t{2} >> q : 0;
      } else {
        for (int c = 0; c < count; ++c) {
          const int to = device[consumer[c]];
          if (to == q) {
            ++uses;
            continue;
          }
          if (!(others >> to & 1)) consumers_[to] = 0;
          others |= uint64_t{1} << to;
          ++consumers_[to];
        }
      }
      if (kTime) arrival_[at + q] = end;
      for (; others != 0; others &= others - 1) {
        const int to = __builtin_ctzll(others);
        if (kTime) arrival_[at + to] = -1 - end;  // sent when the first consumer's turn comes
        if (kMemory) {
          buffers_[at + to] = {p_.size[*t], at + to, consumers_[to]};
          memory_[to] += p_.size[*t];
          grown(to, memory_[to]);
        }
      }
      if (kMemory) {
        Buffer& x = buffers_[buffers_[at + q].at];
        x.uses += uses - 1;
        freed += x.uses == 0 ? x.bytes : 0;
      }
    }
    if (kMemory) {
      for (const int32_t* t = p_.inputs.begin(o); t != p_.inputs.end(o); ++t) {
        Buffer& x = buffers_[buffers_[*t * d + q].at];
        freed += --x.uses == 0 ? x.bytes : 0;
      }
      // The other lanes' ops still run: what they free is free when as many have been started after them.
      if (first_lane_[q + 1] - first_lane_[q] > 1) {
        std::swap(freed, unfreed_[oldest_[q]]);
        if (++oldest_[q] == first_lane_[q + 1] - 1) oldest_[q] = first_lane_[q];
      }
      memory_[q] -= freed;
    }
    if (makespan > most_time || peak > most_memory) break;
  }
  int64_t excess = 0;
  for (int q = 0; kMemory && q < d; ++q) excess += std::max<int64_t>(0, peak_[q] - p_.capacity[q]);
  if (objective_ == Objective::kRuntime) return {excess, 0, makespan, peak};
  return {excess, std::max<int64_t>(0, makespan - makespan_limit_), peak, mass};
}

}  // namespace tf_regal

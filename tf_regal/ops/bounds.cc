#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>

#include "problem.h"

namespace tf_regal {
namespace {

constexpr int kWords = 8;             // of 64 ops each: a row is one cache line
constexpr int kMaxMoments = 1 << 18;  // at which memory is bounded: the time is linear in these times the ops
constexpr int kMaxVisits = 1 << 22;   // of ops that others wait for, in all: what is left out makes a start earlier, not wrong
constexpr int kMinVisits = 64;        // of them, per op

using Row = std::array<uint64_t, kWords>;

void Or(Row& a, const Row& b) {
  for (int w = 0; w < kWords; ++w) a[w] |= b[w];
}

// Adds `bytes` to all moments whose bits are set. `change[i]` is what the sum grows by from moment i - 1 to i: bits come in few runs.
void AddRuns(const Row& row, int64_t bytes, std::vector<int64_t>& change) {
  for (int w = 0; w < kWords; ++w) {
    uint64_t bits = row[w];
    int at = w * 64;
    while (bits) {
      const int zeros = __builtin_ctzll(bits);
      bits >>= zeros;
      const int ones = ~bits ? __builtin_ctzll(~bits) : 64;
      change[at + zeros] += bytes;
      change[at + zeros + ones] -= bytes;
      at += zeros + ones;
      bits = ones == 64 ? 0 : bits >> ones;
    }
  }
}

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

bool OnlyOne(uint64_t mask) { return (mask & (mask - 1)) == 0; }

// When ops can start, and the ops in this order.
struct Starts {
  std::vector<int64_t> at;     // [n_ops]
  std::vector<int32_t> order;  // from the earliest
};

// An op starts after the ops that it waits for, directly or not. Those of them that can't start before a time t run in `lanes` lanes from t on, so it
// starts at the earliest at t plus their work divided by the lanes; t may be the start of any of them.
Starts EarliestStarts(const Csr& predecessors, const Csr& successors, const std::vector<int64_t>& shortest, int64_t lanes) {
  const int n_ops = static_cast<int>(shortest.size());
  const int max_visits = n_ops == 0 ? 0 : std::max(kMinVisits, kMaxVisits / n_ops);
  Starts starts{std::vector<int64_t>(n_ops, 0), {}};
  std::vector<int32_t> place(n_ops), pending(n_ops), visited_by(n_ops, -1);
  std::vector<double> reach;  // by place in the order: the latest start that the ops so far could give to an op that waits for all of them
  std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>, std::greater<>> open;
  std::priority_queue<int32_t> waited_for;  // places: the latest start first
  for (int o = 0; o < n_ops; ++o) {
    pending[o] = predecessors.size(o);
    if (pending[o] == 0) open.emplace(0, o);
  }

  const auto start_of = [&](int32_t op) {
    int64_t start = 0, work = 0;
    int visits = 0;
    const auto visit = [&](int32_t o) {
      if (visited_by[o] == op || visits == max_visits) return;
      visited_by[o] = op;
      ++visits;
      waited_for.push(place[o]);
    };
    for (const int32_t* p = predecessors.begin(op); p != predecessors.end(op); ++p) {
      start = std::max(start, starts.at[*p] + shortest[*p]);
      visit(*p);
    }
    while (!waited_for.empty()) {
      const int32_t at = waited_for.top(), o = starts.order[at];
      // No earlier t can give more than this; the factor is for rounding.
      if ((reach[at] + static_cast<double>(work) / lanes) * (1 + 1e-12) <= start) break;
      waited_for.pop();
      work += shortest[o];
      start = std::max(start, starts.at[o] + CeilDivide(work, lanes));
      std::for_each(predecessors.begin(o), predecessors.end(o), visit);
    }
    waited_for = {};
    return start;
  };

  while (!open.empty()) {
    const int32_t o = open.top().second;
    open.pop();
    place[o] = static_cast<int32_t>(starts.order.size());
    starts.order.push_back(o);
    const double from = reach.empty() ? 0 : std::max(reach.back(), static_cast<double>(starts.at[o]));
    reach.push_back(from + static_cast<double>(shortest[o]) / lanes);
    for (const int32_t* s = successors.begin(o); s != successors.end(o); ++s) {
      if (--pending[*s] > 0) continue;
      starts.at[*s] = start_of(*s);
      open.emplace(starts.at[*s], *s);
    }
  }
  return starts;
}

// The same for an op that waits for all others: when they all can have ended.
int64_t EndOfAll(const Starts& starts, const std::vector<int64_t>& shortest, int64_t lanes) {
  int64_t end = 0, work = 0;
  for (auto o = starts.order.rbegin(); o != starts.order.rend(); ++o) {
    work += shortest[*o];
    end = std::max(end, starts.at[*o] + CeilDivide(work, lanes));
  }
  return end;
}

}  // namespace

int64_t Problem::ShortestDuration(int op) const {
  int64_t shortest = INT64_MAX;
  for (int q = 0; q < n_devices; ++q) {
    const int64_t x = duration[static_cast<size_t>(op) * n_devices + q];
    if (x >= 0) shortest = std::min(shortest, x);
  }
  return shortest;
}

std::pair<int64_t, int64_t> Problem::Bounds() const {
  const int64_t all = std::accumulate(persistent.begin(), persistent.end(), int64_t{0}) + LargestLiveSet();
  if (n_devices == 1) return {ShortestMakespan(), all};
  return {ShortestMakespan(), std::max(LargestWorkingSet(), CeilDivide(all, n_devices))};
}

int64_t Problem::ShortestMakespan() const {
  Csr predecessors;
  std::vector<int64_t> shortest(n_ops);
  for (int o = 0; o < n_ops; ++o) {
    shortest[o] = ShortestDuration(o);
    for (const int32_t* t = inputs.begin(o); t != inputs.end(o); ++t) predecessors.idx.push_back(producer[*t]);
    predecessors.idx.insert(predecessors.idx.end(), control.begin(o), control.end(o));
    predecessors.ptr.push_back(static_cast<int32_t>(predecessors.idx.size()));
  }
  const Csr successors = Transpose(predecessors, n_ops);
  const int64_t all_lanes = std::accumulate(lanes.begin(), lanes.end(), int64_t{0});
  const Starts starts = EarliestStarts(predecessors, successors, shortest, all_lanes);
  const Starts from_end = EarliestStarts(successors, predecessors, shortest, all_lanes);  // the earliest start of the graph turned around
  int64_t makespan = std::max(EndOfAll(starts, shortest, all_lanes), EndOfAll(from_end, shortest, all_lanes));
  for (int o = 0; o < n_ops; ++o) makespan = std::max(makespan, starts.at[o] + shortest[o] + from_end.at[o]);
  return makespan;
}

int32_t Problem::Root(int32_t t) const {
  while (lifetime[t] != kLifetimePersistent && view[t] >= 0) t = view[t];
  return t;
}

// Bytes of the outputs that can't take over an input's buffer, and of scratch on the device that needs least.
int64_t Problem::AllocatedAtLeast(int o) const {
  int64_t total = 0;
  for (const int32_t* t = outputs.begin(o); t != outputs.end(o); ++t) {
    if (lifetime[*t] != kLifetimePersistent && view[*t] < 0 && reuse.size(*t) == 0) total += size[*t];
  }
  int64_t least_scratch = INT64_MAX;
  for (int p = 0; p < n_devices; ++p) {
    const size_t at = static_cast<size_t>(o) * n_devices + p;
    if (duration[at] >= 0) least_scratch = std::min(least_scratch, scratch[at]);
  }
  return total + least_scratch;
}

int64_t Problem::LargestWorkingSet() const {
  int64_t largest = 0;
  std::vector<std::pair<int32_t, int64_t>> roots;  // (root tensor, bytes that it holds at least)
  std::vector<int64_t> group_persistent(n_groups, 0);
  for (int o = 0; o < n_ops; ++o) group_persistent[group[o]] += persistent[o];
  // By device: the persistent memory of groups that may be nowhere else.
  std::vector<int64_t> fixed(n_devices, 0);
  for (int g = 0; g < n_groups; ++g) {
    if (OnlyOne(allowed[g])) fixed[__builtin_ctzll(allowed[g])] += group_persistent[g];
  }
  largest = *std::max_element(fixed.begin(), fixed.end());
  // By group: what the device of its ops holds at least; of the devices where they may run the one that holds least.
  std::vector<int64_t> beside(n_groups, INT64_MAX);
  for (int g = 0; g < n_groups; ++g) {
    for (int p = 0; p < n_devices; ++p) {
      if (allowed[g] >> p & 1) beside[g] = std::min(beside[g], fixed[p]);
    }
    if (!OnlyOne(allowed[g])) beside[g] += group_persistent[g];
  }
  for (int o = 0; o < n_ops; ++o) {
    roots.clear();
    for (const int32_t* t = inputs.begin(o); t != inputs.end(o); ++t) {
      // Any tensor of a chain of views may be the one that was copied here, so only the smallest counts.
      const int32_t root = Root(*t);
      if (lifetime[root] == kLifetimePersistent) continue;
      int64_t bytes = size[root];
      for (int32_t u = *t; u != root; u = view[u]) bytes = std::min(bytes, size[u]);
      roots.emplace_back(root, bytes);
    }
    std::sort(roots.begin(), roots.end());
    int64_t total = AllocatedAtLeast(o) + beside[group[o]];
    for (size_t i = 0; i < roots.size(); ++i) {
      if (i == 0 || roots[i].first != roots[i - 1].first) total += roots[i].second;
    }
    largest = std::max(largest, total);
  }
  return largest;
}

// When an op starts, what was made by ops before it in every order and is needed by it, by ops after it in every order, or to the end, is in memory
// somewhere, besides what the op allocates. A buffer that an op takes over has no use left by then, so none is counted twice.
int64_t Problem::LargestLiveSet() const {
  // Per buffer (the tensor at the root of a chain of views): the bytes of one copy, and whether it lives to the end.
  std::vector<int64_t> bytes(size);
  std::vector<uint8_t> stays(n_tensors, 0);
  std::vector<int32_t> root(n_tensors);
  for (int t = 0; t < n_tensors; ++t) {
    root[t] = Root(t);
    if (n_devices > 1) bytes[root[t]] = std::min(bytes[root[t]], size[t]);  // a view may have been copied for its buffer
    if (lifetime[t] == kLifetimeOutput) stays[root[t]] = 1;
  }
  for (int t = 0; t < n_tensors; ++t) {
    if (lifetime[t] == kLifetimePersistent) bytes[t] = 0;
  }

  const int moments = std::min(n_ops, kMaxMoments);
  // Bit i: in every order the op is or comes after, is or comes before, the op of moment i; a user of the buffer is or comes after it.
  std::vector<Row> after(n_ops), before(n_ops), needed(n_tensors);
  std::vector<int64_t> change(kWords * 64 + 1);
  int64_t largest = 0;
  for (int first = 0; first < moments; first += kWords * 64) {
    const int count = std::min(kWords * 64, moments - first);
    const auto op_at = [&](int i) { return topological_order[static_cast<int64_t>(first + i) * n_ops / moments]; };
    std::fill(after.begin(), after.end(), Row{});
    std::fill(before.begin(), before.end(), Row{});
    std::fill(needed.begin(), needed.end(), Row{});
    std::fill(change.begin(), change.end(), 0);
    for (int i = 0; i < count; ++i) after[op_at(i)][i / 64] = before[op_at(i)][i / 64] = uint64_t{1} << (i % 64);
    for (int o : topological_order) {
      for (const int32_t* t = inputs.begin(o); t != inputs.end(o); ++t) Or(after[o], after[producer[*t]]);
      for (const int32_t* c = control.begin(o); c != control.end(o); ++c) Or(after[o], after[*c]);
      // Known now: `after` of a consumer.
      for (const int32_t* t = inputs.begin(o); t != inputs.end(o); ++t) Or(needed[root[*t]], after[o]);
    }
    for (int k = n_ops - 1; k >= 0; --k) {
      const int o = topological_order[k];
      const auto collect = [&](int32_t successor) { Or(before[o], before[successor]); };
      for (const int32_t* t = outputs.begin(o); t != outputs.end(o); ++t) std::for_each(consumers.begin(*t), consumers.end(*t), collect);
      std::for_each(control_successors.begin(o), control_successors.end(o), collect);
    }
    for (int i = 0; i < count; ++i) before[op_at(i)][i / 64] &= ~(uint64_t{1} << (i % 64));  // an op's own outputs are counted apart
    for (int t = 0; t < n_tensors; ++t) {
      if (root[t] != t || bytes[t] == 0) continue;
      Row live = before[producer[t]];
      if (!stays[t]) {
        for (int w = 0; w < kWords; ++w) live[w] &= needed[t][w];
      }
      AddRuns(live, bytes[t], change);
    }
    int64_t held = 0;
    for (int i = 0; i < count; ++i) {
      held += change[i];
      largest = std::max(largest, held + AllocatedAtLeast(op_at(i)));
    }
  }
  return largest;
}

}  // namespace tf_regal

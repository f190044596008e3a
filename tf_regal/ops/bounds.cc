#include <algorithm>
#include <array>
#include <numeric>

#include "problem.h"

namespace tf_regal {
namespace {

constexpr int kWords = 8;             // of 64 ops each: a row is one cache line
constexpr int kMaxMoments = 1 << 18;  // at which memory is bounded: the time is linear in these times the ops

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
  std::vector<int64_t> finish(n_ops, 0);
  int64_t critical_path = 0, work = 0, total_lanes = 0;
  for (int32_t l : lanes) total_lanes += l;
  for (int o : topological_order) {
    int64_t start = 0;
    for (const int32_t* t = inputs.begin(o); t != inputs.end(o); ++t) start = std::max(start, finish[producer[*t]]);
    for (const int32_t* c = control.begin(o); c != control.end(o); ++c) start = std::max(start, finish[*c]);
    const int64_t shortest = ShortestDuration(o);
    finish[o] = start + shortest;
    critical_path = std::max(critical_path, finish[o]);
    work += shortest;
  }
  const int64_t all_persistent = std::accumulate(persistent.begin(), persistent.end(), int64_t{0});
  const int64_t makespan = std::max(critical_path, (work + total_lanes - 1) / total_lanes);
  const int64_t all = all_persistent + LargestLiveSet();
  if (n_devices == 1) return {makespan, all};
  return {makespan, std::max(LargestWorkingSet(), (all + n_devices - 1) / n_devices)};
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
    int64_t total = AllocatedAtLeast(o) + group_persistent[group[o]];
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

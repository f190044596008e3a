#include "heuristics.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace tf_regal {
namespace {

struct MeanCosts {
  std::vector<double> duration, transfer;  // [n_ops], [n_tensors], ns
};

MeanCosts Means(const Problem& p) {
  MeanCosts means{std::vector<double>(p.n_ops), std::vector<double>(p.n_tensors, 0.0)};
  const int d = p.n_devices;
  for (int o = 0; o < p.n_ops; ++o) {
    double sum = 0;
    int count = 0;
    for (int q = 0; q < d; ++q) {
      const int64_t x = p.duration[static_cast<size_t>(o) * d + q];
      if (x >= 0) sum += static_cast<double>(x), ++count;
    }
    means.duration[o] = sum / std::max(count, 1);
  }
  if (d == 1) return means;
  double latency = 0, rate = 0;
  for (int link = 0; link < d * d; ++link) {
    if (link % (d + 1) == 0) continue;
    latency += static_cast<double>(p.latency[link]);
    rate += p.ns_per_byte[link];
  }
  const double links = static_cast<double>(d) * (d - 1), share = (d - 1.0) / d;  // d − 1 of d random pairs need a transfer
  for (int t = 0; t < p.n_tensors; ++t) means.transfer[t] = share * (latency + static_cast<double>(p.size[t]) * rate) / links;
  return means;
}

// Per tensor the tensor whose buffer it lives in, −1: persistent. Per buffer the number of ops that use it (and one for a result).
struct Buffers {
  std::vector<int32_t> of, uses;
};

Buffers FindBuffers(const Problem& p) {
  Buffers b{std::vector<int32_t>(p.n_tensors), std::vector<int32_t>(p.n_tensors, 0)};
  for (int t = 0; t < p.n_tensors; ++t) {
    const int root = p.Root(t);
    b.of[t] = p.lifetime[root] == kLifetimePersistent ? -1 : root;
  }
  std::vector<int32_t> last(p.n_tensors, -1);
  for (int o = 0; o < p.n_ops; ++o) {
    for (const int32_t* t = p.inputs.begin(o); t != p.inputs.end(o); ++t) {
      const int32_t buffer = b.of[*t];
      if (buffer >= 0 && last[buffer] != o) last[buffer] = o, ++b.uses[buffer];
    }
  }
  for (int t = 0; t < p.n_tensors; ++t) {
    if (p.lifetime[t] == kLifetimeOutput && b.of[t] >= 0) ++b.uses[b.of[t]];
  }
  return b;
}

template <typename Visit>
void ForEachSuccessor(const Problem& p, int op, Visit visit) {
  for (const int32_t* t = p.outputs.begin(op); t != p.outputs.end(op); ++t) std::for_each(p.consumers.begin(*t), p.consumers.end(*t), visit);
  std::for_each(p.control_successors.begin(op), p.control_successors.end(op), visit);
}

// Per device the times when its lanes are free, the earliest on top.
using Lanes = std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>>;

std::vector<Lanes> FreeLanes(const Problem& p) {
  std::vector<Lanes> lanes(p.n_devices);
  for (int q = 0; q < p.n_devices; ++q) {
    for (int i = 0; i < p.lanes[q]; ++i) lanes[q].push(0);
  }
  return lanes;
}

// When the signals of the op's control predecessors are there on device q, ns.
int64_t SignalsThere(const Problem& p, int op, int q, const std::vector<int64_t>& end, const std::vector<int32_t>& device) {
  int64_t there = 0;
  for (const int32_t* c = p.control.begin(op); c != p.control.end(op); ++c) {
    there = std::max(there, end[*c] + (device[*c] == q ? 0 : p.latency[static_cast<size_t>(device[*c]) * p.n_devices + q]));
  }
  return there;
}

}  // namespace

std::vector<double> UpwardRank(const Problem& p, double transfer_weight) {
  const MeanCosts means = Means(p);
  std::vector<double> rank(p.n_ops, 0.0);
  for (auto op = p.topological_order.rbegin(); op != p.topological_order.rend(); ++op) {
    double longest = 0;
    for (const int32_t* t = p.outputs.begin(*op); t != p.outputs.end(*op); ++t) {
      for (const int32_t* c = p.consumers.begin(*t); c != p.consumers.end(*t); ++c) {
        longest = std::max(longest, transfer_weight * means.transfer[*t] + rank[*c]);
      }
    }
    for (const int32_t* c = p.control_successors.begin(*op); c != p.control_successors.end(*op); ++c) longest = std::max(longest, rank[*c]);
    rank[*op] = means.duration[*op] + longest;
  }
  return rank;
}

std::vector<double> DownwardRank(const Problem& p, double transfer_weight) {
  const MeanCosts means = Means(p);
  std::vector<double> rank(p.n_ops, 0.0);
  for (int op : p.topological_order) {
    const double end = rank[op] + means.duration[op];
    for (const int32_t* t = p.outputs.begin(op); t != p.outputs.end(op); ++t) {
      for (const int32_t* c = p.consumers.begin(*t); c != p.consumers.end(*t); ++c) {
        rank[*c] = std::max(rank[*c], end + transfer_weight * means.transfer[*t]);
      }
    }
    for (const int32_t* c = p.control_successors.begin(op); c != p.control_successors.end(op); ++c) rank[*c] = std::max(rank[*c], end);
  }
  return rank;
}

std::vector<int32_t> EarliestFinishPlacement(const Problem& p, const double* rank) {
  const int n = p.n_ops, d = p.n_devices;
  std::vector<int64_t> group_persistent(p.n_groups, 0);
  for (int o = 0; o < n; ++o) group_persistent[p.group[o]] += p.persistent[o];
  std::vector<Lanes> lanes = FreeLanes(p);
  std::vector<int64_t> line_free(static_cast<size_t>(d) * d, 0), end(n, 0), held(d, 0);
  std::vector<int64_t> arrival(static_cast<size_t>(p.n_tensors) * d, -1);
  std::vector<int32_t> device(n, 0), device_of_group(p.n_groups, -1), left(p.n_tensors);
  for (int t = 0; t < p.n_tensors; ++t) left[t] = p.consumers.size(t) + (p.lifetime[t] == kLifetimeOutput ? 1 : 0);
  const auto allocates = [&](int t) { return p.lifetime[t] != kLifetimePersistent && p.view[t] < 0; };

  // When the tensor is there: where it must be transferred, the line's next free time counts, and is taken if `commit`.
  const auto arrives = [&](int t, int q, bool commit) {
    const int source = p.producer[t], src = device[source];
    if (src == q) return end[source];
    int64_t& at = arrival[static_cast<size_t>(t) * d + q];
    if (at >= 0) return at;
    int64_t& free = line_free[static_cast<size_t>(src) * d + q];
    const int64_t time = std::max(end[source], free) + p.TransferTime(t, src, q);
    if (commit) at = free = time;
    return time;
  };
  // By falling rank, but never before what an op needs: any rank will do.
  std::vector<int32_t> position(n), pending = p.n_predecessors;
  for (int i = 0; i < n; ++i) position[p.topological_order[i]] = i;
  std::priority_queue<std::tuple<double, int32_t, int32_t>> ready;  // rank, −position, op
  const auto push = [&](int op) { ready.emplace(rank[op], -position[op], op); };
  for (int o = 0; o < n; ++o) {
    if (pending[o] == 0) push(o);
  }
  while (!ready.empty()) {
    const int op = std::get<2>(ready.top());
    ready.pop();
    const int g = p.group[op];
    int64_t made = 0;
    for (const int32_t* t = p.outputs.begin(op); t != p.outputs.end(op); ++t) made += allocates(*t) ? p.size[*t] : 0;
    int best = -1;
    std::tuple<int64_t, int64_t> best_key;  // bytes above capacity, end
    for (uint64_t rest = device_of_group[g] >= 0 ? uint64_t{1} << device_of_group[g] : p.allowed[g]; rest != 0; rest &= rest - 1) {
      const int q = __builtin_ctzll(rest);
      int64_t inputs_there = SignalsThere(p, op, q, end, device);
      for (const int32_t* t = p.inputs.begin(op); t != p.inputs.end(op); ++t) inputs_there = std::max(inputs_there, arrives(*t, q, false));
      const int64_t bytes = held[q] + made + (device_of_group[g] < 0 ? group_persistent[g] : 0);
      const std::tuple<int64_t, int64_t> key(std::max<int64_t>(0, bytes - p.capacity[q]),
                                             std::max(inputs_there, lanes[q].top()) + p.duration[static_cast<size_t>(op) * d + q]);
      if (best < 0 || key < best_key) best = q, best_key = key;
    }
    if (device_of_group[g] < 0) held[best] += group_persistent[g];
    device_of_group[g] = device[op] = best;
    for (const int32_t* t = p.inputs.begin(op); t != p.inputs.end(op); ++t) {
      arrives(*t, best, true);
      if (--left[*t] == 0 && allocates(*t)) held[device[p.producer[*t]]] -= p.size[*t];
    }
    held[best] += made;
    end[op] = std::get<1>(best_key);
    lanes[best].pop();
    lanes[best].push(end[op]);
    ForEachSuccessor(p, op, [&](int successor) {
      if (--pending[successor] == 0) push(successor);
    });
  }
  return device;
}

std::pair<std::vector<int32_t>, std::vector<int32_t>> EarliestStartSchedule(const Problem& p, const double* rank) {
  const int n = p.n_ops, d = p.n_devices;
  using Waiting = std::tuple<int64_t, double, int32_t>;  // when its inputs are there, −rank, op
  using Startable = std::pair<double, int32_t>;          // −rank, op
  std::vector<Lanes> lanes = FreeLanes(p);
  std::vector<std::priority_queue<Waiting, std::vector<Waiting>, std::greater<Waiting>>> waiting(d);
  std::vector<std::priority_queue<Startable, std::vector<Startable>, std::greater<Startable>>> startable(d);
  std::vector<int64_t> end(n, 0);
  std::vector<int32_t> device(n, -1), device_of_group(p.n_groups, -1), pending = p.n_predecessors, order;
  const auto enter = [&](int op) {
    const int g = p.group[op];
    for (uint64_t rest = device_of_group[g] >= 0 ? uint64_t{1} << device_of_group[g] : p.allowed[g]; rest != 0; rest &= rest - 1) {
      const int q = __builtin_ctzll(rest);
      int64_t there = SignalsThere(p, op, q, end, device);
      for (const int32_t* t = p.inputs.begin(op); t != p.inputs.end(op); ++t) {
        const int source = p.producer[*t], src = device[source];
        there = std::max(there, end[source] + (src == q ? 0 : p.TransferTime(*t, src, q)));
      }
      waiting[q].emplace(there, -rank[op], op);
    }
  };
  const auto stale = [&](int op, int q) {
    const int g = p.group[op];
    return device[op] >= 0 || (device_of_group[g] >= 0 && device_of_group[g] != q);
  };
  for (int o = 0; o < n; ++o) {
    if (pending[o] == 0) enter(o);
  }
  while (static_cast<int>(order.size()) < n) {
    int best = -1;
    std::tuple<int64_t, double> best_key;  // start, −rank
    for (int q = 0; q < d; ++q) {
      auto& later = waiting[q];
      auto& now = startable[q];
      const int64_t free = lanes[q].top();
      while (!later.empty() && (std::get<0>(later.top()) <= free || stale(std::get<2>(later.top()), q))) {
        now.emplace(std::get<1>(later.top()), std::get<2>(later.top()));
        later.pop();
      }
      while (!now.empty() && stale(now.top().second, q)) now.pop();
      if (now.empty() && later.empty()) continue;
      const std::tuple<int64_t, double> key = now.empty() ? std::tuple(std::get<0>(later.top()), std::get<1>(later.top()))
                                                          : std::tuple(free, now.top().first);
      if (best < 0 || key < best_key) best = q, best_key = key;
    }
    const int op = startable[best].empty() ? std::get<2>(waiting[best].top()) : startable[best].top().second;
    device_of_group[p.group[op]] = device[op] = best;
    end[op] = std::get<0>(best_key) + p.duration[static_cast<size_t>(op) * d + best];
    lanes[best].pop();
    lanes[best].push(end[op]);
    order.push_back(op);
    ForEachSuccessor(p, op, [&](int successor) {
      if (--pending[successor] == 0) enter(successor);
    });
  }
  return {device, order};
}

std::vector<int32_t> MemoryGreedyOrder(const Problem& p, const double* rank, const double* noise) {
  const int n = p.n_ops;
  Buffers buffers = FindBuffers(p);
  std::vector<std::vector<int32_t>> users(p.n_tensors);  // per buffer: the ops that take it
  std::vector<int32_t> distinct;                         // the buffers that an op takes, each once
  const auto taken_by = [&](int op) -> const std::vector<int32_t>& {
    distinct.clear();
    for (const int32_t* t = p.inputs.begin(op); t != p.inputs.end(op); ++t) {
      const int32_t buffer = buffers.of[*t];
      if (buffer >= 0 && std::find(distinct.begin(), distinct.end(), buffer) == distinct.end()) distinct.push_back(buffer);
    }
    return distinct;
  };
  std::vector<int64_t> scratch(n, 0);
  for (int o = 0; o < n; ++o) {
    for (int32_t buffer : taken_by(o)) users[buffer].push_back(o);
    for (int q = 0; q < p.n_devices; ++q) scratch[o] = std::max(scratch[o], p.scratch[static_cast<size_t>(o) * p.n_devices + q]);
  }
  const auto added = [&](int op) {
    int64_t total = 0;
    std::vector<int32_t> reused;
    for (const int32_t* t = p.outputs.begin(op); t != p.outputs.end(op); ++t) {
      if (buffers.of[*t] != *t) continue;
      const int32_t* r = std::find_if(p.reuse.begin(*t), p.reuse.end(*t), [&](int32_t x) {
        return buffers.of[x] >= 0 && buffers.uses[buffers.of[x]] == 1 && p.size[x] == p.size[*t];
      });
      if (r != p.reuse.end(*t)) {
        reused.push_back(buffers.of[*r]);
      } else if (buffers.uses[*t] > 0) {
        total += p.size[*t];
      }
    }
    for (int32_t buffer : taken_by(op)) {
      if (buffers.uses[buffer] == 1 && std::find(reused.begin(), reused.end(), buffer) == reused.end()) total -= p.size[buffer];
    }
    return static_cast<double>(total) * (noise ? noise[op] : 1.0);
  };
  using Entry = std::tuple<double, int64_t, double, int32_t, int32_t>;  // added, scratch, −rank, op, version
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  std::vector<int32_t> pending = p.n_predecessors, version(n, 0), order;
  std::vector<bool> done(n, false);
  const auto push = [&](int op) { ready.emplace(added(op), scratch[op], -rank[op], op, version[op]); };
  for (int o = 0; o < n; ++o) {
    if (pending[o] == 0) push(o);
  }
  std::vector<int32_t> taken;
  while (!ready.empty()) {
    const auto [score, bytes, negative_rank, op, stamp] = ready.top();
    ready.pop();
    if (done[op] || stamp != version[op]) continue;
    done[op] = true;
    order.push_back(op);
    taken = taken_by(op);
    for (int32_t buffer : taken) {
      if (--buffers.uses[buffer] != 1) continue;
      for (int32_t user : users[buffer]) {  // the last user now frees it: its score changes
        if (!done[user] && pending[user] == 0) ++version[user], push(user);
      }
    }
    ForEachSuccessor(p, op, [&](int successor) {
      if (--pending[successor] == 0) push(successor);
    });
  }
  return order;
}

std::vector<int32_t> DepthFirstOrder(const Problem& p, const double* noise) {
  const int n = p.n_ops;
  std::vector<double> tree(n, 0.0);  // bytes made below the op, counted once per path: a rough size of its subtree
  std::vector<std::vector<int32_t>> sources(n);
  std::vector<bool> has_successor(n, false);
  for (int op : p.topological_order) {
    auto& from = sources[op];
    for (const int32_t* t = p.inputs.begin(op); t != p.inputs.end(op); ++t) from.push_back(p.producer[*t]);
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (int source : from) tree[op] += tree[source];
    for (const int32_t* t = p.outputs.begin(op); t != p.outputs.end(op); ++t) tree[op] += static_cast<double>(p.size[*t]);
    tree[op] = std::min(tree[op], 1e300);
    from.insert(from.end(), p.control.begin(op), p.control.end(op));
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (int source : from) has_successor[source] = true;
  }
  if (noise) {
    for (int o = 0; o < n; ++o) tree[o] *= noise[o];
  }
  const auto larger = [&](int a, int b) { return tree[a] != tree[b] ? tree[a] > tree[b] : a < b; };
  std::vector<int32_t> roots, order;
  for (int o = 0; o < n; ++o) {
    std::sort(sources[o].begin(), sources[o].end(), larger);
    if (!has_successor[o]) roots.push_back(o);
  }
  std::sort(roots.begin(), roots.end(), larger);
  std::vector<bool> done(n, false);
  std::vector<std::pair<int32_t, size_t>> stack;
  for (int root : roots) {
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      const auto [op, at] = stack.back();
      stack.pop_back();
      if (done[op]) continue;
      if (at < sources[op].size()) {
        stack.emplace_back(op, at + 1);
        if (!done[sources[op][at]]) stack.emplace_back(sources[op][at], 0);
        continue;
      }
      done[op] = true;
      order.push_back(op);
    }
  }
  return order;
}

}  // namespace tf_regal

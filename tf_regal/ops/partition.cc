#include "partition.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "random.h"

namespace tf_regal {
namespace {

constexpr int kCoarse = 48;          // vertices at which coarsening ends
constexpr double kLeastShrink = 0.9;  // a level with more of the vertices left than this is the last
constexpr int kGrowths = 8;          // first bisections that are tried
constexpr int kPasses = 8;           // of the refinement, per level
constexpr int kFruitless = 200;      // moves of a pass without a better cut before it ends

struct Level {
  WeightedGraph graph;
  std::vector<int32_t> coarse_of;  // vertex of the finer graph -> of this one
};

// Pairs every vertex with the unpaired neighbour of the heaviest edge.
Level Coarsen(const WeightedGraph& fine, Random& random) {
  const int n = fine.size();
  std::vector<int32_t> order(n), coarse_of(n, -1);
  std::iota(order.begin(), order.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  const double heaviest = 1.5 * std::accumulate(fine.vertex.begin(), fine.vertex.end(), 0.0) / kCoarse;
  int count = 0;
  for (int v : order) {
    if (coarse_of[v] >= 0) continue;
    int mate = -1;
    double weight = -1;
    for (int e = fine.ptr[v]; e < fine.ptr[v + 1]; ++e) {
      const int u = fine.target[e];
      if (u != v && coarse_of[u] < 0 && fine.edge[e] > weight && fine.vertex[u] + fine.vertex[v] <= heaviest) {
        mate = u;
        weight = fine.edge[e];
      }
    }
    coarse_of[v] = count;
    if (mate >= 0) coarse_of[mate] = count;
    ++count;
  }
  Level level;
  level.coarse_of = std::move(coarse_of);
  WeightedGraph& graph = level.graph;
  graph.vertex.assign(count, 0.0);
  std::vector<std::vector<int32_t>> members(count);
  for (int v = 0; v < n; ++v) {
    graph.vertex[level.coarse_of[v]] += fine.vertex[v];
    members[level.coarse_of[v]].push_back(v);
  }
  graph.ptr.push_back(0);
  std::vector<int32_t> slot(count, -1);
  for (int c = 0; c < count; ++c) {
    const int begin = static_cast<int>(graph.target.size());
    for (int v : members[c]) {
      for (int e = fine.ptr[v]; e < fine.ptr[v + 1]; ++e) {
        const int u = level.coarse_of[fine.target[e]];
        if (u == c) continue;
        if (slot[u] < begin) {
          slot[u] = static_cast<int32_t>(graph.target.size());
          graph.target.push_back(u);
          graph.edge.push_back(0.0);
        }
        graph.edge[slot[u]] += fine.edge[e];
      }
    }
    graph.ptr.push_back(static_cast<int32_t>(graph.target.size()));
  }
  return level;
}

class Bisection {
 public:
  Bisection(const WeightedGraph& graph, double low, double high) : g_(graph), low_(low), high_(high), side_(graph.size(), 1), gain_(graph.size()) {}

  // Side 0 grows from a vertex, the neighbour that saves most cut first, until it has its weight.
  void Grow(int start) {
    std::fill(side_.begin(), side_.end(), 1);
    weight_ = 0;
    const double wanted = (low_ + high_) / 2;
    std::vector<uint8_t> seen(g_.size(), 0);
    std::priority_queue<std::pair<double, int>> frontier;
    int next = 0;
    frontier.push({0.0, start});
    while (weight_ < wanted) {
      if (frontier.empty()) {  // another component
        while (next < g_.size() && side_[next] == 0) ++next;
        if (next == g_.size()) break;
        frontier.push({0.0, next});
      }
      const int v = frontier.top().second;
      frontier.pop();
      if (side_[v] == 0) continue;
      if (weight_ + g_.vertex[v] > high_ && weight_ >= low_) break;
      side_[v] = 0;
      weight_ += g_.vertex[v];
      for (int e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) {
        const int u = g_.target[e];
        if (side_[u] == 1) frontier.push({Gain(u), u});
      }
    }
  }

  void Take(std::vector<uint8_t> side) {
    side_ = std::move(side);
    weight_ = 0;
    for (int v = 0; v < g_.size(); ++v) weight_ += side_[v] == 0 ? g_.vertex[v] : 0.0;
  }

  void Refine() {
    for (int pass = 0; pass < kPasses && Pass(); ++pass) {
    }
  }

  // (how far the weight of side 0 is off, the cut): less is better.
  std::pair<double, double> Figure() const { return {Excess(weight_), Cut()}; }
  const std::vector<uint8_t>& side() const { return side_; }

 private:
  double Excess(double weight) const { return weight < low_ ? low_ - weight : weight > high_ ? weight - high_ : 0.0; }

  // What the cut loses if v changes sides.
  double Gain(int v) const {
    double gain = 0;
    for (int e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) gain += side_[g_.target[e]] == side_[v] ? -g_.edge[e] : g_.edge[e];
    return gain;
  }

  double Cut() const {
    double cut = 0;
    for (int v = 0; v < g_.size(); ++v) {
      for (int e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) cut += side_[v] < side_[g_.target[e]] ? g_.edge[e] : 0.0;
    }
    return cut;
  }

  // Moves every vertex at most once, the best gain first; keeps the best prefix. Whether that was better.
  bool Pass() {
    const int n = g_.size();
    std::vector<uint8_t> locked(n, 0);
    std::priority_queue<std::pair<double, int>> queue;
    for (int v = 0; v < n; ++v) {
      gain_[v] = Gain(v);
      queue.push({gain_[v], v});
    }
    const std::pair<double, double> before{Excess(weight_), 0.0};
    std::pair<double, double> best = before;
    double cut = 0;  // less the cut at the beginning
    std::vector<int> moved;
    size_t kept = 0;
    std::vector<std::pair<double, int>> aside;  // fit no more at present
    while (!queue.empty() && moved.size() - kept < kFruitless) {
      const auto [gain, v] = queue.top();
      queue.pop();
      if (locked[v] || gain != gain_[v]) continue;
      const double after = weight_ + (side_[v] == 0 ? -g_.vertex[v] : g_.vertex[v]);
      if (Excess(after) > 0 && Excess(after) >= Excess(weight_)) {
        aside.push_back({gain, v});
        continue;
      }
      weight_ = after;
      side_[v] ^= 1;
      cut -= gain;
      locked[v] = 1;
      moved.push_back(v);
      for (int e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) {
        const int u = g_.target[e];
        if (locked[u]) continue;
        gain_[u] += side_[u] == side_[v] ? -2 * g_.edge[e] : 2 * g_.edge[e];
        queue.push({gain_[u], u});
      }
      const std::pair<double, double> figure{Excess(weight_), cut};
      if (figure.first < best.first || (figure.first == best.first && figure.second < best.second - 1e-9)) {
        best = figure;
        kept = moved.size();
      }
      for (const auto& entry : aside) queue.push(entry);
      aside.clear();
    }
    while (moved.size() > kept) {
      const int v = moved.back();
      moved.pop_back();
      weight_ += side_[v] == 0 ? -g_.vertex[v] : g_.vertex[v];
      side_[v] ^= 1;
    }
    return kept > 0;
  }

  const WeightedGraph& g_;
  const double low_, high_;  // of the weight of side 0
  std::vector<uint8_t> side_;
  std::vector<double> gain_;
  double weight_ = 0;
};

std::vector<uint8_t> Bisect(const WeightedGraph& graph, double share, double imbalance, Random& random) {
  std::vector<Level> levels;
  const WeightedGraph* current = &graph;
  while (current->size() > kCoarse) {
    Level level = Coarsen(*current, random);
    if (level.graph.size() > kLeastShrink * current->size()) break;
    levels.push_back(std::move(level));
    current = &levels.back().graph;
  }
  const double total = std::accumulate(graph.vertex.begin(), graph.vertex.end(), 0.0);
  const double low = std::max(0.0, share - imbalance) * total, high = std::min(1.0, share + imbalance) * total;
  std::vector<uint8_t> side;
  {
    Bisection bisection(*current, low, high);
    std::pair<double, double> best;
    for (int i = 0; i < kGrowths; ++i) {
      bisection.Grow(static_cast<int>(random.Below(current->size())));
      bisection.Refine();
      const auto figure = bisection.Figure();
      if (side.empty() || figure < best) {
        best = figure;
        side = bisection.side();
      }
    }
  }
  for (size_t i = levels.size(); i-- > 0;) {
    const WeightedGraph& fine = i == 0 ? graph : levels[i - 1].graph;
    std::vector<uint8_t> finer(fine.size());
    for (int v = 0; v < fine.size(); ++v) finer[v] = side[levels[i].coarse_of[v]];
    Bisection bisection(fine, low, high);
    bisection.Take(std::move(finer));
    bisection.Refine();
    side = bisection.side();
  }
  return side;
}

WeightedGraph Induced(const WeightedGraph& graph, const std::vector<int32_t>& vertices) {
  std::vector<int32_t> index(graph.size(), -1);
  for (size_t i = 0; i < vertices.size(); ++i) index[vertices[i]] = static_cast<int32_t>(i);
  WeightedGraph part;
  part.ptr.push_back(0);
  for (int v : vertices) {
    part.vertex.push_back(graph.vertex[v]);
    for (int e = graph.ptr[v]; e < graph.ptr[v + 1]; ++e) {
      if (index[graph.target[e]] < 0) continue;
      part.target.push_back(index[graph.target[e]]);
      part.edge.push_back(graph.edge[e]);
    }
    part.ptr.push_back(static_cast<int32_t>(part.target.size()));
  }
  return part;
}

void Split(const WeightedGraph& graph, const std::vector<int32_t>& vertices, const std::vector<double>& shares, int first, int last, double imbalance,
           Random& random, std::vector<int32_t>* parts) {
  if (last - first == 1 || vertices.empty()) {
    for (int v : vertices) (*parts)[v] = first;
    return;
  }
  const int middle = (first + last) / 2;
  const double left = std::accumulate(shares.begin() + first, shares.begin() + middle, 0.0);
  const double whole = std::accumulate(shares.begin() + first, shares.begin() + last, 0.0);
  const std::vector<uint8_t> side = Bisect(Induced(graph, vertices), left / whole, imbalance, random);
  std::vector<int32_t> halves[2];
  for (size_t i = 0; i < vertices.size(); ++i) halves[side[i]].push_back(vertices[i]);
  Split(graph, halves[0], shares, first, middle, imbalance, random, parts);
  Split(graph, halves[1], shares, middle, last, imbalance, random, parts);
}

}  // namespace

std::vector<int32_t> Partition(const WeightedGraph& graph, const std::vector<double>& shares, double imbalance, uint64_t seed) {
  std::vector<int32_t> parts(graph.size(), 0), vertices(graph.size());
  std::iota(vertices.begin(), vertices.end(), 0);
  Random random(seed, 0, 0);
  Split(graph, vertices, shares, 0, static_cast<int>(shares.size()), imbalance, random, &parts);
  return parts;
}

}  // namespace tf_regal

// Multilevel graph partitioning: few and light edges between parts of given shares of the vertices' weight.

#ifndef TF_REGAL_OPS_PARTITION_H_
#define TF_REGAL_OPS_PARTITION_H_

#include <cstdint>
#include <vector>

namespace tf_regal {

// An undirected graph as CSR, every edge in both directions.
struct WeightedGraph {
  std::vector<int32_t> ptr;     // [vertices + 1]
  std::vector<int32_t> target;  // [2 * edges]
  std::vector<double> edge;     // [2 * edges]
  std::vector<double> vertex;   // [vertices]
  int size() const { return static_cast<int>(vertex.size()); }
};

// The part of every vertex. shares: of the vertices' weight, one per part, positive, with sum 1. imbalance: how much more or less than its share a part
// may have, as a part of the whole weight. Recursive bisection; each by heavy-edge matching, greedy growth, and Fiduccia and Mattheyses' refinement (1982)
// on the way back (the multilevel scheme of Karypis and Kumar 1998). The same seed gives the same parts.
std::vector<int32_t> Partition(const WeightedGraph& graph, const std::vector<double>& shares, double imbalance, uint64_t seed);

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_PARTITION_H_

// List heuristics: orders and placements that are computed once, in O((ops + edges) log ops).
#ifndef TF_REGAL_OPS_HEURISTICS_H_
#define TF_REGAL_OPS_HEURISTICS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "problem.h"

namespace tf_regal {

// Longest path from the start of each op to the end, ns (HEFT, Topcuoglu et al. 2002): mean durations over the allowed devices, and
// mean transfer times, which count by the share of pairs of devices that need a transfer, times `transfer_weight`.
std::vector<double> UpwardRank(const Problem& problem, double transfer_weight);

// Longest path from the beginning to the start of each op, ns; costs as in UpwardRank.
std::vector<double> DownwardRank(const Problem& problem, double transfer_weight);

// HEFT's placement: ready ops by falling rank (float [n_ops]; ties in topological order), each group where its first op ends first. Lines are
// taken to carry one transfer at a time. Where memory is limited, a device that would hold more bytes than its capacity (persistent
// ones, and outputs until their last consumer is placed) is taken only if all would.
std::vector<int32_t> EarliestFinishPlacement(const Problem& problem, const double* rank);

// The earliest task first (Hwang et al. 1989): of all pairs of a ready op and a device the one that starts first is next, ties to the
// higher rank (float [n_ops]). Transfers take their time but never wait for each other; memory does not count. Returns the devices and
// the ops in the order in which they start, [n_ops] each.
std::pair<std::vector<int32_t>, std::vector<int32_t>> EarliestStartSchedule(const Problem& problem, const double* rank);

// Always the ready op that adds least memory next (allocates minus frees; on one device), ties to the higher rank. `noise` (double
// [n_ops], or null) is a factor for what each op adds.
std::vector<int32_t> MemoryGreedyOrder(const Problem& problem, const double* rank, const double* noise);

// Post-order from the results: an op's inputs, the one with the largest tree first, then the op. `noise` (double [n_ops], or null) is a
// factor for the trees.
std::vector<int32_t> DepthFirstOrder(const Problem& problem, const double* noise);

}  // namespace tf_regal

#endif  // TF_REGAL_OPS_HEURISTICS_H_

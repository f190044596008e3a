"""List heuristics: priorities and placements that are computed once, in O(n log n) or near it. Each is a method and a seed of `regal`.

The loops over ops are in the native core (`tf_regal.ops`); here is what is a few lines of numpy, and the methods.
"""

import numpy as np

from tf_regal import ops
from tf_regal.problem import LIFETIME_PERSISTENT


def constrained(task, device):
    """The nearest allowed placement: every group goes where its first op is asked to go if it may, else to its default device."""
    problem, allowed = task.problem, task.simulator.allowed
    _, first = np.unique(problem.group, return_index=True)
    asked = np.asarray(device, np.int64)[first]
    may = (allowed >> asked.astype(np.uint64)) & np.uint64(1)
    chosen = np.where(may == 1, asked, np.asarray(task.default_device)[first])
    return chosen[problem.group].astype(np.int32)


def order_to_priority(order, n):
    """A list of ops, first to run first → float32 [n], higher first."""
    priority = np.empty(n, np.float32)
    priority[np.asarray(order)] = np.arange(n, 0, -1, dtype=np.float32)
    return priority


def upward_rank(task, transfer_weight=1.0):
    """Longest path from the start of each op to the end, with mean durations and transfers, ns, float64 [ops] (Topcuoglu et al. 2002, HEFT).

    transfer_weight: factor of the transfers' share.
    """
    return ops.upward_rank(task.simulator, transfer_weight)


def downward_rank(task, transfer_weight=1.0):
    """Longest path from the beginning to the start of each op, ns, float64 [ops]; costs as in `upward_rank`."""
    return ops.downward_rank(task.simulator, transfer_weight)


def heft_placement(task, rank):
    """HEFT's placement: ops by falling rank (float64 [ops]), each group on the device where its first op ends first. int32 [ops].

    What is already there counts: lanes, lines, tensors that were transferred before, and memory where it is limited.
    """
    return ops.earliest_finish_placement(task.simulator, rank)


def earliest_start(task, rank):
    """The earliest task first (Hwang et al. 1989): of all pairs of a ready op and a device the one that starts first is next, ties to the higher rank.

    Returns (device int32 [ops], priority float32 [ops]).
    """
    device, order = ops.earliest_start_schedule(task.simulator, rank)
    return device, order_to_priority(order, task.problem.n_ops)


def memory_greedy_order(task, noise=None):
    """Always the ready op that adds least memory next (allocates minus frees), for one device; ties to the longest path. int32 [ops].

    noise: float64 [ops] or None; factors of what each op adds.
    """
    return ops.memory_greedy_order(task.simulator, upward_rank(task), noise)


def depth_first_order(task, noise=None):
    """Post-order from the results: an op's inputs, the one with the largest tree first, then the op. int32 [ops].

    noise: float64 [ops] or None; factors of the trees' sizes.
    """
    return ops.depth_first_order(task.simulator, noise)


def depth_order(task):
    """Ops by their distance from the nearer end of the graph: from the inputs, or from the results. int32 [ops].

    In a training step the gradient ops of a layer are as far from the end as its forward ops are from the beginning: so cuts of this
    order keep layers whole, where cuts of an execution order part the forward from the backward pass.
    """
    return np.argsort(np.minimum(downward_rank(task), upward_rank(task)), kind="stable").astype(np.int32)


def chunk_placement(task, order, weight, shares=None):
    """Cuts an order into one run per device (int32 [ops]).

    Args:
        weight: float [ops]. shares: float [devices], how much of the weight each device gets; None: equal shares.
    """
    d = task.problem.n_devices
    total = np.cumsum(np.asarray(weight, float)[order])
    parts = np.cumsum(np.full(d, 1 / d) if shares is None else np.asarray(shares) / np.sum(shares))
    bounds = total[-1] * parts[:-1] if len(total) else []
    device = np.empty(task.problem.n_ops, np.int32)
    device[order] = np.searchsorted(bounds, total, side="left") if d > 1 else 0
    return constrained(task, device)


def balance_weights(problem):
    """Weights for `chunk_placement`: mean duration (ns), and bytes (persistent and outputs) per op."""
    allowed = problem.duration >= 0
    duration = np.where(allowed, problem.duration, 0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    held = problem.persistent.astype(float)
    np.add.at(held, problem.producer, problem.size * (problem.lifetime != LIFETIME_PERSISTENT))
    return duration, held


def run_heft(task, budget):
    """HEFT: upward ranks, each op where it ends first."""
    rank = upward_rank(task)
    return task.evaluate(heft_placement(task, rank), rank.astype(np.float32))


def run_critical_path(task, budget):
    """Default placement, longest path first."""
    return task.evaluate(task.default_device, upward_rank(task).astype(np.float32))


def run_memory_greedy(task, budget):
    """Default placement, the op that adds least memory next."""
    return task.evaluate(task.default_device, order_to_priority(memory_greedy_order(task), task.problem.n_ops))


def run_depth_first(task, budget):
    """Default placement, post-order from the results."""
    return task.evaluate(task.default_device, order_to_priority(depth_first_order(task), task.problem.n_ops))


def run_topological(task, budget):
    """A depth-first order cut into one run per device, balanced by work for "runtime" and by bytes for "peak_memory"."""
    order = depth_first_order(task)
    work, held = balance_weights(task.problem)
    device = chunk_placement(task, order, work if task.objective == "runtime" else held)
    return task.evaluate(device, order_to_priority(order, task.problem.n_ops))

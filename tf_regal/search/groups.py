"""The undirected graph of colocation groups, and its partitions: placements that send little over slow links."""

import dataclasses

import numpy as np

from tf_regal import ops
from tf_regal.search import heuristics


@dataclasses.dataclass(frozen=True)
class Edges:
    """Between groups, as CSR, each in both directions: ptr int32 [groups + 1], target int32, size float64 (bytes), transfers int64 (tensors, control edges)."""

    ptr: np.ndarray
    target: np.ndarray
    size: np.ndarray
    transfers: np.ndarray


def edges(problem):
    """The `Edges` of a problem."""
    consumer = np.repeat(np.arange(problem.n_ops), np.diff(problem.input_ptr))
    # A tensor that several ops of a group take is sent there once.
    pairs = np.unique(np.stack([problem.input_idx, problem.group[consumer]], axis=1), axis=0)
    source, target, size = problem.group[problem.producer[pairs[:, 0]]], pairs[:, 1], problem.size[pairs[:, 0]]
    after = np.repeat(np.arange(problem.n_ops), np.diff(problem.control_ptr))
    source = np.concatenate([source, problem.group[problem.control_idx]])
    target = np.concatenate([target, problem.group[after]])
    size = np.concatenate([size, np.zeros(len(after), np.int64)])
    between = source != target
    source, target, size = source[between], target[between], size[between]
    ends = np.concatenate([np.stack([source, target], axis=1), np.stack([target, source], axis=1)])
    found, which = np.unique(ends, axis=0, return_inverse=True)
    which = which.ravel()
    weight = np.bincount(which, weights=np.concatenate([size, size]), minlength=len(found))
    transfers = np.bincount(which, minlength=len(found))
    ptr = np.searchsorted(found[:, 0], np.arange(problem.n_groups + 1)).astype(np.int32)
    return Edges(ptr, found[:, 1].astype(np.int32), weight, transfers)


def balances(problem):
    """[(vertex weights float64 [groups], shares float64 [devices] with sum 1)]: by work, and by bytes."""
    work, held = heuristics.balance_weights(problem)
    duration = np.where(problem.duration >= 0, problem.duration, np.nan)
    together = ~np.isnan(duration).any(axis=1)  # ops that run on every device tell how fast devices are
    mean = duration[together].mean(axis=0) if together.any() else np.ones(problem.n_devices)
    speed = problem.lanes / np.maximum(mean, 1e-9)
    result = []
    for weight, share in ((work, speed), (held, problem.capacity.astype(float))):
        total = np.bincount(problem.group, weights=weight, minlength=problem.n_groups)
        share = np.maximum(share / share.sum(), 1e-3)  # no part is empty
        result.append((total, share / share.sum()))
    return result


def partition_placement(task, balance, imbalance, seed, known=None):
    """A placement with little to send: groups parted so that the time of what crosses is small. int32 [ops].

    Args:
        balance: one of `balances`. imbalance: how far a device's part may be off its share, as a part of the whole. known: `edges`, if they are there.
    """
    problem = task.problem
    between = known if known is not None else edges(problem)
    others = ~np.eye(problem.n_devices, dtype=bool)
    cost = problem.latency[others].mean() * between.transfers + problem.ns_per_byte[others].mean() * between.size
    weight, shares = balance
    # Where links are free, few edges all the same: what crosses has to wait.
    parts = ops.partition(between.ptr, between.target, cost + 1.0, weight, shares.tolist(), imbalance, seed)
    return heuristics.constrained(task, parts[problem.group])

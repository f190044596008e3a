"""A search task as tensors for the policy's network: scale-free, and of the same widths for any number of ops and devices. Needs no TensorFlow.

Sizes and durations only ever enter as shares or ratios, so that a graph with all bytes or all nanoseconds doubled has the same features. What list
heuristics say about an op (its place in their orders, the device they put it on) is among them: the network need not learn to find longest paths, but
when to trust which heuristic.
"""

import dataclasses

import numpy as np

from tf_regal.problem import LIFETIME_PERSISTENT, UNLIMITED
from tf_regal.search import heuristics

VERSION = 1
"""Goes up with every change of what a feature means; a policy refuses features of another version."""

OP_FEATURES = (
    "upward rank", "upward rank without transfers", "downward rank", "distance from the nearer end",  # shares of the largest
    "place in memory-greedy order", "place in depth-first order", "place in earliest-start order", "place in first-come order",  # 0 first, 1 last
    "duration", "output bytes", "input bytes", "persistent bytes", "scratch bytes",  # log(1 + x / mean) / 4
    "bytes kept minus bytes freed",  # by the op, as a share of the larger: −1 to 1
    "working set",  # inputs, outputs and scratch as a share of the largest op's
    "inputs", "consumers",  # log(1 + count) / 4
    "allowed devices",  # share
    "devices", "ops", "transfers", "memory", "slack",  # of the whole graph: see `_graph_features`
)
DEVICE_FEATURES = (
    "finishes earliest (HEFT)", "starts earliest (ETF)", "cut of depth-first order by work", "cut of depth-first order by bytes",
    "cut by distance from the nearer end by work", "cut by distance from the nearer end by bytes", "default",  # 1 where that puts the op there
    "allowed",  # 0 or 1
    "position",  # of the device among them, −1 to 1
    "duration",  # log2 of the op's duration here against its mean duration
    "memory",  # of the device, as a share of the largest one's
)


@dataclasses.dataclass(frozen=True)
class Features:
    """What the network takes, all float32 unless said otherwise; n ops, d devices, e edges (a pair of ops counts once).

    op [n, len(OP_FEATURES)]; device [n, d, len(DEVICE_FEATURES)]; source, target int32 [e]: data and control edges;
    forward [e]: weights of the edges into each op, sum 1 per target; backward [e]: out of each op, sum 1 per source. Half of a weight is equal
    shares, the other half goes by bytes. order int32 [n]: a topological order, for networks that read the graph as a sequence.
    """

    op: np.ndarray
    device: np.ndarray
    source: np.ndarray
    target: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    order: np.ndarray


def extract(task):
    """Features of a `search.Task`; deterministic. Costs a dozen list heuristics, about O(n log n)."""
    p, n, d = task.problem, task.problem.n_ops, task.problem.n_devices
    duration, held = heuristics.balance_weights(p)
    upward, without = heuristics.upward_rank(task), heuristics.upward_rank(task, 0.0)
    downward = heuristics.downward_rank(task)
    greedy, depth = heuristics.memory_greedy_order(task), heuristics.depth_first_order(task)
    layers = heuristics.depth_order(task)
    start_device, start_priority = heuristics.earliest_start(task, upward) if d > 1 else (task.default_device, upward)
    first_come = task.simulator.run(task.default_device, np.zeros(n, np.float32), discipline="fifo", timeline=True).start_order

    output = np.bincount(p.producer, p.size * (p.lifetime != LIFETIME_PERSISTENT), n)
    consumer = np.repeat(np.arange(n), np.diff(p.input_ptr))
    taken = np.bincount(consumer, p.size[p.input_idx], n)
    consumers = np.maximum(np.bincount(p.input_idx, minlength=p.n_tensors), 1)
    freed = np.bincount(consumer, p.size[p.input_idx] / consumers[p.input_idx], n)  # each consumer counts for its part
    scratch = p.scratch.max(axis=1, initial=0).astype(float)
    working = output + taken + scratch
    allowed = p.duration >= 0
    per_op = [
        _share(upward), _share(without), _share(downward), _share(np.minimum(upward, downward)),
        _place(greedy, n), _place(depth, n), _place(np.argsort(-start_priority, kind="stable"), n), _place(first_come, n),
        _log(duration), _log(output), _log(taken), _log(p.persistent.astype(float)), _log(scratch),
        (output - freed) / np.maximum(np.maximum(output, freed), 1), _share(working),
        np.log1p(np.diff(p.input_ptr)) / 4, np.log1p(np.bincount(p.producer[p.input_idx], minlength=n)) / 4,
        allowed.mean(axis=1),
        *(np.full(n, value) for value in _graph_features(task, duration, output, without)),
    ]  # fmt: skip
    placements = [
        heuristics.heft_placement(task, upward) if d > 1 else task.default_device, start_device,
        *(heuristics.chunk_placement(task, order, weight) for order in (depth, layers) for weight in (duration, held)), task.default_device,
    ]  # fmt: skip
    devices = np.arange(d)
    per_device = [np.asarray(device)[:, None] == devices for device in placements]
    capacity = np.minimum(p.capacity, p.capacity[p.capacity < UNLIMITED].max(initial=1)).astype(float)
    ratio = np.where(allowed, np.log2(np.maximum(p.duration, 1) / np.maximum(duration, 1)[:, None]), 0)
    per_device += [
        allowed, np.broadcast_to(2 * (devices + 0.5) / d - 1, (n, d)), np.clip(ratio, -4, 4) / 4, np.broadcast_to(capacity / capacity.max(initial=1), (n, d)),
    ]  # fmt: skip
    source, target, forward, backward = _edges(p, consumer)
    return Features(
        np.stack(per_op, axis=1).astype(np.float32).reshape(n, len(OP_FEATURES)),
        np.stack(per_device, axis=2).astype(np.float32).reshape(n, d, len(DEVICE_FEATURES)),
        source, target, forward, backward, np.asarray(task.simulator.topological_order, np.int32),
    )  # fmt: skip


def _graph_features(task, duration, output, upward):
    """devices: d / 8; ops: log10(n) / 4; transfers: log2 of the mean tensor's transfer against the mean op's duration, / 8, −1 to 1 (−1: free);
    memory: what all outputs and the state would take, as a share of all devices' memory, at most 1; slack: the longest path as a share of the work."""
    p = task.problem
    n, d = p.n_ops, p.n_devices
    between = ~np.eye(d, dtype=bool)
    transfer = (p.latency[between].mean() + p.ns_per_byte[between].mean() * p.size.mean()) if d > 1 and p.n_tensors else 0.0
    ratio = transfer / max(duration.mean(), 1.0) if n else 0.0
    limited = p.capacity < UNLIMITED
    everything = output.sum() + p.persistent.sum()
    memory = everything / max(p.capacity[limited].astype(float).sum(), 1.0) if limited.all() else 0.0
    return d / 8, np.log10(max(n, 1)) / 4, np.clip(np.log2(max(ratio, 2**-8)) / 8, -1, 1), min(memory, 1.0), upward.max(initial=0) / max(duration.sum(), 1.0)


def _edges(p, consumer):
    n = p.n_ops
    after = np.repeat(np.arange(n), np.diff(p.control_ptr))
    source = np.concatenate([p.producer[p.input_idx], p.control_idx]).astype(np.int64)
    target = np.concatenate([consumer, after]).astype(np.int64)
    size = np.concatenate([p.size[p.input_idx], np.zeros(len(after), np.int64)]).astype(float)
    pairs, back = np.unique(target * n + source, return_inverse=True)
    size = np.bincount(back.reshape(-1), size, len(pairs))
    source, target = pairs % max(n, 1), pairs // max(n, 1)
    return source.astype(np.int32), target.astype(np.int32), _weights(size, target, n), _weights(size, source, n)


def _weights(size, at, n):
    count, total = np.bincount(at, minlength=n)[at], np.bincount(at, size, n)[at]
    equal = 1 / np.maximum(count, 1)
    return (0.5 * equal + 0.5 * np.where(total > 0, size / np.maximum(total, 1), equal)).astype(np.float32)


def _share(values):
    return values / max(values.max(initial=0), 1)


def _place(order, n):
    place = np.empty(n)
    place[np.asarray(order)] = np.arange(n) / max(n - 1, 1)
    return place


def _log(values):
    mean = values.mean() if values.size else 0.0
    return np.log1p(values / mean) / 4 if mean > 0 else np.zeros_like(values)

"""Problems for the tests: a small builder for cases made by hand, random problems and candidates, and a strategy."""

import dataclasses

import hypothesis.strategies as st
import numpy as np

from tf_regal.problem import LIFETIME_NORMAL, LIFETIME_OUTPUT, LIFETIME_PERSISTENT, UNLIMITED, Problem, csr


class Graph:
    """Builds a Problem op by op. Indices of ops and tensors are those of the calls, from 0.

    Numbers that a row or table is expected for apply to each device or pair of devices.
    """

    def __init__(self, devices=1, lanes=1, latency=0, ns_per_byte=0.0, capacity=UNLIMITED, blocking=False):
        self.devices, self.blocking = devices, blocking
        self.lanes, self.capacity = np.broadcast_to(lanes, devices), np.broadcast_to(capacity, devices)
        self.latency = np.broadcast_to(latency, (devices, devices))
        self.ns_per_byte = np.broadcast_to(ns_per_byte, (devices, devices))
        self.ops, self.tensors = [], []

    def op(self, duration=1, inputs=(), after=(), scratch=0, persistent=0, group=None):
        """Add an op that takes tensors and runs after other ops, by default in a group of its own. Returns the op."""
        self.ops.append({
            "duration": np.broadcast_to(duration, self.devices), "scratch": np.broadcast_to(scratch, self.devices),
            "persistent": persistent, "group": len(self.ops) if group is None else group, "inputs": list(inputs),
            "control": list(after)})
        return len(self.ops) - 1

    def tensor(self, producer, size=1, view=-1, lifetime=LIFETIME_NORMAL, reuse=()):
        """Add an output of an op. Returns its index."""
        self.tensors.append({"producer": producer, "size": size, "view": view, "lifetime": lifetime,
                             "reuse": list(reuse)})
        return len(self.tensors) - 1

    def source(self, size=1, duration=1, **tensor):
        """An op without inputs and its one output. Returns the tensor's index."""
        return self.tensor(self.op(duration), size, **tensor)

    def problem(self):
        def rows(items, name, width=None):
            values = [item[name] for item in items]
            return np.array(values, np.int64) if width is None else np.array(values, np.int64).reshape(-1, width)

        pointers = {}
        for name, items, key in (("reuse", self.tensors, "reuse"), ("input", self.ops, "inputs"),
                                 ("control", self.ops, "control")):
            pointers[f"{name}_ptr"], pointers[f"{name}_idx"] = csr([item[key] for item in items])
        return Problem(
            duration=rows(self.ops, "duration", self.devices), scratch=rows(self.ops, "scratch", self.devices),
            persistent=rows(self.ops, "persistent"), group=rows(self.ops, "group"),
            producer=rows(self.tensors, "producer"), size=rows(self.tensors, "size"),
            view=rows(self.tensors, "view"), lifetime=rows(self.tensors, "lifetime"), lanes=self.lanes,
            capacity=self.capacity, latency=self.latency, ns_per_byte=self.ns_per_byte,
            blocking_transfers=self.blocking, **pointers)


def random_problem(rng, n_ops, n_devices, *, max_lanes=3, blocking=None):
    """A random valid problem. Small numbers, so that events often coincide and buffers often have equal sizes.

    Args:
        rng: numpy Generator.
        n_ops, n_devices: size of the problem.
        max_lanes: most lanes of a device.
        blocking: whether transfers block; None draws it.
            If the view is the later one, the page lets both live in the buffer, which breaks the page's own lower
            bound of the peak (test_bounds.py).
    """
    if blocking is None:
        blocking = rng.random() < 0.3
    graph = Graph(
        n_devices, lanes=rng.integers(1, max_lanes + 1, n_devices), blocking=bool(blocking),
        latency=rng.choice([0, 0, 1, 2, 5], (n_devices, n_devices)) * (rng.random() < 0.7),
        ns_per_byte=rng.choice([0.0, 0.1, 0.25, 1.0], (n_devices, n_devices)) * (rng.random() < 0.7))
    duration = rng.choice([0, 1, 1, 2, 3, 5], (n_ops, n_devices))
    groups = _random_groups(rng, n_ops)
    duration[_random_forbidden(rng, groups, n_devices)] = -1
    scratch = rng.choice([0, 0, 3, 8], (n_ops, n_devices))
    # Made in topological order; names are shuffled so that an op's index tells nothing of its place in the graph.
    op_names, sizes = rng.permutation(n_ops), []
    view_probability, reuse_probability = rng.choice([0.0, 0.25, 0.6]), rng.choice([0.0, 0.4, 0.9])
    for place in range(n_ops):
        inputs = _random_subset(rng, len(graph.tensors), rng.integers(0, 4))
        graph.op(duration[place], inputs, _random_subset(rng, place, int(rng.choice([0, 0, 0, 1, 2]))), scratch[place],
                 persistent=int(rng.choice([0, 0, 0, 7, 16])), group=groups[place])
        for _ in range(rng.integers(0, 4)):
            size = int(rng.choice([0, 4, 8, 8, 8, 10]))
            view, reuse = -1, []
            if inputs and rng.random() < view_probability:
                view = inputs[rng.integers(len(inputs))]
                if rng.random() < 0.8:
                    size = sizes[view]
            if inputs and rng.random() < reuse_probability:
                reuse = [inputs[i] for i in rng.permutation(len(inputs))[:rng.integers(1, 4)]]
            lifetime = int(rng.choice([LIFETIME_NORMAL] * 8 + [LIFETIME_OUTPUT, LIFETIME_PERSISTENT]))
            sizes.append(size)
            graph.tensor(place, size, view, lifetime, reuse)
    if rng.random() < 0.5:
        needed = sum(sizes) + sum(op["persistent"] for op in graph.ops)
        graph.capacity = rng.integers(needed // 4, 1 + needed, n_devices)
    return _renamed(graph, op_names, rng.permutation(len(sizes))).problem()


def _random_subset(rng, population, count):
    return rng.permutation(population)[:count].tolist()


def _random_groups(rng, n_ops):
    """By op: its group. Groups of one op are the most frequent; numbered 0 … g − 1 without gaps, in any order."""
    labels = np.arange(n_ops)
    for op in range(1, n_ops):
        if rng.random() < 0.25:
            labels[op] = labels[rng.integers(op)]
    used, groups = np.unique(labels, return_inverse=True)
    return rng.permutation(len(used))[groups].tolist()


def _random_forbidden(rng, groups, n_devices):
    """bool [n_ops, n_devices]; each group keeps a device where all its ops may run."""
    forbidden = rng.random((len(groups), n_devices)) < rng.choice([0.0, 0.2, 0.6])
    haven = rng.integers(0, n_devices, max(groups, default=-1) + 1)
    for op, group in enumerate(groups):
        forbidden[op, haven[group]] = False
    return forbidden


def _renamed(graph, op_names, tensor_names):
    """The same graph with other indices: op i becomes op_names[i], tensor i becomes tensor_names[i]."""
    ops, tensors = [None] * len(graph.ops), [None] * len(graph.tensors)
    for old, tensor in enumerate(graph.tensors):
        tensors[tensor_names[old]] = dict(
            tensor, producer=int(op_names[tensor["producer"]]), reuse=[int(tensor_names[t]) for t in tensor["reuse"]],
            view=int(tensor_names[tensor["view"]]) if tensor["view"] >= 0 else -1)
    for old, op in enumerate(graph.ops):
        ops[op_names[old]] = dict(op, inputs=[int(tensor_names[t]) for t in op["inputs"]],
                                  control=[int(op_names[p]) for p in op["control"]])
    graph.ops, graph.tensors = ops, tensors
    return graph


def group_devices(problem):
    """By group: the devices where all its ops may run."""
    allowed = np.ones((problem.n_groups, problem.n_devices), bool)
    for op, group in enumerate(problem.group.tolist()):
        allowed[group] &= problem.duration[op] >= 0
    return [np.flatnonzero(row) for row in allowed]


def random_candidate(rng, problem):
    """(device, priority, transfer_priority or None): a valid placement and priorities, with or without ties."""
    choice = np.array([rng.choice(devices) for devices in group_devices(problem)], np.int32)
    device = choice[problem.group] if problem.n_ops else np.zeros(0, np.int32)
    quantised = rng.random() < 0.5

    def keys(*shape):
        return (rng.integers(-1, 2, shape) if quantised else rng.standard_normal(shape)).astype(np.float32)

    transfer_priority = keys(problem.n_tensors, problem.n_devices) if rng.random() < 0.7 else None
    return device, keys(problem.n_ops), transfer_priority


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem and a candidate that a few integers determine; its repr is all that is needed to make it again."""

    seed: int
    n_ops: int
    n_devices: int
    discipline: str = "priority"

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        problem = random_problem(rng, self.n_ops, self.n_devices)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "candidate", random_candidate(rng, problem))

    def __iter__(self):
        return iter((self.problem, self.candidate, self.discipline))


def random_cases(max_ops=12, max_devices=4):
    """Hypothesis strategy of Case."""
    return st.builds(Case, seed=st.integers(0, 2**32 - 1), n_ops=st.integers(0, max_ops),
                     n_devices=st.integers(1, max_devices), discipline=st.sampled_from(["priority", "fifo", "lifo"]))

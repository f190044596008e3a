"""One-shot priority sampling (Jeon et al., ICLR 2023) without its network."""

import heapq

import numpy as np

from tf_regal.search import heuristics
from tf_regal.search.incumbent import Incumbent

_SAMPLES = 256
_COLDEST, _HOTTEST = 0.02, 1.0


def run(task, budget):
    """The best of 256 list schedules (fewer where the budget is smaller) from noisy priorities.

    The paper's network gives every op a logit once, Gumbel noise on the logits samples orders (Plackett–Luce), and list scheduling turns
    each order into a plan. Here the learned logits are absent: in their stead stand the op's upward rank and, for
    "peak_memory" in every other sample, its place in depth-first order, both scaled to deviation 1. The noise grows from none in the first samples to
    the deviation of the logits in the last. Each op, by falling priority among the ready ones, goes (with its group) where it can end first; for
    "peak_memory", in every other pair of samples, where fewest bytes are held.
    """
    n, rng = task.problem.n_ops, np.random.default_rng(task.seed)
    rank = heuristics.upward_rank(task)
    logits = [_scaled(rank)]
    if task.objective == "peak_memory":
        logits.insert(0, _scaled(heuristics.order_to_priority(heuristics.depth_first_order(task), n)))
    placer = _Placer(task)
    samples = min(_SAMPLES, budget.evaluations)
    kinds = 2 * len(logits) if task.objective == "peak_memory" else 1
    noise = np.geomspace(_COLDEST, _HOTTEST, max(samples - kinds, 1))
    incumbent = Incumbent(task, budget)
    for sample in range(samples):
        temperature = 0.0 if sample < kinds else noise[sample - kinds]
        priority = (logits[sample % len(logits)] + temperature * rng.gumbel(size=n)).astype(np.float32)
        by_bytes = task.objective == "peak_memory" and sample % 4 >= 2
        incumbent.offer(placer.place(priority.tolist(), by_bytes), priority)
        if incumbent.done:
            break
    return incumbent.solution()


def _scaled(values):
    values = np.asarray(values, float)
    return (values - values.mean()) / (values.std() or 1.0)


class _Placer:
    """List scheduling of one order of priorities on all devices; transfers take their time but never wait for each other."""

    def __init__(self, task):
        problem = self._problem = task.problem
        self._edges, self._n_devices = task.edges, problem.n_devices
        self._duration, self._latency, self._rate = problem.duration.tolist(), problem.latency.tolist(), problem.ns_per_byte.tolist()
        self._size, self._group, self._lanes = problem.size.tolist(), problem.group.tolist(), problem.lanes.tolist()
        allowed = task.simulator.allowed.tolist()
        self._choices = [[q for q in range(problem.n_devices) if mask >> q & 1] for mask in allowed]
        self._held = heuristics.balance_weights(problem)[1].tolist()
        self._pending = self._edges.n_predecessors()

    def place(self, priority, by_bytes):
        """int32 [ops]. by_bytes: a group goes to the device that holds fewest bytes, not to where its first op ends first."""
        n, edges, group = self._problem.n_ops, self._edges, self._group
        if self._n_devices == 1:
            return np.zeros(n, np.int32)
        device, end, pending = [0] * n, [0.0] * n, list(self._pending)
        of_group = [-1] * self._problem.n_groups
        free = [[0.0] * lanes for lanes in self._lanes]
        bytes_held = [0.0] * self._n_devices
        ready = [(-priority[op], op) for op in range(n) if pending[op] == 0]
        heapq.heapify(ready)
        while ready:
            _, op = heapq.heappop(ready)
            g = group[op]
            choices = self._choices[g] if of_group[g] < 0 else (of_group[g],)
            if by_bytes and len(choices) > 1:
                choices = (min(choices, key=lambda q: (bytes_held[q], q)),)
            finish, q = min((self._finish(op, q, device, end, free[q][0]), q) for q in choices)
            heapq.heapreplace(free[q], finish)
            of_group[g], device[op], end[op] = q, q, finish
            bytes_held[q] += self._held[op]
            for successor in edges.successors(op):
                pending[successor] -= 1
                if pending[successor] == 0:
                    heapq.heappush(ready, (-priority[successor], successor))
        return np.array(device, np.int32)

    def _finish(self, op, q, device, end, free):
        """When the op would end on device q, ns."""
        at = free
        for tensor in self._edges.inputs[op]:
            source = self._edges.producer[tensor]
            p = device[source]
            arrival = end[source] if p == q else end[source] + self._latency[p][q] + self._size[tensor] * self._rate[p][q]
            at = max(at, arrival)
        for source in self._edges.control[op]:
            p = device[source]
            at = max(at, end[source] if p == q else end[source] + self._latency[p][q])
        return at + self._duration[op][q]

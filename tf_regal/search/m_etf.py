"""m-ETF of Baechi (Jeon et al., SoCC 2020): the earliest task first (Hwang et al. 1989), on devices whose memory still holds it."""

import heapq

import numpy as np

from tf_regal.problem import LIFETIME_OUTPUT, LIFETIME_PERSISTENT
from tf_regal.search import heuristics
from tf_regal.search.incumbent import Incumbent


def run(task, budget):
    """Of all pairs of a ready op and a device where it fits, the one that starts first is next; ties to the larger upward rank.

    Transfers take their time but never wait for each other. Memory is counted as Baechi counts it, not as the simulator does: persistent
    memory, of a whole colocation group at once with its first op; outputs and their copies on other devices until all ops that use them anywhere
    have ended; scratch while the op runs; views cost nothing, nothing is reused in place. Where nothing fits and nothing is left to be freed, the
    pair that lacks fewest bytes is taken: the plan may then be infeasible.
    """
    schedule = _Schedule(task)
    incumbent = Incumbent(task, budget)
    incumbent.offer(*schedule.make())
    return incumbent.solution()


class _Schedule:
    def __init__(self, task):
        problem, self._edges = task.problem, task.edges
        self._n, self._d = problem.n_ops, problem.n_devices
        self._duration, self._scratch, self._size = problem.duration.tolist(), problem.scratch.tolist(), problem.size.tolist()
        self._latency, self._rate = problem.latency.tolist(), problem.ns_per_byte.tolist()
        self._group, allowed = problem.group.tolist(), task.simulator.allowed.tolist()
        self._rank = heuristics.upward_rank(task).tolist()
        self._choices = [[q for q in range(self._d) if mask >> q & 1] for mask in allowed]
        self._persistent = np.bincount(problem.group, weights=problem.persistent, minlength=problem.n_groups).tolist()
        self._root = self._roots(problem, task.simulator.topological_order.tolist())
        self._lifetime = problem.lifetime.tolist()
        # Uses of a buffer that are still to end: its producer's run, its consumers and those of its views, and one for ever where it is kept.
        self._uses = [0] * problem.n_tensors
        for op in range(self._n):
            for root in self._touched(op):
                self._uses[root] += 1
        for tensor, lifetime in enumerate(self._lifetime):
            self._uses[self._root[tensor]] += lifetime == LIFETIME_OUTPUT
        self._room = [float(c) for c in problem.capacity.tolist()]
        self._free = [[0.0] * lanes for lanes in problem.lanes.tolist()]
        self._copies = [[] for _ in range(problem.n_tensors)]  # per buffer: the devices that hold it
        self._device, self._end, self._of_group = [-1] * self._n, [0.0] * self._n, [-1] * problem.n_groups
        self._waiting = [[] for _ in range(self._d)]  # by the time when the inputs are there
        self._startable = [[] for _ in range(self._d)]  # inputs are there when the device is free: by rank
        self._blocked = [[] for _ in range(self._d)]  # do not fit: by the bytes needed
        self._ends, self._now = [], 0.0

    def make(self):
        """(device int32 [ops], priority float32 [ops])."""
        pending, order = self._edges.n_predecessors(), []
        for op in range(self._n):
            if pending[op] == 0:
                self._enter(op)
        while len(order) < self._n:
            found = min(((self._earliest(q), -self._rank[self._first(q)], q) for q in range(self._d) if self._first(q) is not None), default=None)
            if self._ends and (found is None or self._ends[0][0] <= found[0]):
                self._end_ops()
                continue
            if found is None:
                op, q = self._least_excess()
                start = max(self._now, self._inputs_there(op, q))
            else:
                start, _, q = found
                op = self._take(q)
                need = self._need(op, q)
                if need > self._room[q]:
                    heapq.heappush(self._blocked[q], (need, op))
                    continue
            self._start(op, q, start)
            order.append(op)
            for successor in self._edges.successors(op):
                pending[successor] -= 1
                if pending[successor] == 0:
                    self._enter(successor)
        return np.array(self._device, np.int32), heuristics.order_to_priority(order, self._n)

    def _roots(self, problem, order):
        """Per tensor the one whose buffer it shares as a view, itself where none."""
        root = list(range(problem.n_tensors))
        for op in order:
            for tensor in self._edges.outputs[op]:
                if problem.view[tensor] >= 0 and problem.lifetime[tensor] != LIFETIME_PERSISTENT:
                    root[tensor] = root[problem.view[tensor]]
        return root

    def _touched(self, op):
        return {self._root[t] for t in self._edges.inputs[op]} | {self._root[t] for t in self._edges.outputs[op]}

    # Ready ops, per device.

    def _enter(self, op):
        of_group = self._of_group[self._group[op]]
        for q in self._choices[self._group[op]] if of_group < 0 else (of_group,):
            heapq.heappush(self._waiting[q], (self._inputs_there(op, q), -self._rank[op], op))

    def _inputs_there(self, op, q):
        at = 0.0
        for tensor in self._edges.inputs[op]:
            source = self._edges.producer[tensor]
            p = self._device[source]
            at = max(at, self._end[source] if p == q else self._end[source] + self._latency[p][q] + self._size[tensor] * self._rate[p][q])
        for source in self._edges.control[op]:
            p = self._device[source]
            at = max(at, self._end[source] if p == q else self._end[source] + self._latency[p][q])
        return at

    def _stale(self, op, q):
        return self._device[op] >= 0 or self._of_group[self._group[op]] not in (-1, q)

    def _first(self, q):
        """The op that would start first on q, or None."""
        waiting, startable, free = self._waiting[q], self._startable[q], max(self._free[q][0], self._now)
        while waiting and (waiting[0][0] <= free or self._stale(waiting[0][2], q)):
            _, negative_rank, op = heapq.heappop(waiting)
            heapq.heappush(startable, (negative_rank, op))
        while startable and self._stale(startable[0][1], q):
            heapq.heappop(startable)
        if startable:
            return startable[0][1]
        return waiting[0][2] if waiting else None

    def _earliest(self, q):
        free = max(self._free[q][0], self._now)
        return free if self._startable[q] else max(free, self._waiting[q][0][0])

    def _take(self, q):
        return heapq.heappop(self._startable[q])[1] if self._startable[q] else heapq.heappop(self._waiting[q])[2]

    # Memory.

    def _need(self, op, q):
        """Bytes that starting the op on q adds."""
        g = self._group[op]
        need = self._scratch[op][q] + (self._persistent[g] if self._of_group[g] < 0 else 0.0)
        need += sum(self._size[t] for t in self._edges.outputs[op] if self._owns(t))
        return need + sum(self._size[root] for root in self._missing(op, q))

    def _owns(self, tensor):
        return self._root[tensor] == tensor and self._lifetime[tensor] != LIFETIME_PERSISTENT

    def _missing(self, op, q):
        """Buffers of inputs that have to be copied to q."""
        roots = {self._root[t] for t in self._edges.inputs[op] if self._device[self._edges.producer[t]] != q}
        return [root for root in roots if q not in self._copies[root]]

    def _least_excess(self):
        pairs = ((self._need(op, q) - self._room[q], op, q) for q in range(self._d) for _, op in self._blocked[q] if not self._stale(op, q))
        return min(pairs)[1:]

    def _start(self, op, q, start):
        self._room[q] -= self._need(op, q)
        for root in self._missing(op, q):
            self._copies[root].append(q)
        for tensor in self._edges.outputs[op]:
            if self._owns(tensor):
                self._copies[tensor].append(q)
        self._of_group[self._group[op]] = q
        end = start + self._duration[op][q]
        self._device[op], self._end[op] = q, end
        heapq.heapreplace(self._free[q], end)
        heapq.heappush(self._ends, (end, op))

    def _end_ops(self):
        """Frees what the ops that end first no longer need."""
        self._now = self._ends[0][0]
        freed = set()
        while self._ends and self._ends[0][0] == self._now:
            op = heapq.heappop(self._ends)[1]
            q = self._device[op]
            self._room[q] += self._scratch[op][q]
            freed.add(q)
            for root in self._touched(op):
                self._uses[root] -= 1
                if self._uses[root] == 0:
                    for holder in self._copies[root]:
                        self._room[holder] += self._size[root]
                        freed.add(holder)
                    self._copies[root] = []
        for q in freed:
            while self._blocked[q] and self._blocked[q][0][0] <= self._room[q]:
                op = heapq.heappop(self._blocked[q])[1]
                if not self._stale(op, q):
                    heapq.heappush(self._waiting[q], (self._inputs_there(op, q), -self._rank[op], op))

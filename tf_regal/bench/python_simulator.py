"""The simulator of docs/simulator.md in Python: what a search would have to use without the native core. Only benchmarks do."""

import heapq
import itertools
import math


class PythonSimulator:
    """Scores candidates on one Problem; ready queues by priority. Same figures as `tf_regal.ops.Simulator`, which does this some hundred times as fast."""

    def __init__(self, problem):
        self._n, self._d = problem.n_ops, problem.n_devices
        self._duration, self._scratch = problem.duration.tolist(), problem.scratch.tolist()
        self._persistent, self._size = problem.persistent.tolist(), problem.size.tolist()
        self._view, self._lifetime = problem.view.tolist(), problem.lifetime.tolist()
        self._inputs = _rows(problem.input_ptr, problem.input_idx)
        control = _rows(problem.control_ptr, problem.control_idx)
        self._producer = problem.producer.tolist()
        self._outputs = [[] for _ in range(self._n)]
        for tensor, op in enumerate(self._producer):
            self._outputs[op].append(tensor)
        viewed = {(op, self._view[tensor]) for tensor, op in enumerate(self._producer)}
        reuse = _rows(problem.reuse_ptr, problem.reuse_idx)
        self._reuse = [[t for t in row if (op, t) not in viewed] for op, row in zip(self._producer, reuse, strict=True)]
        self._consumers, self._successors = [[] for _ in range(problem.n_tensors)], [[] for _ in range(self._n)]
        for op in range(self._n):
            for tensor in self._inputs[op]:
                self._consumers[tensor].append(op)
            for source in control[op]:
                self._successors[source].append(op)
        self._pending = [len(i) + len(c) for i, c in zip(self._inputs, control, strict=True)]
        self._lanes, self._blocking = problem.lanes.tolist(), bool(problem.blocking_transfers)
        self._latency, self._rate = problem.latency.tolist(), problem.ns_per_byte.tolist()

    def run(self, device, priority, transfer_priority):
        """device [ops], priority [ops], transfer_priority [tensors, devices], as lists → (makespan ns, peak bytes per device)."""
        d, latency, rate, lifetime, view = self._d, self._latency, self._rate, self._lifetime, self._view
        on, elsewhere = {}, [[] for _ in self._consumers]  # consumers per (tensor, device), and the devices that a tensor is sent to
        for tensor, ops in enumerate(self._consumers):
            home = device[self._producer[tensor]]
            for op in ops:
                q = device[op]
                count = on.get((tensor, q), 0)
                if count == 0 and q != home:
                    elsewhere[tensor].append(q)
                on[tensor, q] = count + 1
        pending, free = list(self._pending), list(self._lanes)
        ready, links, busy = [[] for _ in range(d)], {}, set()
        in_use = [0] * d
        for op in range(self._n):
            in_use[device[op]] += self._persistent[op]
        peak, now, events, number = list(in_use), 0, [], itertools.count()
        buffers = {}  # (tensor, device) -> [bytes, uses]; None: persistent

        def arrive(ops, q):
            for op in ops:
                if device[op] == q:
                    pending[op] -= 1
                    if pending[op] == 0:
                        heapq.heappush(ready[q], (-priority[op], op))

        def end_use(tensor, q):
            buffer = buffers[tensor, q]
            if buffer is not None:
                buffer[1] -= 1
                if buffer[1] == 0:
                    in_use[q] -= buffer[0]

        def end_op(op):
            q = device[op]
            free[q] += 1
            in_use[q] -= self._scratch[op][q]
            for tensor in self._outputs[op]:
                arrive(self._consumers[tensor], q)
                for target in elsewhere[tensor]:
                    heapq.heappush(links.setdefault((q, target), []), (-transfer_priority[tensor][target], tensor))
            for target in {device[s] for s in self._successors[op]}:
                if target == q:
                    arrive(self._successors[op], q)
                else:
                    heapq.heappush(events, (now + latency[q][target], next(number), arrive, self._successors[op], target))
            for tensor in self._outputs[op]:
                end_use(tensor, q)
            for tensor in self._inputs[op]:
                end_use(tensor, q)

        def end_transfer(tensor, link):
            source, target = link
            busy.remove(link)
            if self._blocking:
                free[source] += 1
                free[target] += 1
            end_use(tensor, source)
            arrive(self._consumers[tensor], target)

        def start_transfers():
            for link in sorted(links):
                source, target = link
                if link in busy or not links[link] or (self._blocking and not (free[source] and free[target])):
                    continue
                if self._blocking:
                    free[source] -= 1
                    free[target] -= 1
                tensor = heapq.heappop(links[link])[1]
                busy.add(link)
                buffers[tensor, target] = [self._size[tensor], on[tensor, target]]
                in_use[target] += self._size[tensor]
                end = now + latency[source][target] + math.ceil(self._size[tensor] * rate[source][target])
                heapq.heappush(events, (end, next(number), end_transfer, tensor, link))

        def start_op(op, q):
            free[q] -= 1
            for tensor in self._outputs[op]:
                uses = on.get((tensor, q), 0) + len(elsewhere[tensor]) + (lifetime[tensor] == 1) + 1
                if lifetime[tensor] == 2:
                    buffers[tensor, q] = None
                    continue
                if view[tensor] >= 0:
                    buffer = buffers[view[tensor], q]
                else:
                    buffer = None
                    for other in self._reuse[tensor]:
                        held = buffers[other, q]
                        if held is not None and held[1] == 1 and held[0] == self._size[tensor]:
                            buffer = held
                            break
                    if buffer is None:
                        buffer = [self._size[tensor], 0]
                        in_use[q] += self._size[tensor]
                if buffer is not None:
                    buffer[1] += uses
                buffers[tensor, q] = buffer
            in_use[q] += self._scratch[op][q]
            heapq.heappush(events, (now + self._duration[op][q], next(number), end_op, op))

        for op in range(self._n):
            if pending[op] == 0:
                heapq.heappush(ready[device[op]], (-priority[op], op))
        while True:
            while events and events[0][0] == now:
                _, _, handle, *what = heapq.heappop(events)
                handle(*what)
            start_transfers()
            if not (events and events[0][0] == now):
                blocked = {q for link, queue in links.items() if queue for q in link} if self._blocking else ()
                for q in range(d):
                    while free[q] and ready[q] and q not in blocked:
                        start_op(heapq.heappop(ready[q])[1], q)
            peak = [max(pair) for pair in zip(peak, in_use, strict=True)]
            if not events:
                return now, peak
            now = events[0][0]


def _rows(ptr, idx):
    ptr, idx = ptr.tolist(), idx.tolist()
    return [idx[begin:end] for begin, end in itertools.pairwise(ptr)]

"""The slow twin of the native simulator: docs/simulator.md in plain Python, written for clarity.

It shares no code with the core, so that a mistake has to be made twice to stay hidden.
"""

import dataclasses
import itertools
import math

import numpy as np


@dataclasses.dataclass
class Result:
    makespan: int
    peak: list  # bytes by device
    transfer_bytes: int
    feasible: bool
    start: list  # ns by op
    end: list  # ns by op
    start_order: list  # op indices
    transfers: list  # (tensor, source, destination, start, end) in the order of their starts
    memory: list  # by device: [(ns, bytes after the change), …]


@dataclasses.dataclass
class Buffer:
    size: int
    uses: int = 0
    persistent: bool = False


def simulate(problem, device, priority, transfer_priority=None, discipline="priority"):
    """Run one candidate on the problem. Returns Result."""
    return _Run(problem, device, priority, transfer_priority, discipline).run()


class _Run:
    def __init__(self, problem, device, priority, transfer_priority, discipline):
        self.n, self.m, self.d = problem.n_ops, problem.n_tensors, problem.n_devices
        self.discipline = discipline
        self.device = [int(p) for p in device]
        # Priorities are float32 on the page: values that differ only beyond float32 are ties.
        self.priority = np.asarray(priority, np.float32).tolist()
        if transfer_priority is None:
            transfer_priority = np.zeros((self.m, self.d), np.float32)
        self.transfer_priority = np.asarray(transfer_priority, np.float32).tolist()

        # Python's ints cannot overflow, and lists are faster to index than arrays.
        self.duration, self.scratch = problem.duration.tolist(), problem.scratch.tolist()
        self.persistent = problem.persistent.tolist()
        self.producer, self.size = problem.producer.tolist(), problem.size.tolist()
        self.view, self.lifetime = problem.view.tolist(), problem.lifetime.tolist()
        self.reuse = possible_reuse(problem)
        self.inputs = _rows(problem.input_ptr, problem.input_idx)
        self.control = _rows(problem.control_ptr, problem.control_idx)
        self.capacity = problem.capacity.tolist()
        self.latency, self.ns_per_byte = problem.latency.tolist(), problem.ns_per_byte.tolist()
        self.blocking = bool(problem.blocking_transfers)

        self.outputs = [[] for _ in range(self.n)]
        for tensor, op in enumerate(self.producer):
            self.outputs[op].append(tensor)
        self.consumers = [[] for _ in range(self.m)]
        self.successors = [[] for _ in range(self.n)]
        for op in range(self.n):
            for tensor in self.inputs[op]:
                self.consumers[tensor].append(op)
            for predecessor in self.control[op]:
                self.successors[predecessor].append(op)

        self.time = 0
        self.events = {}  # ns → list of events, each a tuple that starts with its kind
        self.waiting = [{("tensor", t) for t in self.inputs[op]} | {("signal", p) for p in self.control[op]}
                        for op in range(self.n)]
        self.ready = [[] for _ in range(self.d)]  # ops in the order in which they joined
        self.free_lanes = problem.lanes.tolist()
        self.links = {(p, q): [] for p in range(self.d) for q in range(self.d) if p != q}  # queued tensors
        self.busy_links = set()

        self.buffers = {}  # (tensor, device) → Buffer; residences that share a buffer share the object
        self.in_use = [0] * self.d
        for op in range(self.n):
            self.in_use[self.device[op]] += self.persistent[op]
        self.peak = list(self.in_use)
        self.memory = [[(0, used)] for used in self.in_use]

        self.start, self.end, self.start_order, self.transfers = [-1] * self.n, [-1] * self.n, [], []

    # The loop.

    def run(self):
        self.join_queues([op for op in range(self.n) if not self.waiting[op]])
        while True:
            self.handle_events()  # step 1
            self.start_transfers()  # step 2
            if self.time in self.events:  # step 3
                continue
            self.start_ops()  # step 4
            if self.time in self.events:  # step 5: an op of duration 0 was started
                continue
            if not self.events:
                break
            self.time = min(self.events)
        assert min(self.end, default=0) >= 0, "deadlock"
        feasible = all(peak <= capacity for peak, capacity in zip(self.peak, self.capacity, strict=True))
        return Result(
            makespan=self.time, peak=self.peak, transfer_bytes=sum(self.size[t[0]] for t in self.transfers),
            feasible=feasible, start=self.start, end=self.end, start_order=self.start_order, transfers=self.transfers,
            memory=self.memory)

    def add_event(self, time, *event):
        self.events.setdefault(time, []).append(event)

    # Step 1.

    def handle_events(self):
        became_ready = []
        for kind, *what in self.events.pop(self.time, []):
            if kind == "op":
                became_ready += self.end_op(*what)
            elif kind == "transfer":
                became_ready += self.end_transfer(*what)
            else:
                became_ready += self.arrive("signal", *what)
        self.join_queues(became_ready)

    def join_queues(self, ops):
        for op in sorted(ops):
            self.ready[self.device[op]].append(op)

    def arrive(self, kind, index, place):
        """A tensor or signal is now on a device. Returns the ops that became ready by it."""
        dependents = self.consumers[index] if kind == "tensor" else self.successors[index]
        became_ready = []
        for op in dependents:
            if self.device[op] == place:
                self.waiting[op].remove((kind, index))
                if not self.waiting[op]:
                    became_ready.append(op)
        return became_ready

    def end_op(self, op):
        place = self.device[op]
        self.free_lanes[place] += 1
        self.change_memory(place, -self.scratch[op][place])
        became_ready = []
        for tensor in self.outputs[op]:
            became_ready += self.arrive("tensor", tensor, place)
            for destination in self.destinations(tensor):
                self.links[place, destination].append(tensor)
        for destination in {self.device[s] for s in self.successors[op]}:
            if destination == place:
                became_ready += self.arrive("signal", op, place)
            else:
                self.add_event(self.time + self.latency[place][destination], "signal", op, destination)
        for tensor in self.outputs[op] + self.inputs[op]:
            self.end_use(tensor, place)
        return became_ready

    def end_transfer(self, tensor, source, destination):
        self.busy_links.remove((source, destination))
        if self.blocking:
            self.free_lanes[source] += 1
            self.free_lanes[destination] += 1
        self.end_use(tensor, source)
        return self.arrive("tensor", tensor, destination)

    # Step 2.

    def start_transfers(self):
        for source, destination in sorted(self.links):
            queue = self.links[source, destination]
            if not queue or (source, destination) in self.busy_links:
                continue
            if self.blocking:
                if not self.free_lanes[source] or not self.free_lanes[destination]:
                    continue
                self.free_lanes[source] -= 1
                self.free_lanes[destination] -= 1
            tensor = min(queue, key=lambda t: (-self.transfer_priority[t][destination], t))
            queue.remove(tensor)
            self.busy_links.add((source, destination))
            self.buffers[tensor, destination] = Buffer(self.size[tensor], self.consumers_on(tensor, destination))
            self.change_memory(destination, self.size[tensor])
            ns = math.ceil(float(self.size[tensor]) * self.ns_per_byte[source][destination])
            end = self.time + self.latency[source][destination] + ns
            self.add_event(end, "transfer", tensor, source, destination)
            self.transfers.append((tensor, source, destination, self.time, end))
        self.sample_peak()

    # Step 4.

    def start_ops(self):
        blocked = {p for link, queue in self.links.items() if queue for p in link} if self.blocking else ()
        for place in range(self.d):
            while place not in blocked and self.free_lanes[place] and self.ready[place]:
                self.start_op(self.take_ready(place))
        self.sample_peak()

    def take_ready(self, place):
        queue = self.ready[place]
        if self.discipline == "fifo":
            return queue.pop(0)
        if self.discipline == "lifo":
            return queue.pop()
        op = min(queue, key=lambda o: (-self.priority[o], o))
        queue.remove(op)
        return op

    def start_op(self, op):
        place = self.device[op]
        assert self.duration[op][place] >= 0, "the op may not run on this device"
        self.free_lanes[place] -= 1
        self.start_order.append(op)
        self.start[op], self.end[op] = self.time, self.time + self.duration[op][place]
        self.add_event(self.end[op], "op", op)
        for tensor in self.outputs[op]:
            buffer = self.buffer_for_output(tensor, place)
            kept = 1 if self.lifetime[tensor] == 1 else 0
            buffer.uses += self.consumers_on(tensor, place) + len(self.destinations(tensor)) + kept + 1
            self.buffers[tensor, place] = buffer
        self.change_memory(place, self.scratch[op][place])

    # Memory.

    def buffer_for_output(self, tensor, place):
        if self.lifetime[tensor] == 2:
            return Buffer(self.size[tensor], persistent=True)
        if self.view[tensor] >= 0:
            return self.buffers[self.view[tensor], place]
        for candidate in self.reuse[tensor]:
            buffer = self.buffers[candidate, place]
            if not buffer.persistent and buffer.uses == 1 and buffer.size == self.size[tensor]:
                return buffer
        self.change_memory(place, self.size[tensor])
        return Buffer(self.size[tensor])

    def end_use(self, tensor, place):
        buffer = self.buffers[tensor, place]
        buffer.uses -= 1
        assert buffer.uses >= 0
        if buffer.uses == 0 and not buffer.persistent:
            self.change_memory(place, -buffer.size)

    def change_memory(self, place, delta):
        self.in_use[place] += delta
        if delta:
            self.memory[place].append((self.time, self.in_use[place]))

    def sample_peak(self):
        self.peak = [max(pair) for pair in zip(self.peak, self.in_use, strict=True)]

    def consumers_on(self, tensor, place):
        return sum(self.device[op] == place for op in self.consumers[tensor])

    def destinations(self, tensor):
        return {self.device[op] for op in self.consumers[tensor]} - {self.device[self.producer[tensor]]}


def _rows(ptr, idx):
    ptr, idx = ptr.tolist(), idx.tolist()
    return [idx[begin:end] for begin, end in itertools.pairwise(ptr)]


def bounds(problem):
    """Lower bounds of the page: (makespan in ns, largest peak of a device in bytes)."""
    return makespan_bound(problem), peak_bound(problem)


def makespan_bound(problem):
    fastest = [min(ns for ns in row if ns >= 0) for row in problem.duration.tolist()]
    lanes = sum(problem.lanes.tolist())
    before = _ancestors(problem)
    after = [{op for op in range(problem.n_ops) if other in before[op]} for other in range(problem.n_ops)]
    starts, from_end = _earliest_starts(before, fastest, lanes), _earliest_starts(after, fastest, lanes)
    everything = set(range(problem.n_ops))
    ends = [_earliest_start(everything, found, fastest, lanes) for found in (starts, from_end)]
    return max(ends + [starts[op] + fastest[op] + from_end[op] for op in everything])


def _earliest_starts(before, fastest, lanes):
    starts = {}
    for op in sorted(range(len(before)), key=lambda op: len(before[op])):
        starts[op] = _earliest_start(before[op], starts, fastest, lanes)
    return starts


def _earliest_start(before, starts, fastest, lanes):
    """Of an op that waits for all ops of the set `before`."""
    paths = [starts[op] + fastest[op] for op in before]
    shares = [start + _ceil_divide(sum(fastest[op] for op in before if starts[op] >= start), lanes) for start in {starts[op] for op in before}]
    return max(paths + shares, default=0)


def _ancestors(problem):
    """By op: the set of all ops that it waits for, directly or not."""
    before = [None] * problem.n_ops

    def found(op):
        if before[op] is None:
            direct = {int(problem.producer[t]) for t in problem.inputs(op)} | set(problem.control_inputs(op).tolist())
            before[op] = direct.union(*(found(other) for other in direct))
        return before[op]

    return [found(op) for op in range(problem.n_ops)]


def possible_reuse(problem):
    """By tensor: its reuse candidates without those that an output of the same op is a view of."""
    rows = _rows(problem.reuse_ptr, problem.reuse_idx)
    viewed = {(int(op), int(view)) for op, view in zip(problem.producer, problem.view, strict=True)}
    return [[t for t in row if (int(op), t) not in viewed] for op, row in zip(problem.producer, rows, strict=True)]


def peak_bound(problem):
    persistent = sum(problem.persistent.tolist())
    everywhere = persistent + max(live_sets(problem), default=0)
    if problem.n_devices == 1:
        return everywhere
    allowed = _allowed(problem)
    group, persistent = problem.group.tolist(), problem.persistent.tolist()
    ops, devices = range(problem.n_ops), range(problem.n_devices)
    fixed = [sum(persistent[op] for op in ops if allowed[group[op]] == {device}) for device in devices]

    def together(op, device):
        """What the device holds at least while it runs the op."""
        own = sum(persistent[other] for other in ops if group[other] == group[op] and allowed[group[op]] != {device})
        return working_set(problem, op) + fixed[device] + own

    at_once = [min(together(op, device) for device in allowed[group[op]]) for op in ops]
    return max([*fixed, *at_once, _ceil_divide(everywhere, problem.n_devices)])


def _allowed(problem):
    """By group: the set of devices where all of its ops may run."""
    allowed = {}
    for group, row in zip(problem.group.tolist(), problem.duration.tolist(), strict=True):
        allowed[group] = allowed.get(group, set(range(problem.n_devices))) & {device for device, ns in enumerate(row) if ns >= 0}
    return allowed


def live_sets(problem):
    """By op: bytes without persistent ones that all devices together must hold when it starts, in whatever order and wherever ops run."""
    producer, view, size, lifetime = (x.tolist() for x in (problem.producer, problem.view, problem.size, problem.lifetime))
    before = _ancestors(problem)
    buffers = {}  # tensor at the root of a chain of views → tensors that live in its buffer
    for tensor in range(problem.n_tensors):
        root = tensor
        while lifetime[root] != 2 and view[root] >= 0:
            root = view[root]
        buffers.setdefault(root, []).append(tensor)
    users = {t: [op for op in range(problem.n_ops) if t in problem.inputs(op).tolist()] for t in range(problem.n_tensors)}
    reuse = possible_reuse(problem)
    for op in range(problem.n_ops):
        held = min(problem.scratch[op][problem.duration[op] >= 0].tolist())
        held += sum(size[t] for t in range(problem.n_tensors) if producer[t] == op and view[t] < 0 and lifetime[t] != 2 and not reuse[t])
        for root, tensors in buffers.items():
            needed = any(lifetime[t] == 1 or any(user == op or op in before[user] for user in users[t]) for t in tensors)
            if lifetime[root] != 2 and producer[root] in before[op] and needed:
                held += size[root] if problem.n_devices == 1 else min(size[t] for t in tensors)
        yield held


def working_set(problem, op):
    """Bytes without persistent ones that the device must hold while the op runs, wherever that is."""
    view, lifetime = problem.view.tolist(), problem.lifetime.tolist()
    size, producer = problem.size.tolist(), problem.producer.tolist()
    reuse = possible_reuse(problem)
    needed = {}  # tensor at the root of a chain of views → bytes for all inputs that share its buffer
    for tensor in problem.inputs(op).tolist():
        chain = [tensor]
        while lifetime[chain[-1]] != 2 and view[chain[-1]] >= 0:
            chain.append(view[chain[-1]])
        root = chain[-1]
        if lifetime[root] == 2:
            continue
        # With other devices any tensor of the chain may be the one that was sent, and its copy has its own size.
        smallest = size[root] if problem.n_devices == 1 else min(size[t] for t in chain)
        needed[root] = min(smallest, needed.get(root, smallest))
    outputs = [t for t in range(problem.n_tensors)
               if producer[t] == op and view[t] < 0 and lifetime[t] != 2 and not reuse[t]]
    allowed_scratch = problem.scratch[op][problem.duration[op] >= 0].tolist()
    return sum(needed.values()) + sum(size[t] for t in outputs) + min(allowed_scratch)


def _ceil_divide(a, b):
    return -(-a // b)

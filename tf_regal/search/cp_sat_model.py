"""The planning problem for a constraint solver: placement, starts, transfers and their lines. See `cp_sat`.

Time is an integer of two parts, τ = steps · t + k: t in units of `time_unit` ns, and the step k < steps of the simulator's loop within t, for what takes no
time has an order nevertheless. steps is 1 where everything takes time.
"""

import math

import numpy as np

_LARGEST_TIME = 1 << 44


class Activity:
    """An op, or a transfer of a tensor to a device: t and end are times in units; start and finish are τ. What is a variable or a sum of some."""

    def __init__(self, model, name, horizon, steps, length, zero):
        """length: units, an expression; zero: literals of which one is true if and only if it takes no time."""
        self.t = model.new_int_var(0, horizon, f"{name}.t")
        self.end = model.new_int_var(0, horizon, f"{name}.end")
        model.add(self.end == self.t + length)
        if steps == 1:
            self.start, self.finish = self.t, self.end
            return
        step = model.new_int_var(0, steps - 1, f"{name}.step")
        self.start = model.new_int_var(0, steps * (horizon + 1), f"{name}.start")
        self.finish = model.new_int_var(0, steps * (horizon + 1), f"{name}.finish")
        model.add(self.start == steps * self.t + step)
        for literal in zero:
            model.add(self.finish == self.start + 1).only_enforce_if(literal)
        if zero:
            some = model.new_bool_var(f"{name}.zero")
            model.add(sum(zero) == some)
            model.add(self.finish == steps * self.end).only_enforce_if(~some)
        else:
            model.add(self.finish == steps * self.end)


class Model:
    """The variables and constraints of docs/simulator.md but for memory and for who may wait.

    ops: Activity per op; transfers: {(tensor, destination): Activity}; present: {(tensor, destination): literal}; placed: per group {device: literal}.
    """

    def __init__(self, model, task, horizon, fine):
        """horizon: ns; no schedule that is looked for takes longer. fine: whether there are steps; without, what takes no time uses no memory either."""
        self.model, self.task, self.problem = model, task, task.problem
        problem = self.problem
        self.d = problem.n_devices
        self.time_unit = _unit(problem, horizon)
        self.rounded = self.time_unit > 1 and not _divides_all(problem, self.time_unit)
        self.horizon = horizon // self.time_unit
        self.group = problem.group.tolist()
        self.duration = (np.where(problem.duration > 0, problem.duration // self.time_unit, problem.duration)).tolist()
        self.latency = (problem.latency // self.time_unit).tolist()
        allowed = task.simulator.allowed.tolist()
        self.placed = [{q: model.new_bool_var(f"group{g}@{q}") for q in range(self.d) if mask >> q & 1} for g, mask in enumerate(allowed)]
        for choice in self.placed:
            model.add_exactly_one(choice.values())
        self.edges = task.edges
        routes = self._routes()
        steps = self._count_steps(routes)
        self.timed = steps == 1  # everything takes time
        self.steps = steps if fine else 1
        self.horizon_tau = self.steps * (self.horizon + 1)
        self.ops = [self._op(op) for op in range(problem.n_ops)]
        self.present, self.transfers, self.sources = {}, {}, {}
        for (tensor, q), lengths in routes.items():
            self._transfer(tensor, q, lengths)
        self._precedences()
        self._lines()
        self.makespan = model.new_int_var(0, self.horizon, "makespan")
        for activity in self.ops:
            model.add(self.makespan >= activity.end)

    def at(self, op, q):
        """The literal of the op being on device q, or None where it may not be."""
        return self.placed[self.group[op]].get(q)

    def _op(self, op):
        choice = self.placed[self.group[op]]
        length = sum(self.duration[op][q] * literal for q, literal in choice.items())
        zero = [literal for q, literal in choice.items() if self.duration[op][q] == 0]
        return Activity(self.model, f"op{op}", self.horizon, self.steps, length, zero)

    def _routes(self):
        """{(tensor, destination): {source: units}} of every transfer that may be needed."""
        problem, routes = self.problem, {}
        for tensor in range(problem.n_tensors):
            home = self.group[self.edges.producer[tensor]]
            others = {self.group[c] for c in self.edges.consumers[tensor]} - {home}
            for q in range(self.d):
                if any(q in self.placed[g] for g in others):
                    lengths = {p: transfer_ns(problem, tensor, p, q) // self.time_unit for p in self.placed[home] if p != q}
                    if lengths:
                        routes[tensor, q] = lengths
        return routes

    def _count_steps(self, routes):
        """As many as can follow each other within one time; 1 where everything takes time."""
        idle = sum(any(self.duration[op][q] == 0 for q in self.placed[self.group[op]]) for op in range(self.problem.n_ops))
        idle += sum(0 in lengths.values() for lengths in routes.values())
        if idle == 0:
            return 1
        # Signals without latency take a step as well.
        return 2 + idle + (len(self.problem.control_idx) if self.d > 1 else 0)

    def _transfer(self, tensor, q, lengths):
        model, home = self.model, self.group[self.edges.producer[tensor]]
        name = f"tensor{tensor}→{q}"
        present = self.present[tensor, q] = model.new_bool_var(name)
        here = self.placed[home].get(q)
        wanted = [self.placed[g][q] for g in {self.group[c] for c in self.edges.consumers[tensor]} - {home} if q in self.placed[g]]
        if here is not None:
            model.add_implication(present, ~here)
        model.add_bool_or(wanted).only_enforce_if(present)
        for literal in wanted:
            model.add_bool_or([present, ~literal] if here is None else [present, ~literal, here])
        sources = self.sources[tensor, q] = {}
        for p in lengths:
            if len(lengths) == 1:
                sources[p] = present
            else:
                sources[p] = model.new_bool_var(f"{name}←{p}")
                model.add_implication(sources[p], self.placed[home][p])
        if len(lengths) > 1:
            model.add(sum(sources.values()) == present)
        length = sum(ns * sources[p] for p, ns in lengths.items())
        zero = [sources[p] for p, ns in lengths.items() if ns == 0]
        activity = self.transfers[tensor, q] = Activity(model, name, self.horizon, self.steps, length, zero)
        model.add(activity.start >= self.ops[self.edges.producer[tensor]].finish).only_enforce_if(present)

    def _precedences(self):
        model = self.model
        for op, activity in enumerate(self.ops):
            for tensor in self.edges.inputs[op]:
                model.add(activity.start >= self.ops[self.edges.producer[tensor]].finish)
                for q in range(self.d):
                    if (tensor, q) in self.present and self.at(op, q) is not None:
                        both = [self.present[tensor, q], self.at(op, q)]
                        model.add(activity.start >= self.transfers[tensor, q].finish).only_enforce_if(both)
            for source in self.edges.control[op]:
                model.add(activity.start >= self.ops[source].finish)
                for p, q, latency in self.delays(source, op):
                    model.add(activity.t >= self.ops[source].end + latency).only_enforce_if([self.at(source, p), self.at(op, q)])

    def delays(self, source, op):
        """(device of source, device of op, units) where a signal takes time."""
        if self.group[source] == self.group[op]:
            return
        for p in self.placed[self.group[source]]:
            for q in self.placed[self.group[op]]:
                if p != q and self.latency[p][q] > 0:
                    yield p, q, self.latency[p][q]

    def _lines(self):
        """Lanes of devices and links, which carry one transfer at a time."""
        model, lanes = self.model, self.problem.lanes.tolist()
        on_device = [[] for _ in range(self.d)]
        on_link = {}
        for op, activity in enumerate(self.ops):
            for q, literal in self.placed[self.group[op]].items():
                on_device[q].append(self.interval(activity.start, activity.finish, literal, f"op{op}@{q}"))
        for (tensor, q), activity in self.transfers.items():
            for p, literal in self.sources[tensor, q].items():
                interval = self.interval(activity.start, activity.finish, literal, f"tensor{tensor}:{p}→{q}")
                on_link.setdefault((p, q), []).append(interval)
                if self.problem.blocking_transfers:
                    on_device[p].append(interval)
                    on_device[q].append(interval)
        for q, intervals in enumerate(on_device):
            if lanes[q] == 1:
                model.add_no_overlap(intervals)
            elif lanes[q] < len(intervals):
                model.add_cumulative(intervals, [1] * len(intervals), lanes[q])
        for intervals in on_link.values():
            model.add_no_overlap(intervals)

    def interval(self, start, finish, literal, name):
        """[start, finish) in τ, where the literal is true."""
        size = self.model.new_int_var(0, self.horizon_tau, f"{name}.size")
        return self.model.new_optional_interval_var(start, size, finish, literal, name)


def transfer_ns(problem, tensor, p, q):
    return int(problem.latency[p, q]) + math.ceil(float(problem.size[tensor]) * float(problem.ns_per_byte[p, q]))


def longest(problem):
    """ns that no run can exceed: everything that may happen, one after the other."""
    d = problem.n_devices
    off = ~np.eye(d, dtype=bool)
    signals = int(problem.latency[off].max(initial=0)) * len(problem.control_idx)
    consumed = np.unique(problem.input_idx).tolist()
    transfers = sum(
        max((transfer_ns(problem, tensor, p, q) for p in range(d) if p != q), default=0) for tensor in consumed for q in range(d) if d > 1
    )
    return int(problem.duration.max(axis=1, initial=0).clip(0).sum()) + transfers + signals


def _unit(problem, horizon):
    """ns per unit of time: what divides all of them, or more where the solver could not hold the sums."""
    unit = int(np.gcd.reduce(_all_times(problem), initial=0)) or 1
    while horizon // unit > _LARGEST_TIME:
        unit *= 2
    return unit


def _divides_all(problem, unit):
    return not np.any(_all_times(problem) % unit)


def _all_times(problem):
    d = problem.n_devices
    transfers = [transfer_ns(problem, t, p, q) for t in range(problem.n_tensors) for p in range(d) for q in range(d) if p != q]
    return np.concatenate([problem.duration[problem.duration > 0], problem.latency.ravel(), np.array(transfers, np.int64)])

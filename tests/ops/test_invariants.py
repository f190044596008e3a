"""What holds for every schedule, checked from the timeline alone: no twin and no second implementation is asked.

test_simulator.py checks the simple invariants (lanes, links, starts after inputs, bounds); here is what ties the timeline's parts to each other.
"""

import numpy as np
from hypothesis import given

from tf_regal import ops

from . import cases, core
from .test_simulator import fixed


def _run(case, timeline=True):
    problem, candidate, discipline = case
    return ops.Simulator(problem).run(*core.arrays(*candidate), discipline=discipline, timeline=timeline)


def _arrivals(problem, device, run):
    """By op: ns when its last input was resident and its last signal had arrived (0 without any)."""
    arrived = {(tensor, destination): end for tensor, _, destination, _, end in run.transfers.tolist()}
    result = []
    for op in range(problem.n_ops):
        place, times = device[op], [0]
        for tensor in problem.inputs(op).tolist():
            producer = problem.producer[tensor]
            times.append(run.end[producer] if device[producer] == place else arrived[tensor, place])
        for before in problem.control_inputs(op).tolist():
            times.append(run.end[before] + (0 if device[before] == place else problem.latency[device[before], place]))
        result.append(int(max(times)))
    return result


def _covered(intervals, begin, end, lanes):
    """Whether `lanes` of the intervals [a, b) run at every moment of [begin, end)."""
    moments = {begin} | {x for a, b in intervals for x in (a, b) if begin <= x < end}
    return all(sum(a <= moment < b for a, b in intervals) >= lanes for moment in moments)


# Memory: the allocations, the curves and the peaks are three views of one thing.


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_allocations_add_up_to_the_curve(case):
    problem, (device, *_), _ = case
    run = _run(case)
    for place in range(problem.n_devices):
        persistent = int(problem.persistent[device == place].sum())
        held, used, at_time = {}, persistent, {}
        for time, _, buffer, size in run.allocations[run.allocations[:, 1] == place].tolist():
            if size > 0:
                assert buffer not in held
                held[buffer] = size
            else:
                assert held.pop(buffer) == -size
            used += size
            at_time[time] = used
        assert used == persistent + sum(held.values())
        curve = dict(run.memory[place].tolist())  # the last step of every moment
        level, levels = persistent, {}
        for time in sorted(set(curve) | set(at_time)):
            level = at_time.get(time, level)
            levels[time] = level
        assert all(curve[time] == levels[time] for time in curve)
        assert max([persistent, *(used for _, used in run.memory[place].tolist())]) == run.peak[place]


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_nothing_but_outputs_and_persistent_memory_is_left_at_the_end(case):
    problem, (device, *_), _ = case
    run = _run(case)
    for place in range(problem.n_devices):
        left = run.allocations[run.allocations[:, 1] == place, 3].sum()
        outputs = [t for t in np.flatnonzero(problem.lifetime == 1) if device[problem.producer[t]] == place]
        if not outputs:
            assert left == 0
        elif np.all(problem.view < 0) and not problem.reuse_idx.size:
            assert left == problem.size[outputs].sum()
        else:
            assert left >= 0


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_what_an_op_works_with_is_in_memory(case):
    """While an op runs its device holds at least: persistent memory, its own scratch, inputs and outputs that share no buffer."""
    problem, (device, *_), _ = case
    run = _run(case)
    plain = (problem.view < 0) & (problem.lifetime != 2) & (np.diff(problem.reuse_ptr) == 0)
    shared = set(problem.view[problem.view >= 0].tolist()) | set(problem.reuse_idx.tolist())
    for op in range(problem.n_ops):
        place = device[op]
        needed = int(problem.persistent[device == place].sum() + problem.scratch[op, place])
        inputs = [t for t in problem.inputs(op).tolist() if device[problem.producer[t]] != place or plain[t]]  # a copy has a buffer of its own
        needed += sum(int(problem.size[t]) for t in inputs if t not in shared)
        needed += sum(int(problem.size[t]) for t in np.flatnonzero(problem.producer == op) if plain[t])
        if run.end[op] > run.start[op]:  # else nothing of it is left when the moment is over
            curve = run.memory[place]
            held = curve[curve[:, 0] <= run.start[op], 1]
            assert (held[-1] if held.size else problem.persistent[device == place].sum()) >= needed


# Time: whatever waits, waits for something.


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_no_lane_idles_while_an_op_is_ready(case):
    problem, (device, *_), _ = case
    if problem.blocking_transfers:
        return  # a queued transfer may then keep ops from a free lane
    run = _run(case)
    busy = [[(a, b) for a, b, q in zip(run.start.tolist(), run.end.tolist(), device, strict=True) if q == place] for place in range(problem.n_devices)]
    for op, ready in enumerate(_arrivals(problem, device, run)):
        assert run.start[op] == ready or _covered(busy[device[op]], ready, run.start[op], problem.lanes[device[op]])


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_no_link_idles_while_a_tensor_waits(case):
    problem = case.problem
    if problem.blocking_transfers:
        return
    run = _run(case)
    rows = run.transfers.tolist()
    for tensor, source, destination, start, _ in rows:
        line = [(a, b) for _, s, d, a, b in rows if (s, d) == (source, destination)]
        assert start == run.end[problem.producer[tensor]] or _covered(line, run.end[problem.producer[tensor]], start, 1)


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_ops_and_transfers_start_by_priority(case):
    """What was ready no later and started later has no higher a priority."""
    problem, (device, priority, transfer_priority), discipline = case
    run = _run(case)
    ready = _arrivals(problem, device, run)
    if discipline == "priority" and not problem.blocking_transfers:
        for first in range(problem.n_ops):
            for later in np.flatnonzero((device == device[first]) & (run.start > run.start[first])).tolist():
                if ready[later] < run.start[first]:  # strictly: what becomes ready within a batch may come too late for it
                    assert (priority[first], -first) > (priority[later], -later)
    if transfer_priority is not None and not problem.blocking_transfers:
        rows = run.transfers.tolist()
        for tensor, source, destination, start, _ in rows:
            for other, s, d, late, _ in rows:
                if (s, d) == (source, destination) and late > start and run.end[problem.producer[other]] < start:
                    assert (transfer_priority[tensor, destination], -tensor) > (transfer_priority[other, destination], -other)


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_makespan_is_at_most_everything_in_a_row(case):
    """At every moment an op, a transfer or a signal is under way."""
    problem, (device, *_), _ = case
    run = _run(case)
    total = int((run.end - run.start).sum() + (run.transfers[:, 4] - run.transfers[:, 3]).sum())
    for op in range(problem.n_ops):
        total += sum(int(problem.latency[device[b], device[op]]) for b in problem.control_inputs(op).tolist() if device[b] != device[op])
    makespan, peak = ops.Simulator(problem).bounds()
    assert makespan <= run.makespan <= total
    assert peak <= run.peak.max()
    everything = problem.persistent.sum() + problem.scratch.max(axis=1, initial=0).sum() + problem.size.sum() * problem.n_devices
    assert run.peak.max() <= everything


# Units: the same problem in other units is the same schedule.


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_scaling_time_and_bytes(case):
    problem, candidate, discipline = case
    problem = problem.replace(ns_per_byte=np.ceil(problem.ns_per_byte))  # whole, so that nothing is rounded
    run = _run((problem, candidate, discipline))
    slower = problem.replace(duration=problem.duration * 1000, latency=problem.latency * 1000, ns_per_byte=problem.ns_per_byte * 1000)
    scaled = _run((slower, candidate, discipline))
    assert (scaled.makespan, scaled.peak.tolist(), scaled.start_order.tolist()) == (1000 * run.makespan, run.peak.tolist(), run.start_order.tolist())
    factor = 2**30
    larger = problem.replace(
        size=problem.size * factor, scratch=problem.scratch * factor, persistent=problem.persistent * factor, ns_per_byte=problem.ns_per_byte / factor,
        capacity=np.minimum(problem.capacity, 2**31) * factor,
    )
    scaled = _run((larger, candidate, discipline))
    assert scaled.makespan == run.makespan
    assert scaled.peak.tolist() == (run.peak * factor).tolist()
    assert scaled.transfer_bytes == run.transfer_bytes * factor
    assert scaled.feasible == run.feasible


@fixed(120)
@given(cases.random_cases(max_ops=20))
def test_devices_in_another_order(case):
    problem, (device, priority, transfer_priority), discipline = case
    if problem.blocking_transfers:
        return  # links have an order of their own then
    run = _run(case)
    moved = np.roll(np.arange(problem.n_devices), 1)  # new index → old index
    now = np.argsort(moved)
    turned = problem.replace(
        duration=problem.duration[:, moved], scratch=problem.scratch[:, moved], lanes=problem.lanes[moved], capacity=problem.capacity[moved],
        latency=problem.latency[np.ix_(moved, moved)], ns_per_byte=problem.ns_per_byte[np.ix_(moved, moved)],
    )
    columns = None if transfer_priority is None else transfer_priority[:, moved]
    other = _run((turned, (now[device], priority, columns), discipline))
    assert (other.makespan, other.transfer_bytes, other.feasible) == (run.makespan, run.transfer_bytes, run.feasible)
    assert other.peak.tolist() == run.peak[moved].tolist()
    assert other.start.tolist() == run.start.tolist()


# The search reports what the simulator gives.


@fixed(25)
@given(cases.random_cases(max_ops=20))
def test_best_of_brkga_is_a_schedule_with_its_figures(case):
    problem, _, _ = case
    simulator = ops.Simulator(problem)
    for objective in ("runtime", "peak_memory"):
        search = ops.Brkga(simulator, objective=objective, seed=case.seed % 1000, threads=1)
        search.evolve(200)
        best = search.best
        for timeline in (False, True):
            run = simulator.run(best.device, best.priority, best.transfer_priority, timeline=timeline)
            assert (run.makespan, run.peak.tolist(), run.transfer_bytes, run.feasible) == (
                best.makespan, best.peak.tolist(), best.transfer_bytes, best.feasible)
        makespan, peak = simulator.bounds()
        assert best.makespan >= makespan and best.peak.max() >= peak

"""The core against its twin on random problems, and what holds for every schedule."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tf_regal import ops

from . import cases, core, reference


def fixed(max_examples):
    """Settings of a run that is the same every time. No deadline: time says nothing about right or wrong."""
    return settings(max_examples=max_examples, derandomize=True, deadline=None, database=None,
                    suppress_health_check=[HealthCheck.too_slow])


# The core and the twin agree.


def _assert_same_as_twin(case):
    problem, candidate, discipline = case
    simulator = ops.Simulator(problem)
    run = simulator.run(*core.arrays(*candidate), discipline=discipline, timeline=True)
    result, expected = core.as_result(run), reference.simulate(problem, *candidate, discipline=discipline)
    result.memory = expected.memory = None  # the page leaves open which steps of a moment the curve shows
    assert result == expected
    assert tuple(simulator.bounds()) == reference.bounds(problem)


@fixed(2000)
@given(cases.random_cases())
def test_core_and_twin_agree(case):
    _assert_same_as_twin(case)


@fixed(150)
@given(cases.random_cases(max_ops=40, max_devices=6))
def test_core_and_twin_agree_on_larger_graphs(case):
    _assert_same_as_twin(case)


@pytest.mark.slow
@fixed(12000)
@given(cases.random_cases(max_ops=16, max_devices=5))
def test_core_and_twin_agree_on_very_many_graphs(case):
    _assert_same_as_twin(case)


@pytest.mark.slow
@fixed(100)
@given(cases.random_cases(max_ops=250, max_devices=8))
def test_core_and_twin_agree_on_large_graphs(case):
    _assert_same_as_twin(case)


def test_one_simulator_scores_many_candidates():
    """A simulator keeps no trace of the candidates before."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        problem = cases.random_problem(rng, 15, 3)
        simulator = ops.Simulator(problem)
        for discipline in ["priority", "fifo", "lifo"] * 5:
            candidate = cases.random_candidate(rng, problem)
            run = simulator.run(*core.arrays(*candidate), discipline=discipline)
            expected = reference.simulate(problem, *candidate, discipline=discipline)
            assert _figures(run) == (expected.makespan, expected.peak, expected.transfer_bytes, expected.feasible)


def test_types_of_the_result():
    problem, candidate, _ = cases.Case(3, n_ops=12, n_devices=3)
    run = ops.Simulator(problem).run(*core.arrays(*candidate), timeline=True)
    assert [type(x) for x in (run.makespan, run.transfer_bytes, run.feasible)] == [int, int, bool]
    for array, dtype, shape in ((run.peak, np.int64, (3,)), (run.start, np.int64, (12,)), (run.end, np.int64, (12,)),
                                (run.start_order, np.int32, (12,)), (run.transfers, np.int64, (len(run.transfers), 5))):
        assert (array.dtype, array.shape) == (dtype, shape)
    assert len(run.memory) == 3
    assert all(curve.dtype == np.int64 and curve.ndim == 2 and curve.shape[1] == 2 for curve in run.memory)


# Invariants. They are checked on the core, which the tests above tie to the twin.


def _core_run(case):
    problem, candidate, discipline = case
    return core.simulate(problem, *candidate, discipline=discipline)


def _figures(run):
    return run.makespan, run.peak.tolist(), run.transfer_bytes, run.feasible


@fixed(300)
@given(cases.random_cases())
def test_timeline_does_not_change_the_figures(case):
    problem, candidate, discipline = case
    simulator = ops.Simulator(problem)
    arrays = core.arrays(*candidate)
    plain = simulator.run(*arrays, discipline=discipline)
    assert _figures(plain) == _figures(simulator.run(*arrays, discipline=discipline, timeline=True))


@fixed(300)
@given(cases.random_cases())
def test_memory_is_never_negative_and_ends_with_what_is_kept(case):
    problem, (device, *_), _ = case
    result = _core_run(case)
    for place, curve in enumerate(result.memory):
        used = [used for _, used in curve]
        persistent = int(problem.persistent[device == place].sum())
        assert min(used, default=0) >= 0
        assert max([persistent, *used]) == result.peak[place]
        assert [time for time, _ in curve] == sorted(time for time, _ in curve)
        kept = {_buffer(problem, device, tensor) for tensor in np.flatnonzero(problem.lifetime == 1).tolist()
                if device[problem.producer[tensor]] == place}
        assert (used or [persistent])[-1] == persistent + sum(int(problem.size[t]) for t in kept if t is not None)


def _buffer(problem, device, tensor):
    """The tensor for which the buffer of a tensor on its producer's device was allocated; None: persistent memory."""
    place = device[problem.producer[tensor]]
    while device[problem.producer[tensor]] == place:  # else it is the copy of a tensor from elsewhere
        if problem.lifetime[tensor] == cases.LIFETIME_PERSISTENT:
            return None
        if problem.view[tensor] < 0:
            break
        tensor = int(problem.view[tensor])
    return tensor


@fixed(300)
@given(cases.random_cases())
def test_device_never_runs_more_ops_than_lanes(case):
    problem, (device, *_), _ = case
    result = _core_run(case)
    for place in range(problem.n_devices):
        intervals = [(result.start[op], result.end[op]) for op in np.flatnonzero(device == place)]
        if problem.blocking_transfers:
            intervals += [t[3:] for t in result.transfers if place in t[1:3]]
        for moment, _ in intervals:
            # Intervals of no time may touch others: they end in the batch in which they started.
            assert sum(start <= moment < end for start, end in intervals) <= problem.lanes[place]


@fixed(300)
@given(cases.random_cases())
def test_ops_start_after_their_inputs_and_predecessors(case):
    problem, (device, *_), _ = case
    result = _core_run(case)
    arrival = {(tensor, destination): end for tensor, _, destination, _, end in result.transfers}
    for op in range(problem.n_ops):
        place = device[op]
        assert result.end[op] - result.start[op] == problem.duration[op, place]
        for tensor in problem.inputs(op).tolist():
            producer = problem.producer[tensor]
            there = result.end[producer] if device[producer] == place else arrival[tensor, place]
            assert result.start[op] >= there
        for before in problem.control_inputs(op).tolist():
            delay = 0 if device[before] == place else problem.latency[device[before], place]
            assert result.start[op] >= result.end[before] + delay
    assert sorted(result.start_order) == list(range(problem.n_ops))
    assert [result.start[op] for op in result.start_order] == sorted(result.start)
    assert result.makespan == max(result.end, default=0)


@fixed(300)
@given(cases.random_cases())
def test_links_carry_one_transfer_at_a_time(case):
    problem, (device, *_), _ = case
    result = _core_run(case)
    free_from = {}
    for tensor, source, destination, start, end in result.transfers:
        assert source == device[problem.producer[tensor]] != destination
        assert start >= max(result.end[problem.producer[tensor]], free_from.get((source, destination), 0))
        free_from[source, destination] = end
    needed = {(tensor, device[op]) for op in range(problem.n_ops) for tensor in problem.inputs(op).tolist()
              if device[op] != device[problem.producer[tensor]]}
    sent = [(tensor, destination) for tensor, _, destination, _, _ in result.transfers]
    assert len(sent) == len(needed) and set(sent) == needed
    assert result.transfer_bytes == sum(int(problem.size[tensor]) for tensor, _ in sent)


@fixed(600)
@given(cases.random_cases())
def test_no_schedule_beats_the_bounds(case):
    result = _core_run(case)
    makespan, peak = ops.Simulator(case.problem).bounds()
    assert result.makespan >= makespan
    assert max(result.peak) >= peak


@fixed(400)
@given(cases.random_cases())
def test_order_of_starts_as_priorities_reproduces_the_schedule(case):
    problem, (device, *_), _ = case
    result = _core_run(case)
    priority = np.zeros(problem.n_ops, np.float32)
    for position, op in enumerate(result.start_order):
        priority[op] = problem.n_ops - position
    transfer_priority = np.zeros((problem.n_tensors, problem.n_devices), np.float32)
    for position, (tensor, _, destination, _, _) in enumerate(result.transfers):
        transfer_priority[tensor, destination] = len(result.transfers) - position
    assert core.simulate(problem, device, priority, transfer_priority) == result

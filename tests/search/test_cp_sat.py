"""CP-SAT against everything there is to try on tiny graphs, and what its proofs may say."""

import functools
import itertools
import math
import sys

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import errors, ops
from tf_regal.plans.planner import default_placement
from tf_regal.problem import LIFETIME_OUTPUT, LIFETIME_PERSISTENT
from tf_regal.search import METHODS, Budget, Task, cp_sat

pytest.importorskip("ortools")

OBJECTIVES = ("runtime", "peak_memory")
MOST_TRANSFER_ORDERS = 24


def task_of(problem, objective="runtime", limit=None):
    return Task(problem, objective, default_placement(problem), makespan_limit=limit)


def solve(task, seconds=20.0, evaluations=10):
    return METHODS["cp_sat"](task, Budget(evaluations, seconds=seconds))


def figure(task, run):
    return run.makespan if task.objective == "runtime" else int(run.peak.max())


@functools.cache
def tiny(seed, n_devices, max_lanes=1):
    """(problem, {(makespan, largest peak)} of all its feasible candidates), one that has some and few orders of transfers.

    Where the seed is odd, everything takes time.
    """
    rng = np.random.default_rng([seed, n_devices, 41])
    while True:
        problem = cases.random_problem(rng, 3 + seed % 3, n_devices, max_lanes=max_lanes, blocking=None if max_lanes > 1 else False)
        if seed % 2:
            problem = timed(problem)
        figures = everything(problem)
        if figures:
            return problem, figures


def timed(problem):
    return problem.replace(duration=np.where(problem.duration == 0, 1, problem.duration), latency=np.maximum(problem.latency, 1))


def everything(problem):
    """Figures of all placements × orders of ops × orders of transfers; empty where those of transfers are too many."""
    simulator, figures = ops.Simulator(problem), set()
    for choice in itertools.product(*cases.group_devices(problem)):
        device = np.array(choice, np.int32)[problem.group]
        links = {}
        for op in range(problem.n_ops):
            for tensor in problem.inputs(op).tolist():
                if device[problem.producer[tensor]] != device[op]:
                    links.setdefault((device[problem.producer[tensor]], device[op]), set()).add(tensor)
        if math.prod(math.factorial(len(tensors)) for tensors in links.values()) > MOST_TRANSFER_ORDERS:
            return set()
        own_orders = [itertools.permutations(np.flatnonzero(device == p).tolist()) for p in range(problem.n_devices)]
        for orders in itertools.product(*own_orders):
            priority = np.zeros(problem.n_ops, np.float32)
            for order in orders:
                priority[list(order)] = np.arange(len(order))
            for sent in itertools.product(*(itertools.permutations(sorted(tensors)) for tensors in links.values())):
                transfer_priority = np.zeros((problem.n_tensors, problem.n_devices), np.float32)
                for (_, q), tensors in zip(links, sent, strict=True):
                    transfer_priority[list(tensors), q] = np.arange(len(tensors))
                run = simulator.run(device, priority, transfer_priority)
                if run.feasible:
                    figures.add((run.makespan, int(run.peak.max())))
    return figures


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("seed", range(30))
def test_one_device_is_exact(objective, index, seed):
    problem, figures = tiny(seed, 1)
    task = task_of(problem, objective)
    solution = solve(task)
    optimum = min(f[index] for f in figures)
    assert (solution.proof.status, solution.proof.objective, solution.proof.bound) == ("OPTIMAL", optimum, optimum)
    assert figure(task, solution.run) == optimum
    assert solution.run.feasible


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("seed, n_devices", [*((seed, 2) for seed in range(13)), *((seed, 3) for seed in (0, 1, 3, 5))])
def test_several_devices_are_exact(objective, index, seed, n_devices):
    problem, figures = tiny(seed, n_devices)
    task = task_of(problem, objective)
    solution = solve(task)
    optimum = min(f[index] for f in figures)
    assert solution.proof.status == "OPTIMAL"
    assert solution.proof.objective == solution.proof.bound
    assert solution.proof.relaxed in ([()] if seed % 2 else [(), ("steps",)])
    if not solution.proof.relaxed:
        assert solution.proof.objective == figure(task, solution.run) == optimum
    else:  # the model leaves an order of what takes no time that the simulator does not: then it may be below
        assert solution.proof.objective <= optimum <= figure(task, solution.run)


@pytest.mark.slow
@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("seed, n_devices", [(seed, n) for seed in range(30, 90) for n in (2, 3)])
def test_more_of_them_are_exact(objective, index, seed, n_devices):
    test_several_devices_are_exact(objective, index, seed, n_devices)


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("seed", range(8))
def test_lanes_and_blocking_transfers_only_make_the_bound_lower(objective, index, seed):
    problem, figures = tiny(seed, 2, max_lanes=3)
    solution = solve(task_of(problem, objective))
    assert solution.proof.status == "OPTIMAL"
    assert solution.proof.bound <= min(f[index] for f in figures)
    assert ("waiting" in solution.proof.relaxed) == problem.blocking_transfers


@pytest.mark.parametrize("seed", range(1, 24, 2))
def test_makespan_limit_is_kept(seed):
    problem, figures = tiny(seed, 1 + seed // 2 % 2)
    limit = sorted(figures)[len(figures) // 3][0]
    solution = solve(task_of(problem, "peak_memory", limit))
    optimum = min(peak for makespan, peak in figures if makespan <= limit)
    assert solution.proof.status == "OPTIMAL"
    assert solution.proof.bound == optimum
    assert solution.run.makespan <= limit
    assert int(solution.run.peak.max()) == optimum


def test_proof_of_infeasibility():
    graph = cases.Graph(2, capacity=15)
    graph.op(1, [graph.source(size=10)], scratch=6)
    solution = solve(task_of(graph.problem()))
    assert solution.proof.status == "INFEASIBLE"
    assert solution.proof.objective is None
    assert not solution.run.feasible
    graph.capacity = np.array([15, 16])
    assert solve(task_of(graph.problem())).proof.status == "OPTIMAL"


def test_nothing_is_called_optimal_that_was_not_proven():
    problem = cases.random_problem(np.random.default_rng(5), 100, 3, max_lanes=1, blocking=False)
    for objective in OBJECTIVES:
        task = task_of(problem, objective)
        solution = solve(task, seconds=1.0)
        assert solution.proof.status in ("FEASIBLE", "UNKNOWN")
        assert solution.proof.bound < figure(task, METHODS["regal"](task, Budget(500)).run)
        assert solution.proof.bound >= task.simulator.bounds()[OBJECTIVES.index(objective)]
@pytest.mark.without_tensorflow
def test_large_problem_is_left_alone(monkeypatch):
    monkeypatch.setattr(cp_sat, "_MAX_ACTIVITIES", 10)
    problem = cases.random_problem(np.random.default_rng(6), 40, 2)
    task = task_of(problem)
    solution = solve(task)
    assert solution.proof.status == "UNKNOWN"
    assert solution.proof.bound == task.simulator.bounds()[0]
    assert task.key(solution.run) == task.key(METHODS["default"](task, Budget(1)).run)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_solution_repeats_and_is_counted(objective):
    told = []
    problem, _ = tiny(4, 2)
    task = task_of(problem, objective)
    task.progress = told.append
    solution = solve(task)
    assert solution.evaluations == sum(told) == 2
    again = task.simulator.run(solution.device, solution.priority, solution.transfer_priority, timeline=True)
    assert (again.makespan, again.peak.tolist()) == (solution.run.makespan, solution.run.peak.tolist())
    only = solve(task, evaluations=1)
    assert only.evaluations == 1
    assert task.key(only.run) == task.key(METHODS["default"](task, Budget(1)).run)


def test_start_is_the_one_to_beat():
    problem = timed(cases.random_problem(np.random.default_rng(7), 7, 2, max_lanes=1, blocking=False))
    problem = problem.replace(capacity=np.full(2, cases.UNLIMITED))
    for objective in OBJECTIVES:
        task = task_of(problem, objective)
        best = solve(task)
        again = cp_sat.run(task, Budget(1, seconds=20), start=best)
        assert again.proof.status == "OPTIMAL"
        assert again.proof.bound == best.proof.bound == figure(task, again.run)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_decide_nothing(threads):
    problem, _ = tiny(5, 2)
    one, other = (METHODS["cp_sat"](task_of(problem), Budget(5, seconds=20, threads=t)) for t in (1, threads))
    assert one.device.tolist() == other.device.tolist()
    assert one.priority.tolist() == other.priority.tolist()


def peak_of(graph):
    solution = solve(task_of(graph.problem(), "peak_memory"))
    assert solution.proof.status == "OPTIMAL"
    assert solution.proof.bound == int(solution.run.peak.max())
    return solution.proof.bound


def test_view_and_reuse_save_memory():
    """A chain of two ops: the output beside the input, in its buffer as a view, or in its buffer taken over."""
    def chain(**output):
        graph = cases.Graph(1)
        first = graph.source(size=8)
        graph.tensor(graph.op(1, [first]), size=8, **output)
        return graph

    assert peak_of(chain()) == 16
    assert peak_of(chain(view=0)) == 8
    assert peak_of(chain(reuse=[0])) == 8


def test_buffer_with_another_user_is_not_taken_over():
    graph = cases.Graph(1)
    first = graph.source(size=8)
    taker = graph.tensor(graph.op(1, [first]), size=8, reuse=[first])
    graph.op(1, [first, taker])
    assert peak_of(graph) == 16


def test_view_may_be_taken_over():
    """A view's buffer is that of its input, on the device where both are."""
    graph = cases.Graph(1)
    first = graph.source(size=8)
    view = graph.tensor(graph.op(1, [first]), size=8, view=first)
    graph.tensor(graph.op(1, [view]), size=8, reuse=[view])
    assert peak_of(graph) == 8


def makespan_of(graph):
    solution = solve(task_of(graph.problem()))
    assert solution.proof.status == "OPTIMAL"
    assert solution.proof.relaxed == ()
    assert solution.proof.bound == solution.run.makespan
    return solution.proof.bound


NOT = -1


def test_a_device_does_not_wait_for_what_is_better():
    """The long op is ready first, so it starts: what everything else hangs on comes after it (113 were possible by waiting)."""
    graph = cases.Graph(2, latency=1)
    graph.op([100, NOT])
    first = graph.source(duration=[NOT, 1])
    second = graph.tensor(graph.op([10, NOT], [first]))
    graph.op([NOT, 100], [second])
    assert makespan_of(graph) == 211


def test_a_link_does_not_wait_for_what_is_better():
    """The large tensor is sent first, because it is there first."""
    graph = cases.Graph(2, latency=1, ns_per_byte=1.0)
    large = graph.source(size=99, duration=[1, NOT])
    small = graph.tensor(graph.op([5, NOT], after=[0]), size=1)
    graph.op([NOT, 1], [large])
    graph.op([NOT, 100], [small])
    assert makespan_of(graph) == 1 + 100 + 2 + 100


@pytest.mark.without_tensorflow
@pytest.mark.parametrize("fine", [100, 0])
def test_a_link_carries_one_tensor_at_a_time(monkeypatch, fine):
    monkeypatch.setattr(cp_sat, "_MAX_OPS_FINE", fine)
    graph = cases.Graph(2, latency=10)
    op = graph.op([1, NOT])
    tensors = [graph.tensor(op), graph.tensor(op)]
    graph.op([NOT, 1], tensors)
    proof = solve(task_of(graph.problem())).proof
    assert (proof.status, proof.bound, proof.relaxed) == ("OPTIMAL", 1 + 10 + 10 + 1, () if fine else ("waiting",))


@pytest.mark.without_tensorflow
@pytest.mark.parametrize("lanes, bound", [(1, 40), (3, 20)])
def test_large_problems_keep_lanes_and_free_transfers(monkeypatch, lanes, bound):
    """What is relaxed in them: a tensor that is sent in no time is nowhere twice."""
    monkeypatch.setattr(cp_sat, "_MAX_OPS_FINE", 0)
    graph = cases.Graph(1, lanes=lanes)
    for _ in range(4):
        graph.op(10)
    assert solve(task_of(graph.problem())).proof.bound == bound
    sent = cases.Graph(2)
    sent.op([NOT, 1], [sent.tensor(sent.op([1, NOT]), size=8)])
    proof = solve(task_of(sent.problem(), "peak_memory")).proof
    assert (proof.status, proof.bound, proof.relaxed) == ("OPTIMAL", 8, ("waiting", "steps"))


def test_kept_and_persistent_tensors():
    graph = cases.Graph(1)
    graph.source(size=8, lifetime=LIFETIME_OUTPUT)
    graph.source(size=4)
    kept = cases.Graph(1)
    kept.tensor(kept.op(1, persistent=100), size=100, lifetime=LIFETIME_PERSISTENT)
    kept.op(1, [0], scratch=5)
    assert peak_of(graph) == 8  # the other comes first
    assert peak_of(kept) == 105


def test_copy_counts_where_it_is():
    """Persistent bytes force the ops apart: the copy is beside what the second holds."""
    graph = cases.Graph(2, capacity=[120, 130], latency=1)
    first = graph.tensor(graph.op(1, persistent=100), size=20)
    graph.op(1, [first], persistent=100, scratch=10)
    assert peak_of(graph) == 130


@pytest.mark.parametrize("factor", [1, 10**6, 10**9 + 7])
def test_large_numbers(factor):
    """ns and bytes of any size: what the solver cannot hold is cut, never wrong."""
    graph = cases.Graph(2, latency=factor)
    for _ in range(2):
        t = graph.source(size=3 * factor, duration=10 * factor)
        graph.op(11 * factor, [t], scratch=5 * factor)
    for objective, optimum in (("runtime", 21), ("peak_memory", 8)):
        solution = solve(task_of(graph.problem(), objective))
        assert solution.proof.status == "OPTIMAL"
        assert 0.99 * optimum * factor <= solution.proof.bound <= optimum * factor
        assert figure(task_of(graph.problem(), objective), solution.run) == optimum * factor


def test_rounded_sizes_give_a_bound_below():
    """Sizes without a common divisor, over a long horizon."""
    problem, figures = tiny(8, 1)
    long = problem.replace(duration=problem.duration * (10**12 + 39), size=problem.size * (10**9 + 7) + 1, capacity=np.array([cases.UNLIMITED]))
    solution = solve(task_of(long, "peak_memory"))
    assert "rounded" in solution.proof.relaxed
    optimum = min(peak for _, peak in everything(long))
    assert 0.9 * optimum <= solution.proof.bound <= optimum
    assert figures
@pytest.mark.without_tensorflow
def test_without_ortools(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(errors.MissingDependencyError, match=r"method 'cp_sat' needs the package 'ortools'.*pip install 'tf-regal\[compare\]'"):
        solve(task_of(tiny(0, 1)[0]))


def test_solves_beside_tensorflow_in_a_process_of_its_own(monkeypatch):
    """The two bring clashing libraries: in one process the solver crashed."""
    graph = cases.Graph(2, lanes=1)
    large = [graph.source(100), graph.source(60)]
    graph.op(1, [graph.tensor(graph.op(1, [t]), 1) for t in large])
    task = task_of(graph.problem(), "peak_memory")
    told = []
    task.progress = told.append
    here = METHODS["cp_sat"](task, Budget(10, seconds=120)) if "tensorflow" not in sys.modules else None
    monkeypatch.setitem(sys.modules, "tensorflow", sys)
    there = METHODS["cp_sat"](task, Budget(10, seconds=120))
    assert there.proof.status == "OPTIMAL"
    assert sum(told) > 0
    if here is not None:
        assert (there.proof.objective, there.run.peak.tolist()) == (here.proof.objective, here.run.peak.tolist())

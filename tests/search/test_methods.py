"""Every method on random problems: what it returns is valid and is what the simulator says of it."""

import time

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import errors, ops
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, control_edges, method, regal
from tf_regal.search.proposal import Proposal, choice
from tf_regal.search.trace import Trace

OBJECTIVES = ("runtime", "peak_memory")
N = 300
# cp_sat has tests of its own: it takes what time it is given.
QUICK = [method for method in METHODS if method != "cp_sat"]
USES_THE_BUDGET = ("idrs", "regal", "brkga", "tuned_brkga", "random", "local_search")
USES_PART_OF_THE_BUDGET = ("gp_dfs", "one_shot")


def problem_of(seed, n_ops=25, n_devices=3):
    return cases.random_problem(np.random.default_rng(seed), n_ops, n_devices)


def task_of(problem, objective="runtime", seed=0, limit=None):
    return Task(problem, objective, default_placement(problem), makespan_limit=limit, seed=seed)


def default_key(task):
    return task.key(METHODS["default"](task, Budget(1)).run)


def assert_valid(task, solution):
    problem, run = task.problem, solution.run
    n, d = problem.n_ops, problem.n_devices
    assert solution.device.shape == solution.priority.shape == (n,)
    assert ((solution.device >= 0) & (solution.device < d)).all()
    assert (problem.duration[np.arange(n), solution.device] >= 0).all(), "an op is where it may not run"
    for group in range(problem.n_groups):
        assert len(set(solution.device[problem.group == group])) == 1
    held = control_edges.with_edges(problem, solution.held)
    again = ops.Simulator(held).run(solution.device, solution.priority, solution.transfer_priority, timeline=True)
    assert (again.makespan, again.peak.tolist(), again.transfer_bytes) == (run.makespan, run.peak.tolist(), run.transfer_bytes)
    assert again.start_order.tolist() == run.start_order.tolist()
    assert again.start.tolist() == run.start.tolist()
    makespan, peak = ops.Simulator(problem).bounds()
    assert run.makespan >= makespan
    assert run.peak.max() >= peak


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("seed", range(4))
def test_solution_is_valid_and_repeats(method, objective, seed):
    task = task_of(problem_of(seed, n_devices=1 + seed), objective)
    assert_valid(task, METHODS[method](task, Budget(N)))


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize(("n_ops", "n_devices"), [(1, 1), (1, 3), (2, 2), (120, 4)])
def test_small_and_large(method, n_ops, n_devices):
    task = task_of(problem_of(9, n_ops, n_devices))
    assert_valid(task, METHODS[method](task, Budget(200)))


@pytest.mark.parametrize("method", QUICK)
def test_ops_without_tensors(method):
    graph = cases.Graph(2, lanes=1)
    for i in range(4):
        graph.op(3, after=[i - 1] if i == 3 else [])
    task = task_of(graph.problem())
    assert_valid(task, METHODS[method](task, Budget(50)))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(30))
def test_regal_is_never_worse_than_the_default(objective, seed):
    task = task_of(problem_of(100 + seed, 20, 1 + seed % 4), objective, seed)
    assert task.key(METHODS["regal"](task, Budget(60)).run) <= default_key(task)


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_regal_is_never_worse_than_the_default_on_a_tiny_budget(seed, budget):
    """With fewer evaluations than seeds the default has to be among those that count."""
    task = task_of(problem_of(200 + seed, 20, 3))
    solution = METHODS["regal"](task, Budget(budget))
    assert task.key(solution.run) <= default_key(task)


def test_regal_is_no_worse_than_brkga_and_the_heuristics_it_starts_from():
    wins = 0
    for seed in range(12):
        task = task_of(problem_of(300 + seed, 30, 3))
        found = task.key(METHODS["regal"](task, Budget(N)).run)
        wins += found <= task.key(METHODS["brkga"](task, Budget(N)).run)
        for name in ("critical_path", "memory_greedy", "depth_first"):
            assert found <= task.key(METHODS[name](task, Budget(1)).run), name
    assert wins >= 8


@pytest.mark.parametrize("method", ["regal", "brkga"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_seed_decides(method, objective):
    problem = problem_of(7, 60, 3)

    def solve(seed, threads):
        solution = METHODS[method](task_of(problem, objective, seed), Budget(400, threads=threads))
        return solution.device.tolist(), solution.priority.tolist(), solution.run.makespan, solution.run.peak.tolist(), solution.evaluations

    assert solve(3, 1) == solve(3, 1)
    assert solve(3, 1) == solve(3, 2) == solve(3, 5)
    assert len({str(solve(seed, 1)) for seed in range(4)}) > 1


@pytest.mark.parametrize("ingredient", sorted(regal.INGREDIENTS))
@pytest.mark.parametrize("evaluations", [1, 60, 333])
def test_every_ingredient_of_regal_can_be_left_out(ingredient, evaluations):
    told = []
    task = task_of(problem_of(15, 40, 2), "peak_memory")
    task.progress = told.append
    solution = method(f"regal-without-{ingredient}")(task, Budget(evaluations))
    assert_valid(task, solution)
    assert solution.evaluations == sum(told) == evaluations
    assert task.key(solution.run) <= default_key(task)


def test_ingredients_change_the_result():
    task = task_of(problem_of(22, 120, 3), "peak_memory")
    task.proposal = Proposal(choice(task.default_device[:, None] == np.arange(3), np.full((120, 3), 2)), choice(np.linspace(1, 0, 120), np.full(120, 2)))
    names = ["regal", *(f"regal-without-{ingredient}" for ingredient in regal.INGREDIENTS), "regal-without-seeds+decoders+genetic"]
    solutions = [method(name)(task, Budget(5000)) for name in names]
    assert len({s.device.tobytes() + s.priority.tobytes() for s in solutions}) == len(names)


@pytest.mark.parametrize("name", ["regall", "regal-without-luck", "regal-without-", "brkga-without-seeds", None, 3])
def test_unknown_method(name):
    with pytest.raises(errors.InvalidArgumentError, match=r"method=.* is not known; expected"):
        method(name)


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("evaluations", [1, 7, 100, 101, 333])
def test_evaluations_are_kept_to_and_told(method, evaluations):
    told = []
    task = task_of(problem_of(11, 25, 3))
    task.progress = told.append
    solution = METHODS[method](task, Budget(evaluations))
    if method in USES_THE_BUDGET:
        assert solution.evaluations == evaluations
        assert sum(told) == evaluations
    elif method in USES_PART_OF_THE_BUDGET:
        assert 1 <= solution.evaluations <= evaluations
        assert sum(told) == solution.evaluations
    else:
        assert 1 <= solution.evaluations <= 3


def test_calls_of_the_simulator_are_counted(monkeypatch):
    """What heuristics use up is part of the budget: each seed is one call, and no more are made than asked for."""
    calls = []
    evaluate = Task.evaluate

    def counting(self, *args, **kwargs):
        calls.append(1)
        return evaluate(self, *args, **kwargs)

    monkeypatch.setattr(Task, "evaluate", counting)
    task = task_of(problem_of(12, 25, 3))
    assert len(regal.seeds(task)) == len(calls) > 20
    calls.clear()
    assert len(regal.seeds(task, 7)) == len(calls) == 7


def test_seconds_end_early():
    task = task_of(problem_of(13, 200, 4))
    began = time.monotonic()
    solution = METHODS["brkga"](task, Budget(10_000_000, seconds=0.3))
    assert 0.2 < time.monotonic() - began < 3
    assert 1 <= solution.evaluations < 10_000_000
    assert_valid(task, solution)


def test_more_evaluations_are_no_worse():
    task = task_of(problem_of(14, 60, 3))
    keys = [task.key(METHODS["brkga"](task, Budget(n)).run) for n in (100, 400, 1600)]
    assert keys[0] >= keys[1] >= keys[2]


@pytest.mark.parametrize("seed", range(8))
def test_makespan_limit_is_kept_for_peak_memory(seed):
    problem = problem_of(400 + seed, 30, 3)
    free = task_of(problem, "peak_memory")
    default = METHODS["default"](free, Budget(1)).run
    for factor in (1.0, 1.2, 3.0):
        task = task_of(problem, "peak_memory", limit=int(factor * default.makespan))
        run = METHODS["regal"](task, Budget(N)).run
        if run.feasible and default.feasible:
            assert run.makespan <= task.makespan_limit
            assert run.peak.max() <= default.peak.max()


def test_key_ranks_infeasible_last_and_late_after_in_time():
    graph = cases.Graph(1, capacity=10)
    graph.source(size=4)
    task = task_of(graph.problem(), "peak_memory", limit=100)

    def key(makespan, peak):
        return task.key(type("Run", (), {"makespan": makespan, "peak": np.array([peak])}))

    assert key(50, 9) < key(100, 10) < key(101, 1) < key(1, 11) < key(1, 12)
    runtime = task_of(graph.problem(), "runtime")
    fits, fits_not = (type("Run", (), {"makespan": m, "peak": np.array([p])}) for m, p in ((900, 10), (1, 11)))
    assert runtime.key(fits) < runtime.key(fits_not)


def test_brkga_finds_the_best_of_a_tiny_problem():
    """Two independent chains on two devices: side by side is half the time."""
    graph = cases.Graph(2, lanes=1, latency=1)
    for _ in range(2):
        t = graph.source(size=1, duration=10)
        for _ in range(3):
            t = graph.tensor(graph.op(10, [t]))
    for name in ("regal", "brkga", "heft"):
        task = task_of(graph.problem())
        assert METHODS[name](task, Budget(1000)).run.makespan == 40, name
    assert METHODS["default"](task_of(graph.problem()), Budget(1)).run.makespan == 80


def test_single_device_takes_the_best_device():
    graph = cases.Graph(3, lanes=1)
    graph.op([5, 2, 9])
    graph.op([5, 2, 9])
    solution = METHODS["single_device"](task_of(graph.problem()), Budget(9))
    assert solution.device.tolist() == [1, 1]
    assert solution.run.makespan == 4
    assert solution.evaluations == 3


@pytest.mark.parametrize("value", [0, -1, 1.5, "5", None, True])
def test_wrong_evaluations(value):
    with pytest.raises(errors.InvalidArgumentError, match=r"evaluations=.* is not valid; expected a whole number, 1 or more"):
        Budget(value)


@pytest.mark.parametrize("value", [0, -1.0, "5", float("nan"), True])
def test_wrong_seconds(value):
    with pytest.raises(errors.InvalidArgumentError, match=r"seconds=.* is not valid; expected a number above 0"):
        Budget(10, value)


def test_wrong_objective():
    with pytest.raises(errors.InvalidArgumentError, match=r"objective='speed' is not known; expected one of 'runtime', 'peak_memory'"):
        task_of(problem_of(1), "speed")


@pytest.mark.parametrize("name", ["brkga", "tuned_brkga", "regal"])
def test_the_trace_counts_evaluations(name):
    task = task_of(problem_of(3))
    task.trace = Trace()
    solution = METHODS[name](task, Budget(550))
    made = [evaluations for _, evaluations, _, _ in task.trace.points]
    assert made == sorted(made), "it never goes back"
    assert made[-1] == solution.evaluations
    if name == "brkga":
        assert made == [100, 180, 260, 340, 420, 500, 550]

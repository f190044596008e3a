"""Local search: climbs from the default plan, counts what it simulates, starts again where nothing is left to try."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, heuristics


def task_of(problem, objective="runtime", seed=0):
    return Task(problem, objective, default_placement(problem), seed=seed)


class Counting:
    """A simulator that keeps every candidate it is given."""

    def __init__(self, simulator):
        self.simulator, self.candidates = simulator, []

    def run(self, device, priority, *arguments, **options):
        self.candidates.append((np.array(device), np.array(priority)))
        return self.simulator.run(device, priority, *arguments, **options)

    def __getattr__(self, name):
        return getattr(self.simulator, name)


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
@pytest.mark.parametrize("seed", range(6))
def test_is_never_worse_than_the_default_and_better_with_time(objective, seed):
    task = task_of(cases.random_problem(np.random.default_rng(500 + seed), 30, 1 + seed % 3), objective, seed)
    keys = [task.key(METHODS["local_search"](task, Budget(n)).run) for n in (1, 30, 1000)]
    assert keys[0] == task.key(METHODS["default"](task, Budget(1)).run)
    assert keys[0] >= keys[1] >= keys[2]


def test_improves_most_problems():
    better = 0
    for seed in range(8):
        task = task_of(cases.random_problem(np.random.default_rng(600 + seed), 30, 3))
        better += task.key(METHODS["local_search"](task, Budget(600)).run) < task.key(METHODS["default"](task, Budget(1)).run)
    assert better >= 7


def test_no_more_candidates_are_simulated_than_the_budget_has():
    task = task_of(cases.random_problem(np.random.default_rng(1), 25, 3))
    task.__dict__["simulator"] = counting = Counting(task.simulator)
    solution = METHODS["local_search"](task, Budget(200))
    assert solution.evaluations == 200
    assert len(counting.candidates) == 201  # the last one repeats the best with its timeline
    assert counting.candidates[-1][0].tolist() == solution.device.tolist()


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_every_step_is_a_single_change_that_is_no_worse(objective):
    problem = cases.random_problem(np.random.default_rng(2), 30, 3)
    task = task_of(problem, objective)
    default = METHODS["default"](task, Budget(1))
    simulator = task.simulator
    task.__dict__["simulator"] = counting = Counting(simulator)
    METHODS["local_search"](task, Budget(60))
    _, first = np.unique(problem.group, return_index=True)
    device, key, steps = default.device, task.key(default.run), 0
    priority = heuristics.order_to_priority(default.run.start_order, 30) / np.float32(31)
    for new_device, new_priority in counting.candidates[1:-1]:
        assert (device[first] != new_device[first]).sum() + (priority != new_priority).sum() == 1
        new_key = task.key(simulator.run(new_device, new_priority))
        if new_key <= key:
            device, priority, key, steps = new_device, new_priority, new_key, steps + 1
    assert 5 < steps < 55


def test_starts_again_in_a_local_optimum():
    """One op on one device has one plan: all but the first candidates come from new starts."""
    graph = cases.Graph(1)
    graph.op(3)
    task = task_of(graph.problem())
    task.__dict__["simulator"] = counting = Counting(task.simulator)
    assert METHODS["local_search"](task, Budget(50)).evaluations == 50
    assert len({float(priority[0]) for _, priority in counting.candidates}) > 20


def test_leaves_the_local_optimum_of_the_default_plan():
    """Two pairs of ops that each must stay together: moving any one alone is worse, so only a new start finds the other device."""
    graph = cases.Graph(2, latency=100)
    a = graph.tensor(graph.op([20, 5]))
    graph.op([20, 5], [a])
    problem = graph.problem()
    solution = METHODS["local_search"](task_of(problem), Budget(200))
    assert solution.device.tolist() == [1, 1]
    assert solution.run.makespan == 10

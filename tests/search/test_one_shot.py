"""One-shot priority sampling: at most 256 list schedules, the first of them without noise."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task


def task_of(problem, objective="runtime", seed=0):
    return Task(problem, objective, default_placement(problem), seed=seed)


def random_task(seed, objective="runtime", n_devices=3, **options):
    return task_of(cases.random_problem(np.random.default_rng(seed), 30, n_devices, **options), objective)


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_samples_are_at_most_256(objective):
    assert METHODS["one_shot"](random_task(1, objective), Budget(5000)).evaluations == 256
    assert METHODS["one_shot"](random_task(1, objective), Budget(100)).evaluations == 100


def test_first_sample_is_the_upward_rank():
    """On one device it is the critical-path schedule."""
    for seed in range(5):
        task = random_task(seed, n_devices=1)
        first = METHODS["one_shot"](task, Budget(1)).run
        assert first.start_order.tolist() == METHODS["critical_path"](task, Budget(1)).run.start_order.tolist()


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_samples_improve_on_the_first(objective):
    better = 0
    for seed in range(8):
        task = random_task(40 + seed, objective, blocking=False)
        better += task.key(METHODS["one_shot"](task, Budget(256)).run) < task.key(METHODS["one_shot"](task, Budget(1)).run)
    assert better >= 6


def test_ops_go_where_they_end_first():
    graph = cases.Graph(2, latency=50)
    a, b = graph.source(duration=[10, 30]), graph.source(duration=[30, 10])
    graph.op(10, [a])
    graph.op(10, [b])
    solution = METHODS["one_shot"](task_of(graph.problem()), Budget(1))
    assert solution.device.tolist() == [0, 1, 0, 1]


def test_bytes_are_spread_for_memory():
    graph = cases.Graph(2, latency=1000)
    for _ in range(4):
        graph.op(10, persistent=100)
    chained = graph.problem().replace(control_ptr=np.array([0, 0, 1, 2, 3]), control_idx=np.array([0, 1, 2]))
    solution = METHODS["one_shot"](task_of(chained, "peak_memory"), Budget(8))
    assert solution.run.peak.tolist() == [200, 200]
    assert METHODS["one_shot"](task_of(chained, "runtime"), Budget(8)).run.makespan == 40


def test_seed_decides():
    problem = cases.random_problem(np.random.default_rng(5), 40, 3)

    def solve(seed):
        return METHODS["one_shot"](task_of(problem, seed=seed), Budget(60)).priority.tolist()

    assert solve(2) == solve(2)
    assert len({str(solve(seed)) for seed in range(5)}) > 1

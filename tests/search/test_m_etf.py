"""m-ETF: what can start first is next, where memory holds it."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task


def task_of(problem, objective="runtime"):
    return Task(problem, objective, default_placement(problem))


def solve(graph):
    return METHODS["m_etf"](task_of(graph.problem()), Budget(1))


def test_independent_ops_take_turns():
    graph = cases.Graph(2)
    for _ in range(6):
        graph.op(10)
    solution = solve(graph)
    assert np.bincount(solution.device).tolist() == [3, 3]
    assert solution.run.makespan == 30


def test_an_op_stays_where_its_input_is_if_the_transfer_takes_longer():
    graph = cases.Graph(2, latency=100)
    tensor = graph.source(duration=10)
    graph.op(10, [tensor])
    graph.op(10, [tensor])
    assert len(set(solve(graph).device.tolist())) == 1
    graph.latency = graph.latency * 0
    assert len(set(solve(graph).device.tolist())) == 2


def test_lanes_are_used():
    graph = cases.Graph(1, lanes=3)
    for _ in range(6):
        graph.op(10)
    assert solve(graph).run.makespan == 20


def test_full_device_is_left_alone():
    """Both ops could start at once on the first device, one after the other: only one of them fits there."""
    graph = cases.Graph(2, capacity=[60, 1000])
    graph.op(1, persistent=50)
    graph.op(1, persistent=50)
    solution = solve(graph)
    assert sorted(solution.device.tolist()) == [0, 1]
    assert solution.run.feasible


def test_waits_until_memory_is_freed():
    """Beside the op with the longest path the second has no room: the third, of lower rank, goes ahead of it. With room it does not."""
    graph = cases.Graph(1, lanes=2)
    first = graph.tensor(graph.op(50, scratch=50), size=40)
    graph.op(1, [first])
    second = graph.source(size=60, duration=10)
    graph.op(10, [second])
    third = graph.source(size=5, duration=1)
    graph.op(1, [third])

    def order(capacity):
        graph.capacity = np.array([capacity])
        return np.argsort(-solve(graph).priority).tolist()

    assert order(1000)[:2] == [0, 2]
    assert order(100) == [0, 4, 5, 2, 1, 3]


def test_without_room_anywhere_the_least_excess_is_taken():
    graph = cases.Graph(2, capacity=[10, 40])
    graph.op(1, persistent=60)
    graph.op(1, persistent=60)
    solution = solve(graph)
    assert not solution.run.feasible
    assert solution.device.tolist()[0] == 1


def test_ties_go_to_the_longer_path():
    graph = cases.Graph(1)
    graph.op(5)
    long = graph.source(duration=5)
    graph.op(50, [long])
    assert solve(graph).run.start_order.tolist()[0] == 1


@pytest.mark.parametrize("seed", range(20))
def test_starts_are_in_the_order_of_priorities(seed):
    """On one device without limits it is the earliest task first by rank: a list schedule that the simulator repeats."""
    problem = cases.random_problem(np.random.default_rng(seed), 25, 1, max_lanes=1).replace(capacity=np.array([cases.UNLIMITED]))
    solution = METHODS["m_etf"](task_of(problem), Budget(1))
    order = np.argsort(-solution.priority)
    assert solution.run.start_order.tolist() == order.tolist()


def test_limits_are_kept_more_often_than_by_heft():
    kept = {"heft": 0, "m_etf": 0}
    for seed in range(40):
        problem = cases.random_problem(np.random.default_rng(2000 + seed), 25, 3, blocking=False)
        total = int(problem.size.sum() + problem.persistent.sum())
        task = task_of(problem.replace(capacity=np.array([total, total // 4, total // 4]), duration=np.abs(problem.duration)))
        for method in kept:
            kept[method] += METHODS[method](task, Budget(1)).run.feasible
    assert kept["m_etf"] > kept["heft"]

"""GP+DFS: METIS cuts where it is cheap, shares follow the devices, groups stay together."""

import sys

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import errors
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, heuristics

pytest.importorskip("pymetis")


def task_of(problem, objective="runtime", seed=0):
    return Task(problem, objective, default_placement(problem), seed=seed)


def chains(n_chains, length, devices=2, duration=10, size=100, **options):
    graph = cases.Graph(devices, **options)
    for _ in range(n_chains):
        tensor = graph.source(size=size, duration=duration)
        for _ in range(length - 1):
            tensor = graph.tensor(graph.op(duration, [tensor]), size=size)
    return graph


def test_chains_are_not_cut():
    problem = chains(4, 6, latency=5, ns_per_byte=1.0).problem()
    solution = METHODS["gp_dfs"](task_of(problem), Budget(100))
    assert solution.run.transfer_bytes == 0
    assert np.bincount(solution.device).tolist() == [12, 12]
    assert solution.run.makespan == 120


def test_cheap_edges_are_cut():
    """Two chains of heavy tensors, six light ones between them: fewer edges would be cut across the chains, but more bytes."""
    graph = cases.Graph(2, ns_per_byte=0.001)
    heavy, light = [], []
    for _ in range(6):
        op = graph.op(10, heavy[-1:])
        heavy.append(graph.tensor(op, size=1000))
        light.append(graph.tensor(op, size=1))
    last = []
    for i in range(6):
        last = [graph.tensor(graph.op(10, [light[i], *last]), size=1000)]
    solution = METHODS["gp_dfs"](task_of(graph.problem()), Budget(1))
    assert solution.run.transfer_bytes == 6


def test_faster_device_gets_more_work():
    graph = cases.Graph(2)
    for _ in range(60):
        graph.op([30, 10])
    solution = METHODS["gp_dfs"](task_of(graph.problem()), Budget(40))
    assert 40 <= (solution.device == 1).sum() <= 50
    assert solution.run.makespan <= 500


def test_order_is_depth_first():
    task = task_of(chains(3, 4).problem())
    solution = METHODS["gp_dfs"](task, Budget(5))
    order = heuristics.depth_first_order(task)
    assert sorted(range(12), key=lambda op: -solution.priority[op]) == list(order)


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_more_partitions_are_no_worse_and_repeats_are_not_simulated(objective):
    task = task_of(cases.random_problem(np.random.default_rng(8), 60, 3), objective)
    solutions = [METHODS["gp_dfs"](task, Budget(n)) for n in (1, 10, 5000)]
    keys = [task.key(solution.run) for solution in solutions]
    assert keys[0] >= keys[1] >= keys[2]
    assert keys[0] > keys[2]
    assert solutions[2].evaluations <= 240
    one = METHODS["gp_dfs"](task_of(cases.random_problem(np.random.default_rng(8), 60, 1)), Budget(50))
    assert one.evaluations == 1


def test_large_weights_fit():
    """Sums beyond 32 bits are scaled: METIS may not hold them."""
    problem = chains(4, 6, size=10**12, duration=10**10).problem()
    solution = METHODS["gp_dfs"](task_of(problem), Budget(20))
    assert np.bincount(solution.device).tolist() == [12, 12]
    assert solution.run.transfer_bytes == 0


def test_seed_decides():
    problem = cases.random_problem(np.random.default_rng(9), 80, 4)

    def solve(seed):
        return METHODS["gp_dfs"](task_of(problem, seed=seed), Budget(6)).device.tolist()

    assert solve(1) == solve(1)
    assert len({str(solve(seed)) for seed in range(4)}) > 1


def test_without_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(errors.MissingDependencyError, match=r"method 'gp_dfs' needs the package 'pymetis'.*pip install 'tf-regal\[compare\]'"):
        METHODS["gp_dfs"](task_of(chains(1, 2).problem()), Budget(1))

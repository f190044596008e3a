"""Random search: independent draws, all of the budget, and a fair sample of the plans."""

import itertools

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task


def task_of(problem, objective="runtime", seed=0):
    return Task(problem, objective, default_placement(problem), seed=seed)


def test_finds_the_best_of_the_plans_of_a_tiny_problem():
    """Nine placements of two ops on three devices: 300 draws miss none of them."""
    graph = cases.Graph(3)
    graph.op([7, 9, 9])
    graph.op([9, 9, 4])
    solution = METHODS["random"](task_of(graph.problem()), Budget(300))
    assert solution.device.tolist() == [0, 2]
    assert solution.run.makespan == 7


def test_later_draws_do_not_depend_on_earlier_ones():
    """Without selection the mean of a generation stays where it is; a search that learned would press it down."""
    problem = cases.random_problem(np.random.default_rng(3), 60, 3).replace(capacity=np.full(3, cases.UNLIMITED))
    mean = METHODS["random"](task_of(problem), Budget(4060)).history[:, 1]
    assert len(mean) == 41
    assert np.mean(mean[1:21]) == pytest.approx(np.mean(mean[21:]), rel=0.02)
    learned = METHODS["brkga"](task_of(problem), Budget(4060)).history[:, 1]
    assert learned[-1] < 0.95 * np.mean(mean[21:])


def test_seed_decides_and_threads_do_not():
    problem = cases.random_problem(np.random.default_rng(4), 40, 3)

    def solve(seed, threads):
        solution = METHODS["random"](task_of(problem, seed=seed), Budget(500, threads=threads))
        return solution.device.tolist(), solution.priority.tolist(), solution.run.makespan

    assert solve(1, 1) == solve(1, 2)
    assert any(solve(a, 1) != solve(b, 1) for a, b in itertools.combinations(range(3), 2))

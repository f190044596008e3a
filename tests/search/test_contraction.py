"""Contraction only joins groups, and only where nothing that matters is lost."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import ops
from tf_regal.search.contraction import contract


def _groups(graph, default=None):
    problem = graph.problem()
    contracted = contract(problem, np.zeros(problem.n_ops, np.int32) if default is None else np.array(default, np.int32))
    return contracted.group.tolist()


def test_a_chain_is_one_group_and_a_fork_is_not():
    graph = cases.Graph(2)
    tensor = graph.source()
    for _ in range(2):
        tensor = graph.tensor(graph.op(1, [tensor]))
    left, right = graph.tensor(graph.op(1, [tensor])), graph.tensor(graph.op(1, [tensor]))
    graph.op(1, [left, right])
    assert _groups(graph) == [0, 0, 0, 1, 2, 3]


def test_free_ops_join_the_op_that_needs_them_or_made_them():
    graph = cases.Graph(2)
    constant, costly = graph.source(duration=0), graph.source(duration=5)
    both = graph.tensor(graph.op(3, [constant, costly]))
    graph.op(0, [both])
    graph.op(4, [both])
    assert _groups(graph) == [0, 1, 0, 0, 2]


@pytest.mark.parametrize("change", ["allowed", "default"])
def test_groups_that_may_not_go_together_stay_apart(change):
    graph = cases.Graph(2)
    graph.op([1, -1] if change == "allowed" else 1, [graph.source()])
    assert _groups(graph, [0, 1] if change == "default" else None) == [0, 1]


def test_solutions_of_the_contracted_problem_are_solutions():
    rng = np.random.default_rng(1)
    joined = 0
    for _ in range(60):
        problem = cases.random_problem(rng, int(rng.integers(2, 40)), 3)
        allowed = [int(mask) for mask in ops.Simulator(problem).allowed]
        default = np.array([(mask & -mask).bit_length() - 1 for mask in allowed], np.int32)[problem.group]
        contracted = contract(problem, default)
        joined += problem.n_groups - contracted.n_groups
        search = ops.Brkga(ops.Simulator(contracted), objective="runtime", seed=1)
        search.evolve(50)
        run = ops.Simulator(problem).run(search.best.device, search.best.priority, search.best.transfer_priority)  # checks groups and devices
        assert (run.makespan, run.peak.tolist()) == (search.best.makespan, search.best.peak.tolist())
    assert joined > 5

"""Hand-made proposals."""

import numpy as np
import pytest

from tf_regal.bench import graphs
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.policy import handmade
from tf_regal.problem import build
from tf_regal.search import METHODS, Budget, Task, heuristics, proposal


@pytest.fixture(scope="module")
def task():
    problem = build(graphs.layered(100), Topology.parse("2xA100-40GB"))[0]
    return Task(problem, "runtime", default_placement(problem))


@pytest.mark.parametrize("name", handmade.names())
def test_every_name_gives_a_proposal(task, name):
    made = handmade.propose(task, name)
    assert made.affinity.shape == (100, 2)
    task.proposal = made
    assert METHODS["brkga"](task, Budget(120)).evaluations == 120


def test_what_rank_and_heft_say(task):
    made = handmade.propose(task, "rank-heft-7")
    device, priority = made.centre(task.problem)
    rank = heuristics.upward_rank(task)
    assert device.tolist() == heuristics.heft_placement(task, rank).tolist()
    assert np.corrcoef(priority, rank)[0, 1] > 0.98
    assert (handmade.propose(task, "rank-free-7").affinity == proposal.UNIFORM).all()

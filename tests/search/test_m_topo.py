"""m-TOPO: one run of a topological order per device, cut by bytes."""

import itertools

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task


def task_of(problem):
    return Task(problem, "runtime", default_placement(problem))


def chain(sizes, devices=2, **options):
    graph = cases.Graph(devices, **options)
    inputs = []
    for size in sizes:
        inputs = [graph.tensor(graph.op(1, inputs), size=size)]
    return graph


def test_cap_is_the_share_and_the_largest_op():
    """Sizes sum to 12; the cap is 12 / 3 + 2 = 6: three ops of 2 a device, and none is left for the third."""
    solution = METHODS["m_topo"](task_of(chain([2] * 6, devices=3).problem()), Budget(1))
    assert solution.device.tolist() == [0, 0, 0, 1, 1, 1]


def test_persistent_memory_counts():
    graph = cases.Graph(2)
    ops = [graph.op(1, persistent=p) for p in (8, 1, 1, 1, 1)]
    for first, second in itertools.pairwise(ops):
        graph.ops[second]["control"] = [first]
    # Share 6, largest 8: the cap is 14, which the whole graph (12) keeps.
    assert METHODS["m_topo"](task_of(graph.problem()), Budget(1)).device.tolist() == [0] * 5
    graph.capacity = np.array([8, 100])
    assert METHODS["m_topo"](task_of(graph.problem()), Budget(1)).device.tolist() == [0, 1, 1, 1, 1]


def test_devices_are_filled_in_the_topological_order():
    for seed in range(20):
        problem = cases.random_problem(np.random.default_rng(seed), 30, 3, blocking=False)
        free = problem.replace(duration=np.abs(problem.duration), group=np.arange(30))
        task = task_of(free)
        device = METHODS["m_topo"](task, Budget(1)).device[task.simulator.topological_order]
        assert (np.diff(device) >= 0).all()


def test_a_group_is_charged_as_a_whole():
    graph = cases.Graph(2)
    first = graph.op(1, persistent=4, group=0)
    middle = graph.op(1, persistent=4, after=[first], group=1)
    graph.op(1, persistent=4, after=[middle], group=0)
    # Share 6, largest 8 (the group): the cap is 14, which the group and the other op keep.
    assert METHODS["m_topo"](task_of(graph.problem()), Budget(1)).device.tolist() == [0, 0, 0]
    graph.capacity = np.array([8, 8])
    assert METHODS["m_topo"](task_of(graph.problem()), Budget(1)).device.tolist() == [0, 1, 0]


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_what_fits_nowhere_is_placed_all_the_same(devices):
    problem = chain([100] * 6, devices, capacity=50).problem()
    solution = METHODS["m_topo"](task_of(problem), Budget(1))
    assert not solution.run.feasible
    assert solution.device.max() < devices

"""Features: shapes, what they do not depend on, and single figures that can be checked by hand."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.bench import graphs
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.policy import features
from tf_regal.problem import build
from tf_regal.search import Task


def task_of(problem, objective="runtime"):
    return Task(problem, objective, default_placement(problem))


def extract(problem):
    return features.extract(task_of(problem))


def layered(n_ops=80, topology="2xA100-40GB"):
    return build(graphs.layered(n_ops), Topology.parse(topology))[0]


def op(found, name):
    return found.op[:, features.OP_FEATURES.index(name)]


def device(found, name):
    return found.device[:, :, features.DEVICE_FEATURES.index(name)]


@pytest.mark.parametrize(("n_ops", "n_devices"), [(1, 1), (1, 2), (2, 8), (50, 1), (50, 3), (120, 8)])
@pytest.mark.parametrize("seed", range(3))
def test_shapes_and_ranges(n_ops, n_devices, seed):
    problem = cases.random_problem(np.random.default_rng(seed), n_ops, n_devices)
    found = extract(problem)
    assert found.op.shape == (n_ops, len(features.OP_FEATURES))
    assert found.device.shape == (n_ops, n_devices, len(features.DEVICE_FEATURES))
    for name in ("op", "device", "forward", "backward"):
        values = getattr(found, name)
        assert values.dtype == np.float32
        assert np.isfinite(values).all()
        assert np.abs(values).max(initial=0) < 8
    assert found.source.dtype == found.target.dtype == found.order.dtype == np.int32
    assert sorted(found.order) == list(range(n_ops))
    position = np.argsort(found.order)
    assert np.all(position[found.source] < position[found.target])


def test_weights_of_edges_sum_to_one():
    found = extract(layered())
    for weights, at in ((found.forward, found.target), (found.backward, found.source)):
        sums = np.bincount(at, weights)
        np.testing.assert_allclose(sums[np.unique(at)], 1, rtol=1e-5)


def test_edges_are_those_of_the_problem_and_each_counts_once():
    graph = cases.Graph(1)
    a = graph.op(1)
    small, large = graph.tensor(a, size=10), graph.tensor(a, size=30)
    b = graph.op(1, inputs=[small, large])
    graph.op(1, inputs=[small], after=[b])
    found = extract(graph.problem())
    edges = dict(zip(zip(found.source.tolist(), found.target.tolist(), strict=True), found.backward.tolist(), strict=True))
    assert set(edges) == {(0, 1), (0, 2), (1, 2)}
    assert edges[0, 1] == pytest.approx(0.5 * 0.5 + 0.5 * 40 / 50)


@pytest.mark.parametrize("factor", [2, 1000])
def test_scale_free(factor):
    """A graph on devices and links that are slower, with tensors that are larger and memory to match, all by one factor, looks the same."""
    problem = layered()
    scaled = problem.replace(
        duration=np.where(problem.duration >= 0, problem.duration * factor, problem.duration), latency=problem.latency * factor,
        size=problem.size * factor, persistent=problem.persistent * factor, scratch=problem.scratch * factor, capacity=problem.capacity * factor,
    )  # fmt: skip
    mine, theirs = extract(problem), extract(scaled)
    for name in ("op", "device", "forward", "backward", "source", "target"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(mine, name), atol=1e-5)


def test_a_chain():
    graph = cases.Graph(2)
    tensor = graph.source(size=4, duration=10)
    middle = graph.op(30, inputs=[tensor])
    graph.op(10, inputs=[graph.tensor(middle, size=8)])
    found = extract(graph.problem())
    assert op(found, "upward rank without transfers").tolist() == pytest.approx([1.0, 0.8, 0.2])
    assert op(found, "downward rank").tolist() == pytest.approx([0.0, 0.25, 1.0])
    assert op(found, "place in depth-first order").tolist() == [0.0, 0.5, 1.0]
    assert op(found, "working set").tolist() == pytest.approx([4 / 12, 1.0, 8 / 12])
    assert op(found, "bytes kept minus bytes freed").tolist() == pytest.approx([1.0, 0.5, -1.0])
    assert op(found, "inputs").tolist() == pytest.approx([0, np.log(2) / 4, np.log(2) / 4])


def test_every_heuristic_says_one_device():
    found = extract(layered(200, "4xA100-40GB"))
    for name in features.DEVICE_FEATURES[:7]:
        assert np.all(device(found, name).sum(axis=1) == 1), name
    assert device(found, "position")[0].tolist() == pytest.approx([-0.75, -0.25, 0.25, 0.75])


def test_what_is_not_allowed():
    graph = cases.Graph(2)
    graph.op([5, -1])
    graph.op([5, 10])
    found = extract(graph.problem())
    assert device(found, "allowed").tolist() == [[1, 0], [1, 1]]
    assert op(found, "allowed devices").tolist() == [0.5, 1.0]
    assert device(found, "duration")[1, 1] > 0 > device(found, "duration")[1, 0]


def test_repeats():
    problem = layered()
    assert extract(problem).op.tobytes() == extract(problem).op.tobytes()

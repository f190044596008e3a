"""Partitions of the graph of colocation groups: against brute force, and what they are for."""

import itertools

import numpy as np
import pytest

from tests.ops.cases import Graph
from tf_regal import ops
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, groups


def csr_of(weights):
    """Symmetric matrix [n, n] → (ptr, target, weight)."""
    rows = [np.flatnonzero(row) for row in weights]
    ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int32)
    return ptr, np.concatenate(rows).astype(np.int32), np.concatenate([weights[i, r] for i, r in enumerate(rows)]).astype(float)


def random_graph(n, seed, density=0.4):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 20, (n, n)) * (rng.random((n, n)) < density)
    weights = np.triu(weights, 1)
    return weights + weights.T


def cut(weights, parts):
    return weights[parts[:, None] != parts[None, :]].sum() / 2


@pytest.mark.parametrize("seed", range(30))
def test_bisections_are_as_good_as_the_best(seed):
    n = 12
    weights = random_graph(n, seed)
    parts = ops.partition(*csr_of(weights), np.ones(n), [0.5, 0.5], 0.1, seed)
    assert 5 <= parts.sum() <= 7  # half, ± a tenth of the whole
    best = min(cut(weights, np.array(p)) for p in itertools.product((0, 1), repeat=n) if 5 <= sum(p) <= 7)
    assert cut(weights, parts) <= 1.1 * best


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_clusters_are_found_in_a_large_graph(k):
    """k dense clusters with single weak edges between them, their vertices shuffled."""
    size, rng = 80, np.random.default_rng(k)
    n = k * size
    weights = np.zeros((n, n), int)
    for c in range(k):
        block = slice(c * size, (c + 1) * size)
        weights[block, block] = random_graph(size, c, 0.1) * 5
        after = (c + 1) % k * size
        weights[c * size, after] = weights[after, c * size] = 1
    order = rng.permutation(n)
    shuffled = weights[np.ix_(order, order)]
    parts = ops.partition(*csr_of(shuffled), np.ones(n), [1 / k] * k, 0.02, 0)
    assert cut(shuffled, parts) <= k
    assert np.bincount(parts, minlength=k).tolist() == [size] * k


def test_shares_weights_and_seeds():
    weights = random_graph(200, 1, 0.05)
    vertex = np.random.default_rng(2).random(200)
    parts = ops.partition(*csr_of(weights), vertex, [0.7, 0.3], 0.02, 5)
    assert abs(vertex[parts == 0].sum() / vertex.sum() - 0.7) <= 0.03
    assert (parts == ops.partition(*csr_of(weights), vertex, [0.7, 0.3], 0.02, 5)).all()
    empty = ops.partition(np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0), [0.5, 0.5], 0.1)
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shares": [0.5, 0.4]}, "shares: expected numbers with sum 1"),
        ({"shares": [1.5, -0.5]}, "shares: expected positive numbers"),
        ({"imbalance": -1.0}, "imbalance"),
        ({"target": np.array([1, 9], np.int32)}, "target names vertex 9"),
        ({"ptr": np.array([0, 5, 2], np.int32)}, "ptr"),
        ({"edge_weight": np.ones(3)}, "edge_weight"),
    ],
)
def test_bad_input(change, message):
    good = {"ptr": np.array([0, 1, 2], np.int32), "target": np.array([1, 0], np.int32), "edge_weight": np.ones(2), "vertex_weight": np.ones(2)}
    with pytest.raises(ValueError, match=message):
        ops.partition(**{**good, "shares": [0.5, 0.5], "imbalance": 0.1, **change})


def test_the_full_search_finds_towers_where_transfers_are_dear():
    """Two towers of many large tensors that exchange a few: every cut but the one between the towers costs more than it gains."""
    graph = Graph(2, latency=1000, ns_per_byte=1.0)
    ends = []
    for _ in range(2):
        tensors = [graph.source(size=5000, duration=500)]
        for i in range(80):
            tensors.append(graph.tensor(graph.op(500, [tensors[-1], *tensors[i - 3 : i - 2]] if i >= 3 else [tensors[-1]]), size=5000))
        ends.append(tensors[-1])
    graph.op(500, ends)
    problem = graph.problem()
    task = Task(problem, "runtime", default_placement(problem))
    found = METHODS["regal"](task, Budget(500))
    assert found.run.makespan <= 82 * 500 + 6000 + 500
    placement = groups.partition_placement(task, groups.balances(problem)[0], 0.05, 0)
    assert (placement[:81] == placement[0]).all() and (placement[81:162] == 1 - placement[0]).all()

"""Random DAGs: what every one must be, and what its family says of its degrees."""

import numpy as np
import pytest

from benchmarks.zoo import synthetic
from tf_regal import errors, ops, problem
from tf_regal.devices import Topology

FAMILIES = pytest.mark.parametrize("family", synthetic.FAMILIES)


def edges(graph):
    """int [edges, 2]; tensor i is op i's."""
    return np.stack([graph.input_idx, np.repeat(np.arange(graph.n_ops), np.diff(graph.input_ptr))], 1)


def degrees(graph):
    return np.bincount(edges(graph).ravel(), minlength=graph.n_ops)


def order_exists(graph):
    """Kahn's algorithm."""
    pending, done = np.diff(graph.input_ptr).copy(), 0
    queue = np.flatnonzero(pending == 0).tolist()
    pairs = edges(graph)
    while queue:
        op = queue.pop()
        done += 1
        for target in pairs[pairs[:, 0] == op, 1]:
            pending[target] -= 1
            if pending[target] == 0:
                queue.append(target)
    return done == graph.n_ops


@FAMILIES
@pytest.mark.parametrize("n", [3, 50, 200])
def test_graph_is_a_simple_dag_that_the_simulator_takes(family, n):
    for seed in range(3):
        graph = synthetic.generate(family, n, seed)
        assert graph.n_ops == graph.n_tensors == n
        assert order_exists(graph)
        pairs = edges(graph)
        assert len({(min(a, b), max(a, b)) for a, b in pairs.tolist()}) == len(pairs)
        assert (graph.lifetime == problem.LIFETIME_OUTPUT).tolist() == (np.bincount(pairs[:, 0], minlength=n) == 0).tolist()
        arrays, notes = problem.build(graph, Topology.parse("paper"))
        assert not notes
        run = ops.Simulator(arrays).run(np.arange(n, dtype=np.int32) % 2, np.zeros(n, np.float32))
        assert run.makespan >= graph.durations["*"].sum() / 2


@FAMILIES
def test_same_arguments_give_the_same_graph_and_others_do_not(family):
    first, again, other = (synthetic.generate(family, 80, seed).to_json() for seed in (7, 7, 8))
    assert first == again
    assert first["fingerprint"] != other["fingerprint"]
    assert first["input_idx"] != other["input_idx"]


def test_what_a_seed_gives_does_not_change():
    prints = {family: synthetic.generate(family, 60, 1).fingerprint[:16] for family in synthetic.FAMILIES}
    assert prints == {
        "erdos_renyi": "7329ef695a417470", "stochastic_block": "ef30b7dbb3c520b7", "watts_strogatz": "fe8567e1787b4551",
        "barabasi_albert": "7c31a69ab4e79a82",
    }


@FAMILIES
def test_costs_and_sizes_have_the_stated_mean_and_deviation(family):
    graphs = [synthetic.generate(family, 200, seed) for seed in range(20)]
    for values in ([g.durations["*"] / synthetic.NS_PER_COST for g in graphs], [g.size / synthetic.BYTES_PER_SIZE for g in graphs]):
        assert np.mean(values) == pytest.approx(50, abs=1)
        assert np.std(values) == pytest.approx(10, abs=1)


@FAMILIES
def test_mean_degree_is_four(family):
    counted = [degrees(synthetic.generate(family, 200, seed)).mean() for seed in range(20)]
    assert np.mean(counted) == pytest.approx(4, abs=0.2)


def test_number_of_edges_that_the_family_fixes():
    for seed in range(5):
        assert len(edges(synthetic.generate("watts_strogatz", 120, seed))) == 2 * 120
        assert len(edges(synthetic.generate("barabasi_albert", 120, seed))) == 2 * (120 - 2)


def test_barabasi_albert_has_hubs_where_erdos_renyi_has_none():
    largest = {f: np.mean([degrees(synthetic.generate(f, 200, s)).max() for s in range(10)]) for f in ("barabasi_albert", "erdos_renyi")}
    assert largest["barabasi_albert"] > 2 * largest["erdos_renyi"]


def test_blocks_keep_most_of_their_edges():
    within = []
    for seed in range(10):
        pairs = edges(synthetic.generate("stochastic_block", 200, seed))
        within.append(np.mean(pairs[:, 0] // 50 == pairs[:, 1] // 50))
    assert np.mean(within) == pytest.approx(0.85, abs=0.03)


def test_small_world_keeps_most_of_the_ring():
    near = []
    for seed in range(10):
        pairs = edges(synthetic.generate("watts_strogatz", 200, seed))
        distance = np.abs(pairs[:, 0] - pairs[:, 1])
        near.append(np.mean(np.minimum(distance, 200 - distance) <= 2))
    assert np.mean(near) == pytest.approx(0.7, abs=0.05)


def test_splits_share_no_seed():
    members = {split: set(synthetic.members(split)) for split in synthetic.SEEDS}
    assert len(members["train"]) == 4 * 4 * 25
    assert not members["train"] & members["test"]
    assert not members["validation"] & (members["train"] | members["test"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(("ring", 10, 0), r"family='ring' is not known; expected one of 'erdos_renyi'"), (("erdos_renyi", 2, 0), r"n=2 is not valid"),
     (("erdos_renyi", 10.0, 0), r"n=10.0 is not valid"), (("erdos_renyi", 10, -1), r"seed=-1 is not valid"), (("erdos_renyi", True, 0), r"n=True")],
)
def test_bad_arguments(arguments, text):
    with pytest.raises(errors.InvalidArgumentError, match=text):
        synthetic.generate(*arguments)


def test_unknown_split():
    with pytest.raises(errors.InvalidArgumentError, match=r"split='dev' is not known; expected one of 'train', 'validation', 'test'"):
        synthetic.members("dev")

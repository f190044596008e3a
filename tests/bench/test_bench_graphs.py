"""Generated graphs: valid, the same every time, and with something of everything in them."""

import numpy as np
import pytest

from tf_regal import ops, problem
from tf_regal.bench import graphs, simulator


@pytest.mark.parametrize("n_ops", [1, 2, 7, 8, 9, 100, 1000])
def test_valid(n_ops):
    graph = graphs.layered(n_ops)
    assert graph.n_ops == n_ops
    built, notes = problem.build(graph, simulator.topology(2))
    assert not notes
    core = ops.Simulator(built)
    run = core.run(*simulator.random_candidate(core, built, 0), timeline=True)
    assert run.makespan >= core.bounds()[0]


def test_the_same_every_time():
    a, b, c = graphs.layered(200), graphs.layered(200), graphs.layered(200, seed=1)
    assert a.to_json() == b.to_json()
    assert a.to_json() != c.to_json()
    assert a.fingerprint != c.fingerprint != graphs.layered(201, seed=1).fingerprint


def test_what_the_simulator_accounts_for_is_there():
    graph = graphs.layered(1000)
    n = graph.n_ops
    assert 0.05 < (graph.view >= 0).sum() / n < 0.15
    assert 0.2 < (np.diff(graph.reuse_ptr) > 0).sum() / n < 0.4
    assert 0.05 < (graph.persistent > 0).sum() / n < 0.15
    assert 0.02 < (graph.scratch["*"] > 0).sum() / n < 0.1
    assert 0.02 < (np.diff(graph.control_ptr) > 0).sum() / n < 0.1
    assert (graph.lifetime == problem.LIFETIME_OUTPUT).any()
    assert graph.group.max() + 1 < n  # some ops are tied together
    built, _ = problem.build(graph, simulator.topology(2))
    core = ops.Simulator(built)
    run = core.run(*simulator.random_candidate(core, built, 0), timeline=True)
    assert n / 4 < len(run.transfers) < n


def test_random_candidates_obey_groups_and_devices():
    built, _ = problem.build(graphs.layered(60), simulator.topology(3))
    forbidden = built.duration.copy()
    forbidden[built.group == 0, 0] = -1
    forbidden[built.group == 1, 1:] = -1
    built = built.replace(duration=forbidden)
    core = ops.Simulator(built)
    seen = set()
    for seed in range(20):
        device, _, _ = simulator.random_candidate(core, built, seed)
        seen |= set(device[built.group == 0])
        assert set(device[built.group == 1]) == {0}
        assert all(len(set(device[built.group == group])) == 1 for group in range(built.n_groups))
    assert seen == {1, 2}

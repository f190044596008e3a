"""The live maximum against lifetimes whose maximum is known: the buffers of minimalloc's benchmarks, and random ones counted by hand."""

import csv
import json

import numpy as np
import pytest
import shared_data
from hypothesis import given
from hypothesis import strategies as st

from tf_regal import ops

from .cases import Graph
from .test_simulator import fixed

MINIMALLOC = "google__minimalloc"


def simulate(lifetimes, rng):
    """lifetimes: (lower, upper, size) each, live in [lower, upper). One device; an op runs from each moment at which something changes to the next.

    A buffer is the output of the op that starts at `lower`; the op that ends at `upper` takes it. Control edges keep the ops in a row. Indices are
    shuffled, so that they tell nothing of the order. Returns (run, persistent-free problem).
    """
    moments = sorted({time for lower, upper, _ in lifetimes for time in (lower, upper)})
    place = {time: i for i, time in enumerate(moments)}
    n = len(moments) - 1
    index = rng.permutation(n).tolist()
    graph = Graph()
    graph.ops = [None] * n
    for i in range(n):
        graph.ops[index[i]] = {
            "duration": np.array([moments[i + 1] - moments[i]]), "scratch": np.zeros(1), "persistent": 0, "group": index[i],
            "inputs": [], "control": [index[i - 1]] if i else [],
        }
    for lower, upper, size in (lifetimes[i] for i in rng.permutation(len(lifetimes))):
        tensor = graph.tensor(index[place[lower]], size)
        last = place[upper] - 1
        if last > place[lower]:
            graph.ops[index[last]]["inputs"].append(tensor)
    return ops.Simulator(graph.problem()).run(np.zeros(n, np.int32), np.zeros(n, np.float32), timeline=True), moments


def live(lifetimes, time):
    return sum(size for lower, upper, size in lifetimes if lower <= time < upper)


@pytest.mark.parametrize("path", shared_data.files(MINIMALLOC, "benchmarks/*/*.csv"))
def test_known_live_maximum(path):
    folder = shared_data.folder(MINIMALLOC)
    known = json.loads((folder / "MAX_LIVE.json").read_text())[path]
    with (folder / path).open() as file:
        lifetimes = [(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]
    assert (len(lifetimes), sum(size for *_, size in lifetimes)) == (known["buffers"], known["sum"])
    run, moments = simulate(lifetimes, np.random.default_rng(0))
    assert run.peak.tolist() == [known["max_live"]]
    assert run.makespan == moments[-1] - moments[0]
    curve = dict(run.memory[0].tolist())
    assert all(curve[time - moments[0]] == live(lifetimes, time) for time in moments if time - moments[0] in curve)


@fixed(150)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 2**40)), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_live_maximum_of_random_lifetimes(spans, seed):
    lifetimes = [(lower, lower + length, size) for lower, length, size in spans]
    run, moments = simulate(lifetimes, np.random.default_rng(seed))
    assert run.peak.tolist() == [max(live(lifetimes, time) for time in moments)]
    level, curve = 0, dict(run.memory[0].tolist())
    for time in moments:
        level = curve.get(time - moments[0], level)
        assert level == live(lifetimes, time)

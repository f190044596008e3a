"""Options and seeds of the core that benchmarks/fuzz.py found to be mishandled: ValueError is what callers are told to expect."""

import numpy as np
import pytest

from tf_regal import ops
from tf_regal.problem import UNLIMITED, Problem


def simulator():
    arrays = {
        "duration": [[1, 1]], "scratch": [[0, 0]], "persistent": [0], "group": [0], "producer": [0], "size": [8], "view": [-1], "lifetime": [0],
        "reuse_ptr": [0, 0], "reuse_idx": [], "input_ptr": [0, 0], "input_idx": [], "control_ptr": [0, 0], "control_idx": [], "lanes": [1, 1],
        "capacity": [UNLIMITED] * 2, "latency": [[0, 0]] * 2, "ns_per_byte": [[0.0, 0.0]] * 2,
    }
    return ops.Simulator(Problem(**{name: np.array(value) for name, value in arrays.items()}))


SEED = (np.zeros(1, np.int32), np.zeros(1, np.float32), None)
SEARCHES = {"Brkga": "seeds", "LocalSearch": "starts"}


def search(kind, seed=SEED, **options):
    return getattr(ops, kind)(simulator(), **{"objective": "runtime", SEARCHES[kind]: [seed], **options})


@pytest.mark.parametrize("kind", SEARCHES)
def test_valid_search(kind):
    found = search(kind)
    (found.evolve if kind == "Brkga" else found.improve)(5)
    assert found.best.makespan == 1


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    "seed", [("x", *SEED[1:]), (SEED[0], "x", None), (SEED[0], np.array(["a"]), None), (*SEED[:2], "x"), (*SEED[:2], np.array(["a"]))], ids=range(5))
def test_seed_that_is_no_array_of_numbers(kind, seed):
    with pytest.raises((ValueError, TypeError)):
        search(kind, seed)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("limit", [2**63, 1.5, "x"])
def test_makespan_limit_that_does_not_fit_int64(kind, limit):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        search(kind, makespan_limit=limit)


@pytest.mark.parametrize(
    ("kind", "name"), [("Brkga", "population"), ("Brkga", "threads"), ("LocalSearch", "threads"), ("LocalSearch", "chains"), ("LocalSearch", "memory")])
def test_option_that_would_take_all_memory(kind, name):
    with pytest.raises(ValueError, match=name):
        search(kind, **{name: 2**31 - 1})


def test_placement_by_a_rank_in_another_order():
    """Ops: a makes a tensor, b takes it, c is fast on device 0. In the order b, c, a the tensor is freed before it is made."""
    arrays = {
        "duration": [[1, 1], [1, 1], [1, 100]], "scratch": [[0, 0]] * 3, "persistent": [0] * 3, "group": [0, 1, 2], "producer": [0], "size": [67],
        "view": [-1], "lifetime": [0], "reuse_ptr": [0, 0], "reuse_idx": [], "input_ptr": [0, 0, 1, 1], "input_idx": [0], "control_ptr": [0] * 4,
        "control_idx": [], "lanes": [1, 1], "capacity": [UNLIMITED] * 2, "latency": [[0, 0]] * 2, "ns_per_byte": [[0.0, 0.0]] * 2,
    }
    built = ops.Simulator(Problem(**{name: np.array(value) for name, value in arrays.items()}))
    assert ops.earliest_finish_placement(built, np.array([1.0, 3.0, 2.0]))[2] == 0

"""Graphs that cannot be planned, through the Python layer: the error says what is wrong, for an OpGraph that is given and for one from a file."""

import dataclasses
import itertools

import numpy as np
import pytest

from tf_regal import errors
from tf_regal.devices import Topology
from tf_regal.devices.spec import FREE_LINK
from tf_regal.graph import task_graphs
from tf_regal.plans import planner
from tf_regal.problem import UNLIMITED, Problem
from tf_regal.search import Task, task
from tf_regal.settings import Settings

QUICK = Settings.make({"evaluations": 10, "cache_dir": False})


def graph(**changes):
    """Four ops in a row, 8 bytes between them, with changed columns."""
    names = ["a", "b", "c", "d"]
    found = task_graphs.read({"task_graph": {
        "tasks": [{"name": name, "cost": 1.0} for name in names],
        "dependencies": [{"source": a, "target": b, "size": 8.0} for a, b in itertools.pairwise(names)],
    }})
    return dataclasses.replace(found, **changes)


def plan(graph, topology="2xT4"):
    return planner.make_plan(graph, Topology.parse(topology) if isinstance(topology, str) else topology, QUICK)


def test_the_unchanged_graph_is_planned():
    assert plan(graph()).predicted.makespan_s == pytest.approx(4e-3)


def test_cyclic_graph():
    with pytest.raises(errors.InvalidProblemError, match=r"the problem is not valid: .*cycl"):
        plan(graph(control_ptr=[0, 1, 1, 1, 1], control_idx=[3]))


@pytest.mark.parametrize(("changes", "match"), [
    ({"input_idx": [0, 1, 3]}, r"input_idx\[2\] is 3; expected 0 to 2"), ({"control_ptr": [0, 0, 0, 0, 1], "control_idx": [4]}, r"control_idx\[0\] is 4"),
    ({"control_ptr": [0, 0, 0, 0, 1], "control_idx": [-1]}, r"control_idx\[0\] is -1"), ({"producer": [0, 1, 9]}, r"producer\[2\] is 9; expected 0 to 3"),
    ({"view": [-1, 7, -1]}, r"view\[1\] is 7")])
def test_dangling_edge(changes, match):
    with pytest.raises(errors.GraphError, match=match):
        graph(**changes)


def test_view_of_what_is_no_input():
    with pytest.raises(errors.InvalidProblemError, match=r"view\[2\] is 0, which is not an input of its producer"):
        plan(graph(view=[-1, -1, 0]))


@pytest.mark.parametrize(("changes", "match"), [
    ({"size": [8, -8, 8]}, r"size\[1\] is -8; expected 0 or more"), ({"persistent": [0, 0, -1, 0]}, r"persistent\[2\] is -1"),
    ({"durations": {"*": np.array([1, 1, -5, 1])}}, r"durations\['\*'\]\[2\] is -5"),
    ({"scratch": {"*": np.array([0, -2, 0, 0])}}, r"scratch\['\*'\]\[1\] is -2")])
def test_negative_cost_or_size(changes, match):
    with pytest.raises(errors.GraphError, match=match):
        graph(**changes)


@pytest.mark.parametrize(("changes", "match"), [
    ({"size": [2**62, 2**62, 0]}, r"bytes \(overflow\)"), ({"persistent": [2**60] * 4}, r"bytes \(overflow\)"),
    ({"durations": {"*": np.array([2**60] * 4)}}, r"ns \(overflow\)")])
def test_sums_that_do_not_fit_int64(changes, match):
    with pytest.raises(errors.InvalidProblemError, match=f"the problem is not valid: .*{match}"):
        plan(graph(**changes))


@pytest.mark.parametrize("value", [2**63, 2**64, -(2**63) - 1, 1e19])
def test_number_that_does_not_fit_int64(value):
    with pytest.raises(errors.GraphError, match="size"):
        graph(size=[value, 0, 0])


def test_more_devices_than_the_core_takes():
    with pytest.raises(errors.TopologyError, match="65 devices: give 1 to 64"):
        Topology.parse("33xT4+32xCPU")
    one = Topology.parse("T4").devices[0]
    devices = [dataclasses.replace(one, name=f"/job:localhost/replica:0/task:{i}/device:GPU:0") for i in range(65)]
    with pytest.raises(errors.TopologyError, match="devices has 65 entries: give 1 to 64"):
        Topology.from_links("many", devices, lambda source, target: FREE_LINK)
    assert plan(graph(), "64xT4").predicted.makespan_s == pytest.approx(4e-3)


def problem(**changes):
    given = {
        "duration": [[1, 1], [1, 1]], "scratch": [[0, 0], [0, 0]], "persistent": [0, 0], "group": [0, 1], "producer": [0], "size": [8], "view": [-1],
        "lifetime": [0], "reuse_ptr": [0, 0], "reuse_idx": [], "input_ptr": [0, 0, 1], "input_idx": [0], "control_ptr": [0, 0, 0], "control_idx": [],
        "lanes": [1, 1], "capacity": [UNLIMITED] * 2, "latency": [[0, 0]] * 2, "ns_per_byte": [[0.0, 0.0]] * 2, **changes,
    }
    return Problem(**{name: np.array(value) for name, value in given.items()})


@pytest.mark.parametrize(("changes", "match"), [
    ({"duration": [[1, 1], [-1, -1]]}, "op 1|group 1"), ({"duration": [[1, -1], [-1, 1]], "group": [0, 0]}, "group 0"),
    ({"lanes": [1] * 65, "duration": [[1] * 65] * 2, "scratch": [[0] * 65] * 2, "capacity": [1] * 65, "latency": np.zeros((65, 65), int),
      "ns_per_byte": np.zeros((65, 65))}, "65 devices; the core takes 1 to 64"),
    ({"input_idx": [1]}, r"input_idx\[0\] is 1"), ({"control_ptr": [0, 1, 2], "control_idx": [1, 0]}, "cycl"), ({"size": [-1]}, r"size\[0\] is -1"),
    ({"size": [2**62]}, "overflow"), ({"ns_per_byte": [[0, np.nan], [0, 0]]}, "ns_per_byte"), ({"lanes": [1, 0]}, r"lanes\[1\] is 0")])
def test_problem(changes, match):
    task.make_simulator(problem())
    with pytest.raises(errors.InvalidProblemError, match=f"the problem is not valid: .*({match})"):
        task.make_simulator(problem(**changes))
    with pytest.raises(errors.InvalidProblemError):
        _ = Task(problem(**changes), "runtime", np.zeros(2, np.int32)).simulator


def test_op_without_a_kernel_anywhere_is_said():
    found = plan(graph(kinds=[["CPU"], ["GPU"], [], ["TPU"]]))
    assert any("3 ops have no kernel on a device of 2xT4" in note for note in found.notes)


@pytest.mark.slow
def test_public_entry_point():
    import tf_regal

    settings = {"topology": "2xT4", "evaluations": 10, "cache_dir": False}
    assert tf_regal.plan(graph(), **settings).predicted.makespan_s == pytest.approx(4e-3)
    with pytest.raises(errors.InvalidProblemError, match="cycl"):
        tf_regal.plan(graph(control_ptr=[0, 1, 1, 1, 1], control_idx=[3]), **settings)
    with pytest.raises(errors.InvalidProblemError, match="overflow"):
        tf_regal.plan(graph(size=[2**62, 2**62, 0]), **settings)

"""Inputs that benchmarks/fuzz.py found to be mishandled, made as small as they get."""

import hashlib
import json
import math

import numpy as np
import pytest

from tf_regal import errors, ops
from tf_regal.devices import Topology
from tf_regal.graph import task_graphs
from tf_regal.graph.opgraph import OpGraph
from tf_regal.plans import load_plan, planner
from tf_regal.problem import UNLIMITED, Problem
from tf_regal.settings import Settings

DAG = {
    "task_graph": {"tasks": [{"name": "a", "cost": 1.0}, {"name": "b", "cost": 1.0}], "dependencies": [{"source": "a", "target": "b", "size": 8.0}]},
    "network": {"nodes": [{"name": "n", "speed": 1.0}, {"name": "m", "speed": 1.0}], "edges": [{"source": "n", "target": "m", "speed": 1.0}]},
}


def changed(document, path, value):
    document = json.loads(json.dumps(document))
    target = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return document


# Topologies.


@pytest.mark.parametrize("name", ["\0.json", "\ud800.json"])
def test_topology_file_with_a_name_that_no_file_has(name):
    with pytest.raises(errors.TopologyError, match=r"cannot be read .*: give the path of a topology file"):
        Topology.parse(name)


@pytest.mark.parametrize(("path", "value"), [
    (("links", "bandwidth", 0, 1), 10**400), (("links", "latency_ns", 0, 1), 10**400), (("devices", 0, "flops"), 10**400), (("devices", 0, "memory"), 10**400)])
def test_number_that_no_float_holds(path, value):
    with pytest.raises(errors.TopologyError, match="out of range"):
        Topology.from_json(changed(Topology.parse("2xT4").to_json(), path, value))


def test_number_of_more_digits_than_python_converts(tmp_path):
    (tmp_path / "t.json").write_text("[" + "9" * 5000 + "]")
    with pytest.raises(errors.TopologyError, match=r"t\.json"):
        Topology.load(tmp_path / "t.json")
    with pytest.raises(errors.GraphError, match=r"t\.json"):
        task_graphs.load(tmp_path / "t.json")
    with pytest.raises(errors.PlanFileError, match=r"t\.json"):
        load_plan(tmp_path / "t.json")


def test_link_that_is_too_slow_for_a_float():
    topology = Topology.from_json(changed(Topology.parse("2xT4").to_json(), ("links", "bandwidth", 0, 1), 1e-300))
    with pytest.raises(errors.InvalidProblemError, match=r"ns_per_byte\[1\] is inf; expected a finite number"):
        planner.make_plan(task_graphs.read(DAG), topology, Settings.make({"evaluations": 1, "cache_dir": False}))


# Plan files.


@pytest.fixture(scope="module")
def plan_json():
    return planner.make_plan(task_graphs.read(DAG), task_graphs.topology(DAG), Settings.make({"evaluations": 1, "cache_dir": False})).to_json()


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("persistent_bytes",), 3, "persistent_bytes must hold whole numbers"), (("start_ns",), {}, "start_ns must hold whole numbers"),
        (("start_ns", 0), 1.5, "start_ns must hold whole numbers"), (("start_ns", 0), -(2**63), "starts before 0"),
        (("end_ns", 0), -(2**63), "ends before it starts"), (("edges",), [[0]], "rows of 2"),
        (("edges",), [[2**32, 2**32 + 1]], "names devices or ops that it does not have"), (("memory", 0), [3], "rows of 2"), (("memory", 0), None, "rows of 2"),
        (("predicted", "peak_bytes"), 1.5, "TypeError"), (("predicted", "peak_bytes", DEVICE), "8", r"predicted\.peak_bytes\['.*CPU:0'\] is '8'"),
        (("predicted", "peak_bytes"), {}, "does not name the plan's devices"), (("default", "makespan_s"), "1", r"default\.makespan_s is '1'"),
        (("default", "makespan_s"), math.nan, r"default\.makespan_s is nan"), (("default", "transfer_bytes"), {}, r"default\.transfer_bytes is {}"),
        (("bounds", "peak_bytes"), None, r"bounds\.peak_bytes is None"), (("search", "seed"), [], r"search\.seed is \[\]"),
        (("search", "method"), 3, "search.method"), (("ops", 0), 3, "ops must be a list of texts"), (("notes",), "none", "notes must be a list of texts"),
    ],
    ids=str,
)
def test_plan_file_with_a_fitting_checksum(plan_json, tmp_path, path, value, match):
    text = json.dumps(changed(plan_json, path, value), separators=(",", ":"))
    (tmp_path / "p.json").write_text(f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}","data":{text}}}')
    with pytest.raises(errors.PlanFileError, match=f"the plan is damaged: .*({match})"):
        load_plan(tmp_path / "p.json")


@pytest.mark.parametrize("name", ["\0", "\ud800"])
def test_plan_file_with_a_name_that_no_file_has(name):
    with pytest.raises(errors.PlanFileError, match="cannot be read"):
        load_plan(name)


# Graphs.


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("group",), [0, 2**32], r"group\[1\] is 4294967296; expected a whole number that fits int32"), (("group",), [1, 1], "without gaps"),
        (("group",), [-1, 0], r"group\[0\] is -1; expected 0 to 1"), (("group",), [0, 2], r"group\[1\] is 2; expected 0 to 1"),
        (("size", 0), 1.5, r"size\[0\] is 1\.5"), (("size", 0), math.nan, r"size\[0\] is nan"), (("size", 0), -8, r"size\[0\] is -8; expected 0 or more"),
        (("size", 0), 2**63, r"size\[0\] is"), (("size", 0), 10**400, "size"), (("size",), [], "size has 0 entries for 1 tensors"),
        (("producer", 0), 2, r"producer\[0\] is 2; expected 0 to 1"), (("producer", 0), -1, r"producer\[0\] is -1"),
        (("lifetime", 0), 256, r"lifetime\[0\] is 256"),
        (("input_idx", 0), 1, r"input_idx\[0\] is 1; expected 0 to 0"), (("input_ptr",), [0, 1, 0], "input_ptr must have 3 entries that rise from 0"),
        (("input_ptr",), [0, 0], "input_ptr must have 3 entries"), (("input_ptr",), [], "input_ptr must have 3 entries"),
        (("control_ptr",), [0, 2**31 - 1, 0], "control_ptr must have"), (("view", 0), 1, r"view\[0\] is 1"), (("persistent", 1), -1, r"persistent\[1\] is -1"),
        (("durations", "*", 0), -1, r"durations\['\*'\]\[0\] is -1; expected 0 or more"), (("durations", "*"), [1], "has 1 entries for 2 ops"),
        (("durations", "*"), 3, "0 axes"), (("durations",), [], "AttributeError"), (("scratch",), {"*": [0, "x"]}, r"scratch\['\*'\]"),
        (("names", 1), "a", "two ops are called 'a'"), (("names", 1), [], r"names holds \[\]"), (("devices", 0), None, "devices holds None"),
        (("kinds", 0), "CPU", "kinds holds 'CPU'"), (("members", 0), [3], r"members holds \[3\]"), (("members",), [[]], "members has 1 entries"),
    ],
    ids=str,
)
def test_exported_graph(path, value, match):
    with pytest.raises(errors.GraphError, match=f"the exported OpGraph is damaged: .*({match})"):
        OpGraph.from_json(changed(task_graphs.read(DAG).to_json(), path, value))


# Problems: what is converted must not change.


@pytest.mark.parametrize(("name", "value"), [
    ("group", 2**32), ("input_idx", 2**32), ("lanes", 2**32 + 1), ("lifetime", 256), ("size", 1.5), ("size", math.nan), ("size", 1e19), ("latency", math.inf)])
def test_conversion_that_changes_a_value(name, value):
    arrays = {
        "duration": [[1]], "scratch": [[0]], "persistent": [0], "group": [0], "producer": [0], "size": [8], "view": [-1], "lifetime": [0], "reuse_ptr": [0, 0],
        "reuse_idx": [], "input_ptr": [0, 0], "input_idx": [], "control_ptr": [0, 0], "control_idx": [], "lanes": [1], "capacity": [UNLIMITED],
        "latency": [[0]], "ns_per_byte": [[0.0]],
    }
    ops.Simulator(Problem(**{key: np.array(x) for key, x in arrays.items()}))
    for nothing in (np.array([], "U1"), np.array([], object), np.array([], complex)):  # no value, no matter which type
        Problem(**{key: np.array(x) for key, x in arrays.items()} | {"input_idx": nothing})
    arrays[name] = np.full(np.shape(arrays[name]) or 1, value) if np.size(arrays[name]) else np.array([value])
    with pytest.raises(errors.InvalidProblemError, match=rf"{name}\[.*\] is .*; expected a whole number that fits u?int"):
        Problem(**{key: np.array(x) for key, x in arrays.items()})


# GraphDefs that ended the process in Grappler.


@pytest.mark.slow
@pytest.mark.parametrize(("change", "match"), [
    (lambda nodes: nodes["z"].input.__setitem__(0, "x:7"), "invalid output 7"), (lambda nodes: nodes["z"].input.append("x:-1"), "x:-1|input"),
    (lambda nodes: nodes["z"].input.append("nothing"), "nothing"), (lambda nodes: nodes["z"].attr.pop("T"), "'T'|attr"),
    (lambda nodes: nodes["x"].attr.pop("dtype"), "dtype"), (lambda nodes: setattr(nodes["z"], "op", "Nonsense"), "Nonsense"),
    (lambda nodes: setattr(nodes["z"], "name", "x"), "x")], ids=range(7))
def test_graph_def(change, match):
    import tensorflow as tf

    import tf_regal

    graph = tf.Graph()
    with graph.as_default():
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[4, 4], name="x")
        tf.linalg.matmul(x, x, name="z")
    graph_def = graph.as_graph_def()
    change({node.name: node for node in graph_def.node})
    with pytest.raises(errors.GraphError, match=f"(?s)the GraphDef cannot be imported: .*({match})"):
        tf_regal.plan(graph_def, topology="2xCPU", evaluations=5, cache_dir=False)


@pytest.mark.slow
def test_graph_def_with_a_constant_of_another_type_than_it_says():
    """TensorFlow's own import ends the process there."""
    import tensorflow as tf

    import tf_regal

    graph = tf.Graph()
    with graph.as_default():
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[4, 4], name="x")
        tf.concat([x, x], tf.constant(0, tf.int64, name="axis"), name="z")
    graph_def = graph.as_graph_def()
    axis = next(node for node in graph_def.node if node.name == "axis")
    axis.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(0.0, tf.float32))
    with pytest.raises(errors.GraphError, match=r"damaged: constant 'axis' says that it is int64 and holds float32"):
        tf_regal.plan(graph_def, topology="2xCPU", evaluations=5, cache_dir=False)
    del axis.attr["value"]
    with pytest.raises(errors.GraphError, match=r"damaged: constant 'axis' says that it is int64 and holds nothing"):
        tf_regal.plan(graph_def, topology="2xCPU", evaluations=5, cache_dir=False)

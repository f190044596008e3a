"""What users get wrong: the error's type, the argument that it names, what is valid, and what to do next."""

import json
import os
import re

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0, CPU1, SPREAD, assert_same, clean_hook, seen

import tf_regal
from tf_regal import errors
from tf_regal.settings import Settings

__all__ = ["clean_hook", "seen"]

QUICK = {"topology": "2xCPU", "evaluations": 50, "cache_dir": False}
X = tf.reshape(tf.range(64.0), [8, 8]) / 64


def body(x):
    return tf.tanh(tf.sin(x) @ x) + tf.cos(x) @ x


def concrete(python_function=body, *specs):
    return tf.function(python_function).get_concrete_function(*(specs or (tf.TensorSpec([8, 8], tf.float32, "x"),)))


def entry_points():
    return {
        "plan": lambda **s: tf_regal.plan(concrete(), **{**QUICK, **s}),
        "enable": lambda **s: tf_regal.enable(**s),
        "function": lambda **s: tf_regal.function(body, **s),
        "optimize": lambda **s: tf_regal.optimize(body, **s),
    }


everywhere = pytest.mark.parametrize("entry", entry_points())


@everywhere
@pytest.mark.parametrize(
    ("topology", "text"),
    [("2xA1000", r"topology='2xA1000'.*A1000.*A100"), ("2xT5", r"topology='2xT5'.*'?T5.*T4"), ("", "topology=''"),
     ("0xT4", "0"), ("65xT4", r"65 devices|out of range"),
     ("2xT4@FastLink", "FastLink"), (3, "topology=3 is of type int"), (None, "topology=None")],
)
def test_unknown_device(entry, topology, text):
    with pytest.raises(errors.TopologyError, match=text):
        entry_points()[entry](topology=topology)
    assert not tf_regal.is_enabled()


@everywhere
def test_topology_file(entry, tmp_path):
    path = tmp_path / "t.json"
    with pytest.raises(errors.TopologyError, match=r"t\.json"):
        entry_points()[entry](topology=str(path))
    path.write_text('{"schema": 1,\n "devices": [}')
    with pytest.raises(errors.TopologyError, match=r"t\.json.*line 2"):
        entry_points()[entry](topology=str(path))
    path.write_text('{"schema": 1, "name": "x"}')
    with pytest.raises(errors.TopologyError, match="devices"):
        entry_points()[entry](topology=path)
    document = tf_regal.Topology.parse("2xT4").to_json()
    document["devices"][0]["flops"] = -1
    path.write_text(json.dumps(document))
    with pytest.raises(errors.TopologyError, match=r"flops=-1.*> 0"):
        entry_points()[entry](topology=path)


WRONG = {
    "objective": (["speed", "memory", 3, None, True], r"objective=.* is not known; expected one of 'runtime', 'peak_memory'"),
    "method": (["regall", "", None, 1], r"method=.* is not known; expected one of 'regal', 'brkga', "),
    "policy": (["best", 3, False], r"policy=.* (is not valid; expected 'auto'|is not a directory)"),
    "costs": (["exact", None], r"costs=.* is not (known and no file|valid); expected one of 'analytic'"),
    "apply": (["yes", True, None], r"apply=.* is not known; expected one of 'if_better', 'always', 'never'"),
    "order": (["some", None, 2], r"order=.* is not known; expected one of 'needed', 'full', 'none'"),
    "on_error": (["ignore", None], r"on_error=.* is not known; expected one of 'warn', 'raise'"),
    "evaluations": ([0, -5, 1.5, "many", None, True], r"evaluations=.* is not valid; expected a whole number, 1 or more"),
    "seconds": ([0, -1, "1", float("nan"), [1]], r"seconds=.* is not valid; expected a number above 0, or None"),
    "max_slowdown": ([0.9, -1, "2", None, float("nan"), True], r"max_slowdown=.* is not valid; expected 1\.0 or more"),
    "seed": ([-1, 1.0, "0", None, True], r"seed=.* is not valid; expected a whole number, 0 or more"),
    "min_ops": ([-1, 1.5, "a", None, True], r"min_ops=.* is not valid; expected a whole number, 0 or more"),
    "batch_size": ([0, -8, 2.0, "8", True], r"batch_size=.* is not valid; expected a whole number, 1 or more, or None"),
}


@everywhere
@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (values, _) in WRONG.items() for v in values], ids=str)
def test_wrong_settings(entry, name, value):
    with pytest.raises(errors.InvalidArgumentError, match=WRONG[name][1]) as caught:
        entry_points()[entry](**{name: value})
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert not tf_regal.is_enabled()


@pytest.mark.parametrize("value", [["runtime"], {"a": 1}, {"runtime"}, np.array([1, 2])], ids=["list", "dict", "set", "array"])
@pytest.mark.parametrize("name", ["objective", "method", "policy", "costs", "apply", "order", "on_error"])
def test_containers_as_settings(name, value):
    with pytest.raises(errors.InvalidArgumentError, match=f"{name}="):
        Settings.make({name: value})


@pytest.mark.parametrize("name", ["evaluations", "seconds", "max_slowdown", "seed", "min_ops", "batch_size"])
@pytest.mark.parametrize("value", [[1], {"a": 1}, 1j, np.array([1, 2]), object()], ids=["list", "dict", "complex", "array", "object"])
def test_containers_as_numbers(name, value):
    with pytest.raises(errors.InvalidArgumentError, match=f"{name}="):
        Settings.make({name: value})


@pytest.mark.parametrize("name", ["evaluations", "seed", "min_ops", "batch_size", "seconds", "max_slowdown"])
@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_numpy_numbers_are_numbers(name, kind):
    """A user's `batch_size=x.shape[0]` or a loop over np.arange gives these."""
    assert getattr(Settings.make({name: kind(5)}), name) == 5


@pytest.mark.parametrize("value", [3, 1.5, True, ["a"], b"x" * 3], ids=repr)
def test_wrong_cache_dir(value):
    with pytest.raises(errors.InvalidArgumentError, match=r"cache_dir="):
        tf_regal.plan(concrete(), **{**QUICK, "cache_dir": value})


@pytest.mark.parametrize("value", [float("inf"), 1e30])
def test_endless_seconds_and_slowdown_are_fine(value):
    plan = tf_regal.plan(concrete(), **{**QUICK, "objective": "peak_memory", "max_slowdown": value, "seconds": value})
    assert plan.placement


@everywhere
@pytest.mark.parametrize(
    ("name", "close"), [("objectiv", "objective"), ("evaluation", "evaluations"), ("max_slow_down", "max_slowdown"),
                      ("cachedir", "cache_dir"), ("zzz", None)]
)
def test_unknown_setting(entry, name, close):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        entry_points()[entry](**{name: 1})
    text = str(caught.value)
    assert f"{name!r} is not a setting" in text
    assert "Valid: topology, objective" in text
    if close:
        assert f"Did you mean {close!r}?" in text
    else:
        assert "Did you mean" not in text


@pytest.mark.parametrize(("value", "close"), [("runtme", "runtime"), ("peak-memory", "peak_memory")])
def test_close_objective_is_hinted(value, close):
    with pytest.raises(errors.InvalidArgumentError, match=f"Did you mean {close!r}"):
        Settings.make({"objective": value})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": body(x)}, input_signature=[tf.TensorSpec([8, 8], tf.float32, "x")])
    path = str(tmp_path_factory.mktemp("saved") / "m")
    tf.saved_model.save(module, path, signatures=module.f)
    return path


def test_signature_that_is_not_there(saved):
    with pytest.raises(errors.GraphError, match=r"signature='predict' is not in '.*m'; it has 'serving_default'\. Choose one with"):
        tf_regal.plan(saved, signature="predict", **QUICK)


def test_path_that_is_no_model(tmp_path):
    with pytest.raises(errors.GraphError, match=r"model='.*nothing': there is no such file or directory\. Give a SavedModel"):
        tf_regal.plan(str(tmp_path / "nothing"), **QUICK)
    with pytest.raises(errors.GraphError, match=r"model='.*' is a directory without a SavedModel"):
        tf_regal.plan(tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [("m.pb", b"garbage\xff\xff", "is no GraphDef"), ("m.pb", b"", "holds no graph"),
     ("m.pbtxt", b"hello", "neither a GraphDef nor a CostGraphDef"),
     ("m.json", b"{", "is not JSON"), ("m.json", b"{}", "not an exported OpGraph"),
     ("m.txt", b"hello", "m.txt"), ("m.pbtxt", b"", "m.pbtxt")],
)
def test_file_that_is_no_model(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.GraphError, match=text):
        tf_regal.plan(str(tmp_path / name), **QUICK)


def test_damaged_saved_model(saved, tmp_path):
    os.makedirs(tmp_path / "m")
    with open(os.path.join(saved, "saved_model.pb"), "rb") as file:
        (tmp_path / "m" / "saved_model.pb").write_bytes(file.read()[:200])
    with pytest.raises(errors.GraphError, match=r"model='.*m' could not be loaded: .*Check that it loads with tf.saved_model.load"):
        tf_regal.plan(str(tmp_path / "m"), **QUICK)


@pytest.mark.parametrize("model", [None, 3, [1], {}, body, X, b"path"], ids=["None", "int", "list", "dict", "function", "tensor", "bytes"])
def test_something_that_is_no_model(model):
    with pytest.raises(errors.GraphError, match=r"(?s)model=.* cannot be planned; expected a SavedModel directory, a GraphDef"):
        tf_regal.plan(model, **QUICK)


def test_truncated_plan_file(tmp_path):
    plan = tf_regal.plan(concrete(), **QUICK)
    plan.save(tmp_path / "p.json")
    content = (tmp_path / "p.json").read_text()
    (tmp_path / "p.json").write_text(content[: len(content) // 2])
    with pytest.raises(errors.PlanFileError, match=r"path='.*p.json' cannot be read as JSON.*truncated or no plan\. Plan again"):
        tf_regal.load_plan(tmp_path / "p.json")


def test_plan_for_another_graph():
    plan = tf_regal.plan(concrete(), **{**QUICK, "topology": "local"})
    with pytest.raises(errors.PlanMismatchError, match=rf"another graph: its fingerprint is {plan.fingerprint[:12]}.*Plan this model"):
        tf_regal.apply(plan, concrete(lambda x: body(x) + 1))


def test_plan_for_a_saved_model_that_changed(saved, tmp_path):
    plan = tf_regal.plan(concrete(lambda x: body(x) + 1), **QUICK)
    with pytest.raises(errors.PlanMismatchError, match="another graph"):
        tf_regal.apply(plan, saved, output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_plan_of_the_same_function_in_memory_fits_the_saved_one_or_says_why(saved, tmp_path):
    """Same content, other names (signature wrappers rename): it may be refused, but by name."""
    plan = tf_regal.plan(concrete(), **QUICK)
    try:
        out = tf_regal.apply(plan, saved, output=str(tmp_path / "out"))
    except errors.PlanMismatchError as error:
        assert "other names" in str(error) or "another graph" in str(error)
    else:
        np.testing.assert_allclose(tf.saved_model.load(out).signatures["serving_default"](x=X)["y"], body(X), rtol=1e-6)


def test_plan_for_devices_that_are_not_here():
    plan = tf_regal.plan(concrete(), **{**QUICK, "topology": "4xTPUv4", "method": "topological"})
    with pytest.raises(errors.PlanMismatchError, match=rf"not here: .*TPU:0.*Here are: {re.escape(CPU0)}.*topology='local'"):
        tf_regal.apply(plan, concrete())


@pytest.mark.parametrize("plan", [None, "plan.json", {}], ids=str)
def test_something_that_is_no_plan(plan):
    with pytest.raises(errors.InvalidArgumentError, match=r"plan="):
        tf_regal.apply(plan, concrete())


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
@pytest.mark.parametrize("limit", [1, 500])
def test_memory_limit_that_nothing_satisfies(objective, limit):
    topology = tf_regal.Topology.parse("2xCPU").with_memory(limit)
    text = r"no plan was found within the devices' memory: the lowest peak found on .*CPU:[01] is \d+ bytes.*more or larger devices"
    with pytest.raises(errors.InfeasibleError, match=text) as caught:
        tf_regal.plan(concrete(), **{**QUICK, "topology": topology, "objective": objective})
    error = caught.value
    assert error.device in (CPU0, CPU1)
    assert error.plan.predicted.peak_bytes[error.device] - limit == error.shortfall > 0
    assert error.plan.bounds.peak_bytes <= max(error.plan.predicted.peak_bytes.values())
    assert str(error.shortfall) in str(error)
    assert not error.plan.feasible


def test_memory_limit_at_the_peak_is_enough():
    plan = tf_regal.plan(concrete(), **{**QUICK, "topology": "1xCPU", "objective": "peak_memory"})
    peak = max(plan.predicted.peak_bytes.values())
    limited = tf_regal.Topology.parse("1xCPU").with_memory(peak)
    again = tf_regal.plan(concrete(), **{**QUICK, "topology": limited, "objective": "peak_memory"})
    assert max(again.predicted.peak_bytes.values()) <= peak


@pytest.mark.parametrize(
    "python_function", [lambda x: x, lambda x: None, lambda x: tf.constant(3.0), lambda x: (x, tf.constant([1]), x)],
    ids=["identity", "nothing", "constant", "several"],
)
def test_empty_function(python_function, seen):
    function = concrete(python_function)
    with pytest.raises(errors.GraphError, match="nothing to plan"):
        tf_regal.plan(function, **QUICK)
    fn = tf_regal.optimize(python_function, **{**SPREAD, "on_error": "warn"})
    want = tf.function(python_function)(X)
    for _ in range(3):
        assert_same(fn(X), want)
    assert seen("lambda")[0].status in ("skipped", "failed", "default_kept"), [str(r) for r in seen()]


def test_function_without_arguments(seen):
    fn = tf_regal.function(lambda: tf.sin(tf.random.stateless_normal([4, 4], [1, 2])) + tf.reduce_sum(tf.random.uniform([4])) * 0, **SPREAD)
    want = fn()
    for _ in range(3):
        assert_same(fn(), want)


def test_only_string_ops(seen):
    def shout(x):
        return tf.strings.join([tf.strings.upper(x), x], "-"), tf.strings.length(x)

    spec = tf.TensorSpec([3], tf.string, "x")
    plan = tf_regal.plan(concrete(shout, spec), **{**QUICK, "topology": "1xCPU+1xT4"})
    assert {d.rpartition("/")[2] for d in plan.placement.values()} == {"device:CPU:0"}
    fn = tf_regal.optimize(shout, **SPREAD)
    x = tf.constant(["a", "b", "cé"])
    want = tf.function(shout)(x)
    for _ in range(3):
        assert_same(fn(x), want)
    assert seen("shout")[0].status == "planned"


def test_string_ops_on_devices_without_a_kernel_say_so():
    function = concrete(lambda x: tf.strings.upper(x) + "!", tf.TensorSpec([3], tf.string, "x"))
    plan = tf_regal.plan(function, **{**QUICK, "topology": "2xA100-40GB"})
    assert any("no kernel" in note for note in plan.notes), plan.notes


@pytest.mark.parametrize("shape", [[0, 8], [8, 0], [0, 0]])
def test_zero_size_tensors(shape, seen):
    def f(x):
        return tf.sin(x) @ tf.transpose(tf.cos(x)), tf.reduce_sum(x), tf.concat([x, x], 0)

    x = tf.zeros(shape)
    plan = tf_regal.plan(concrete(f, tf.TensorSpec(shape)), **QUICK)
    assert plan.predicted.makespan_s >= 0
    fn = tf_regal.optimize(f, **SPREAD)
    want = tf.function(f)(x)
    for _ in range(3):
        assert_same(fn(x), want)
    assert seen("f")[0].status == "planned", str(seen("f")[0])


def test_unknown_shapes(seen):
    def f(x):
        return tf.sin(x) + tf.reduce_sum(tf.cos(x))

    plan = tf_regal.plan(concrete(f, tf.TensorSpec(None)), **QUICK)
    assert any("unknown rank" in note for note in plan.notes)
    fn = tf_regal.function(f, input_signature=[tf.TensorSpec(None, tf.float32)], **SPREAD)
    for x in (X, tf.constant(1.0), tf.zeros([0]), tf.ones([2, 3, 4])):
        np.testing.assert_allclose(fn(x), f(x), rtol=1e-5)
    assert seen("f")[0].status == "planned"


def test_outputs_of_a_graph_def_that_is_empty():
    graph_def = tf.compat.v1.GraphDef()
    with pytest.raises(errors.GraphError, match=r"outputs.*--outputs"):
        tf_regal.plan(graph_def, **QUICK)


def test_unknown_op_type():
    graph_def = tf.compat.v1.GraphDef()
    graph_def.node.add(name="a", op="NoSuchOpOfMine")
    with pytest.raises(errors.GraphError, match=r"op type 'NoSuchOpOfMine' of node 'a' is not registered.*Import the library"):
        tf_regal.plan(graph_def, **QUICK)


def test_input_that_is_not_in_the_graph():
    graph_def = tf.compat.v1.GraphDef()
    node = graph_def.node.add(name="a", op="Neg", input=["b"])
    node.attr["T"].type = 1
    with pytest.raises(errors.GraphError, match=r"'?b'?"):
        tf_regal.plan(graph_def, **QUICK)


def test_public_names():
    for name in tf_regal.__all__:
        assert getattr(tf_regal, name) is not None
    with pytest.raises(AttributeError, match=r"module 'tf_regal' has no attribute 'plann'; it has Plan, Report"):
        tf_regal.plann  # noqa: B018

"""`tf-regal apply`: the planned model computes the same, on the planned devices; what does not fit is refused."""

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from .conftest import BATCH

FAST = ("--topology", "2xCPU", "--evaluations", "200", "--no-cache")


def test_a_saved_model(run, files, plan_file, tmp_path):
    out = tmp_path / "planned"
    result = run("apply", files.saved_model, plan_file, "--batch-size", BATCH, "-o", out, "--json")
    assert result.code == 0
    assert result.err == ""
    found = result.json
    assert found["kind"] == "saved_model"
    assert found["output"] == str(out)
    assert all(found["ops"].values())
    x = np.random.default_rng(0).random((BATCH, 64), np.float32)
    before, after = (
        tf.saved_model.load(str(path)).signatures["serving_default"](x=x)["y"] for path in (files.saved_model, out)
    )
    assert np.array_equal(before, after)
    definition = tf.saved_model.load(str(out)).signatures["serving_default"].graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    devices = {node.device for node in nodes}
    assert {"/device:CPU:0", "/device:CPU:1"} <= devices


def test_text_says_what_was_done(run, files, plan_file, tmp_path):
    out = tmp_path / "planned"
    result = run("apply", files.saved_model, plan_file, "--batch-size", BATCH, "-o", out)
    assert result.code == 0
    assert result.out.startswith(f"{out}: ")
    assert "control edges" in result.out


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt"])
def test_a_graph_def(run, files, tmp_path, suffix):
    plan, out = tmp_path / "plan.json", tmp_path / f"planned{suffix}"
    assert run("plan", files.graph_def, "--outputs", "y", "--batch-size", BATCH, *FAST, "-o", plan).code == 0
    result = run("apply", files.graph_def, plan, "--outputs", "y", "--batch-size", BATCH, "-o", out, "--json")
    assert result.code == 0
    assert result.json["kind"] == "graph_def"
    planned = tf.compat.v1.GraphDef()
    if suffix == ".pb":
        planned.ParseFromString(out.read_bytes())
    else:
        text_format.Parse(out.read_text(), planned)
    original = tf.compat.v1.GraphDef.FromString(pathlib.Path(files.graph_def).read_bytes())
    x = np.random.default_rng(0).random((BATCH, 64), np.float32)
    before, after = (_call(definition, x) for definition in (original, planned))
    assert np.array_equal(before, after)
    assert {node.device[-5:] for node in planned.node if node.op == "MatMul"} <= {"CPU:0", "CPU:1"}


def _call(definition, x):
    wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    return wrapped.prune("x:0", "y:0")(tf.constant(x))


def test_the_plan_of_another_graph(run, files, plan_file, tmp_path):
    for arguments in ([], ["--batch-size", BATCH, "--signature", "first"]):
        result = run("apply", files.saved_model, plan_file, *arguments, "-o", tmp_path / "planned", "--json")
        assert result.code == 1
        assert result.json["error"]["type"] == "PlanMismatchError"
        assert "the plan was made for another graph" in result.err
        assert not (tmp_path / "planned").exists()


def test_plans_that_are_none(run, files, plan_file, tmp_path):
    text = pathlib.Path(plan_file).read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    (tmp_path / "other.json").write_text(json.dumps({"a": 1}))
    for path, message in (
        ("no_such_plan.json", "there is no such file"),
        ("cut.json", "cannot be read as JSON"),
        ("other.json", "no tf-regal file"),
    ):
        result = run("apply", files.saved_model, tmp_path / path, "-o", tmp_path / "planned")
        assert result.code == 1
        assert message in result.err
    assert not (tmp_path / "planned").exists()


def test_where_to_write(run, files, plan_file, tmp_path):
    (tmp_path / "here").mkdir()
    for model, out, message in (
        (files.saved_model, tmp_path / "here", "exists already; choose a new directory"),
        (files.graph_def, tmp_path / "here", "is a directory"),
        (files.graph_def, tmp_path / "planned.txt", "must end in .pb or .pbtxt"),
        (files.graph_def, tmp_path / "missing" / "planned.pb", "does not exist; create it first"),
    ):
        result = run("apply", model, plan_file, "-o", out)
        assert result.code == 2
        assert message in result.err
    assert os.listdir(tmp_path / "here") == []


def test_what_cannot_run_cannot_be_applied(run, tmp_path, plan_file):
    costs = tmp_path / "costs.pbtxt"
    costs.write_text(
        'node { name: "a" id: 1 compute_cost: 10 is_final: true output_info { size: 4 alias_input_port: -1 } }'
    )
    plan = tmp_path / "plan.json"
    assert run("plan", costs, "--topology", "paper", "--evaluations", 20, "--no-cache", "-o", plan).code == 0
    result = run("apply", costs, plan, "-o", tmp_path / "planned.pb")
    assert result.code == 1
    assert "holds costs and edges only" in result.err


def test_a_plan_that_does_not_pay_is_applied_with_a_warning(run, files, tmp_path):
    plan = tmp_path / "plan.json"
    arguments = ["--method", "default", *FAST, "-o", plan, "--json"]
    assert run("plan", files.saved_model, *arguments).json["pays"] is False
    result = run("apply", files.saved_model, plan, "-o", tmp_path / "planned")
    assert result.code == 0
    assert "warning: the plan is not predicted to beat the default plan" in result.err

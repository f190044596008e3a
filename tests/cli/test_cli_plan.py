"""`tf-regal plan`: what it writes and prints, and what it refuses before and after the search."""

import os
import re

import pytest

import tf_regal
from tf_regal import api
from tf_regal.settings import Settings

FAST = ("--evaluations", "60", "--no-cache")
COSTS = """
node { name: "a" id: 1 compute_cost: 10 output_info { size: 100 alias_input_port: -1 } }
node { name: "b" id: 2 compute_cost: 20 input_info { preceding_node: 1 preceding_port: 0 } is_final: true
       output_info { size: 50 alias_input_port: -1 } }
"""


@pytest.fixture
def out(tmp_path):
    return tmp_path / "plan.json"


@pytest.fixture
def passed(monkeypatch):
    """What `tf_regal.plan` gets, instead of planning."""
    seen = {}

    def plan(model, **keywords):
        seen.update(keywords, model=model)
        raise tf_regal.errors.GraphError("not planned in this test")

    monkeypatch.setattr(api, "plan", plan)
    return seen


def test_writes_a_plan_and_prints_its_figures(run, files, out):
    result = run("plan", files.saved_model, "--topology", "2xT4", "--batch-size", 4096, *FAST, "-o", out)
    assert result.code == 0
    plan = tf_regal.load_plan(out)
    assert plan.topology.name == "2xT4"
    assert plan.search.evaluations <= 60
    assert result.err == ""
    assert result.out.startswith(f"{out}: ")
    assert "runtime per call" in result.out
    assert re.search(r"^  GPU:1 +T4 ", result.out, re.MULTILINE)
    assert "note: argument x: dimension 0 = 4096 (batch_size)" in result.out


def test_json_is_one_object_and_nothing_else(run, files, out):
    result = run("plan", files.saved_model, "--topology", "2xT4", *FAST, "--json", "--progress", "-o", out)
    assert result.code == 0
    plan, found = tf_regal.load_plan(out), result.json
    assert found["file"] == str(out)
    assert found["fingerprint"] == plan.fingerprint
    assert found["predicted"]["makespan_s"] == plan.predicted.makespan_s
    assert found["default"]["peak_bytes"] == plan.default.peak_bytes
    assert found["pays"] is plan.pays
    assert sum(device["ops"] for device in found["devices"]) == len(plan.ops)


def test_figures_are_those_of_python(run, files, out):
    run("plan", files.saved_model, "--topology", "2xT4", "--seed", 3, *FAST, "-o", out)
    same = tf_regal.plan(files.saved_model, topology="2xT4", seed=3, evaluations=60, cache_dir=False)
    assert tf_regal.load_plan(out).predicted == same.predicted


def test_settings_and_graph_options_reach_the_planner(run, files, out, passed, tmp_path):
    arguments = [
        "--objective",
        "peak_memory",
        "--method",
        "brkga",
        "--policy",
        "none",
        "--evaluations",
        7,
        "--seconds",
        2.5,
    ]
    arguments += ["--robustness", 0.25, "--seed", 9, "--max-slowdown", 1.25, "--order", "full", "--batch-size", 3, "--signature", "first"]
    arguments += [
        "--inputs",
        "a, b:0",
        "--outputs",
        "c",
        "--logdir",
        "runs",
        "--cache-dir",
        tmp_path,
        "--topology",
        "2xT4",
        "--memory-limit",
        "2GiB",
    ]
    assert run("plan", files.saved_model, *arguments, "-o", out).code == 1
    topology = passed.pop("topology")
    assert [device.memory for device in topology.devices] == [2 * 2**30] * 2
    assert passed == {
        "model": files.saved_model, "objective": "peak_memory", "method": "brkga", "policy": None, "evaluations": 7,
        "seconds": 2.5, "seed": 9, "max_slowdown": 1.25, "order": "full", "batch_size": 3, "signature": "first", "costs": "analytic", "robustness": 0.25,
        "inputs": ["a", "b:0"], "outputs": ["c"], "cache_dir": str(tmp_path), "show_progress": False, "logdir": "runs",
    }  # fmt: skip


def test_defaults_are_settings_own(run, files, out, passed):
    assert run("plan", files.saved_model, "--topology", "2xT4", "-o", out).code == 1
    defaults = Settings()
    for name in (
        "objective",
        "method",
        "policy",
        "evaluations",
        "seconds",
        "seed",
        "max_slowdown",
        "order",
        "cache_dir",
    ):
        assert passed[name] == getattr(defaults, name)
    assert "signature" not in passed


@pytest.mark.parametrize(("option", "wanted"), [("--progress", True), ("--no-progress", False)])
def test_progress_can_be_chosen(run, files, out, passed, option, wanted):
    run("plan", files.saved_model, "--topology", "2xT4", option, "-o", out)
    assert passed["show_progress"] is wanted


def test_the_cache_is_used_unless_told_otherwise(run, files, out, tmp_path):
    kept = tmp_path / "kept"
    run("plan", files.saved_model, "--topology", "2xT4", "--evaluations", 60, "--cache-dir", kept, "-o", out)
    assert len(os.listdir(kept)) == 1
    before = tf_regal.load_plan(out).search
    run("plan", files.saved_model, "--topology", "2xT4", "--evaluations", 60, "--cache-dir", kept, "-o", out)
    assert tf_regal.load_plan(out).search == before  # its seconds too: it was read


def test_the_local_topology(run, files, out):
    result = run("plan", files.saved_model, *FAST, "--batch-size", 64, "--json", "-o", out)
    assert result.code == 0
    assert result.json["topology"] == "local"
    assert [device["name"][-5:] for device in result.json["devices"]] == ["CPU:0", "CPU:1"]


def test_a_signature_of_its_own(run, files, out):
    result = run("plan", files.saved_model, "--signature", "first", "--topology", "2xT4", *FAST, "--json", "-o", out)
    assert result.code == 0
    other = run("plan", files.saved_model, "--topology", "2xT4", *FAST, "--json", "-o", out)
    assert result.json["ops"] < other.json["ops"]


def test_graph_defs_in_both_forms(run, files, out):
    found = []
    for path in (files.graph_def, files.graph_text):
        result = run("plan", path, "--outputs", "y", "--topology", "2xT4", *FAST, "--json", "-o", out)
        assert result.code == 0
        found.append(result.json["fingerprint"])
    assert found[0] == found[1]


def test_a_cost_graph(run, tmp_path, out):
    (tmp_path / "costs.pbtxt").write_text(COSTS)
    result = run("plan", tmp_path / "costs.pbtxt", "--topology", "paper", *FAST, "--json", "-o", out)
    assert result.code == 0
    assert result.json["ops"] == 2


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_models_that_are_none(run, files, out, tmp_path, as_json):
    (tmp_path / "garbage.pb").write_bytes(b"\xff\x00 not a graph")
    (tmp_path / "empty.pb").write_bytes(b"")
    (tmp_path / "garbage.pbtxt").write_text("node { nonsense")
    (tmp_path / "garbage.json").write_text("{")
    cases = [
        (tmp_path / "no_such_model", "there is no such file or directory"),
        (files.directory, "is a directory without a SavedModel"),
        (tmp_path / "garbage.pb", "is no GraphDef"),
        (tmp_path / "empty.pb", "holds no graph"),
        (tmp_path / "garbage.pbtxt", "neither a GraphDef nor a CostGraphDef"),
        (tmp_path / "garbage.json", "is not JSON"),
    ]
    for model, message in cases:
        result = run("plan", model, "--topology", "2xT4", *FAST, *as_json, "-o", out)
        assert result.code == 1, model
        assert len(result.err.splitlines()) == 1
        assert result.err.startswith("tf-regal: error: ")
        assert message in result.err
        if as_json:
            assert result.json["error"]["type"] == "GraphError"
            assert message in result.json["error"]["message"]
        else:
            assert result.out == ""
        assert not out.exists()


def test_a_signature_that_is_missing(run, files, out):
    result = run("plan", files.saved_model, "--signature", "scond", "--topology", "2xT4", *FAST, "-o", out)
    assert result.code == 1
    assert "signature='scond' is not in" in result.err
    assert "'serving_default', 'first'" in result.err or "'first', 'serving_default'" in result.err
    assert "--signature" in result.err


def test_outputs_that_are_missing(run, files, out):
    result = run("plan", files.graph_def, "--outputs", "nothing", "--topology", "2xT4", *FAST, "-o", out)
    assert result.code == 1
    assert "outputs names 'nothing', which is not in the graph" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topology", "2xZ100"], "argument --topology: .*'Z100' is not in the catalogue.*did you mean"),
        (["--topology", "0xT4"], "argument --topology: .*count '0' is out of range"),
        (["--topology", "no/such.json"], "argument --topology: .*cannot be read"),
    ],
)
def test_topologies_that_are_none(run, files, out, passed, arguments, message):
    result = run("plan", files.saved_model, *arguments, "-o", out)
    assert result.code == 2
    assert re.search(message, result.err)
    assert passed == {}


def test_where_to_write_is_checked_before_the_search(run, files, tmp_path, passed):
    result = run("plan", files.saved_model, "--topology", "2xT4", "-o", tmp_path / "missing" / "plan.json")
    assert result.code == 2
    assert f"the directory {str(tmp_path / 'missing')!r} does not exist; create it first" in result.err
    assert passed == {}


def test_a_memory_limit_that_cannot_be_met(run, files, out):
    arguments = ["--topology", "2xCPU", "--memory-limit", "100kB", *FAST, "--json", "-o", out]
    result = run("plan", files.saved_model, *arguments)
    assert result.code == 1
    error = result.json["error"]
    assert error["type"] == "InfeasibleError"
    assert error["device"].endswith("device:CPU:0")
    lowest = int(re.search(r"the lowest peak found on (\S+) is (\d+) bytes", error["message"])[2])
    assert error["device"] in error["message"]
    assert error["shortfall_bytes"] == lowest - 100_000
    assert f"{error['shortfall_bytes']} bytes more than its 100000" in error["message"]
    assert result.err == f"tf-regal: error: {error['message']}\n"
    assert not out.exists()


def test_a_graph_larger_than_any_device_is_infeasible_too(run, files, out):
    arguments = ["--topology", "2xT4", "--batch-size", 4096, "--memory-limit", "3MB", *FAST, "--json", "-o", out]
    result = run("plan", files.saved_model, *arguments)
    assert result.code == 1
    assert result.json["error"]["type"] == "InfeasibleError"


def test_a_default_plan_that_does_not_fit_is_said_so(run, files, out):
    arguments = [
        "--topology",
        "2xCPU",
        "--batch-size",
        4096,
        "--objective",
        "peak_memory",
        "--evaluations",
        300,
        "--no-cache",
    ]
    lowest = max(
        device["peak_bytes"]
        for device in run("plan", files.saved_model, *arguments, "--json", "-o", out).json["devices"]
    )
    result = run("plan", files.saved_model, *arguments, "--memory-limit", lowest, "-o", out)
    assert result.code == 0
    assert "worth applying (the default plan does not fit the devices' memory): " in result.out


@pytest.mark.slow
def test_progress_goes_to_stderr_only(process, files, tmp_path):
    arguments = ["--topology", "2xT4", "--batch-size", 64, "--seconds", 3, "--evaluations", 10_000_000, "--no-cache"]
    result = process("plan", files.saved_model, *arguments, "--progress", "--json", "-o", tmp_path / "plan.json")
    assert result.code == 0
    assert result.json["search"]["seconds"] >= 3
    assert "planning" in result.err
    assert "evaluations" in result.err

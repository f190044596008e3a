"""`tf-regal show`: every figure in it is the plan's; broken files are refused."""

import dataclasses
import json
import pathlib
import re

import pytest

import tf_regal
from tf_regal.cli import summary


@pytest.fixture
def plan(plan_file):
    return tf_regal.load_plan(plan_file)


def test_json_holds_the_plans_figures(run, plan, plan_file):
    found = run("show", plan_file, "--json").json
    for name in ("predicted", "default", "bounds", "search"):
        assert found[name] == dataclasses.asdict(getattr(plan, name))
    assert found["ops"] == len(plan.ops)
    assert found["control_edges"] == len(plan.edges)
    assert found["notes"] == plan.notes
    assert found["change"]["makespan"] == pytest.approx(plan.predicted.makespan_s / plan.default.makespan_s - 1)
    assert found["gap"]["makespan"] == pytest.approx(plan.predicted.makespan_s / plan.bounds.makespan_s - 1)
    assert found["gap"]["peak"] >= 0


def test_json_per_device(run, plan, plan_file):
    found = run("show", plan_file, "--json").json["devices"]
    assert [device["name"] for device in found] == list(plan.topology.names)
    for q, device in enumerate(found):
        assert device["ops"] == len(plan.order[device["name"]]) > 0
        assert device["peak_bytes"] == plan.predicted.peak_bytes[device["name"]]
        # The curve's highest step is at the time that is shown.
        at = [held for t, held in plan.memory[q] if t / 1e9 == device["peak_at_s"]]
        assert max(at) == max(held for _, held in plan.memory[q]) == device["peak_bytes"]
        durations = {name: int(e - s) for name, s, e in zip(plan.ops, plan.start_ns, plan.end_ns, strict=True)}
        here = sorted((durations[op] for op in plan.order[device["name"]]), reverse=True)
        assert [round(op["seconds"] * 1e9) for op in device["longest_ops"]] == here[:5]
        assert device["op_seconds"] == pytest.approx(sum(here) / 1e9)


def test_transfers_add_up(run, plan, plan_file):
    links = run("show", plan_file, "--json").json["transfers"]
    assert sum(link["count"] for link in links) == len(plan.transfers)
    assert sum(link["bytes"] for link in links) == plan.predicted.transfer_bytes


def test_text(run, plan, plan_file):
    result = run("show", plan_file)
    assert (result.code, result.err) == (0, "")
    first = result.out.splitlines()[0]
    assert re.fullmatch(
        r".*plan\.json: worth applying: predicted runtime \d.* [mu]s, default \d.* [mu]s \(-\d+\.\d %\)", first
    )
    for text in (
        "lower bound", "largest peak of a device", "moved between devices", "CPU:0 -> CPU:1", "regal, ",
        " evaluations in ", "policy none (uniform), seed 0", f"needed: {len(plan.edges)} control edges", "2xCPU",
        plan.fingerprint[:12],
        "longest ops on CPU:0", "longest ops on CPU:1", "note: argument x: dimension 0 = 4096 (batch_size)",
    ):  # fmt: skip
        assert text in result.out, text
    assert max(map(len, result.out.splitlines())) <= 160


def test_a_plan_at_the_lower_bound_is_called_the_optimum(plan):
    at_bound = dataclasses.replace(plan.bounds, makespan_s=plan.predicted.makespan_s, peak_bytes=max(plan.predicted.peak_bytes.values()) - 1)
    runtime, peak = (line for line in summary.full_text(summary.figures(dataclasses.replace(plan, bounds=at_bound), "plan.json")).splitlines()
                     if line.lstrip().startswith(("runtime per call", "largest peak")))  # fmt: skip
    assert runtime.rstrip().endswith("0: the optimum")
    assert peak.rstrip().endswith("+0.0 %")


def test_the_verdict_of_a_plan_that_does_not_pay(plan):
    text = summary.short_text(summary.figures(dataclasses.replace(plan, pays=False), "plan.json"))
    assert text.startswith("plan.json: not worth applying (too little to be gained): predicted runtime")


def test_the_verdict_for_peak_memory(plan):
    text = summary.short_text(summary.figures(dataclasses.replace(plan, objective="peak_memory"), "plan.json"))
    assert re.match(r"plan.json: worth applying: predicted peak_memory [\d.]+ MB, default [\d.]+ MB \(", text)


def test_devices_of_other_processes_keep_their_full_names():
    local = "/job:localhost/replica:0/task:0/device:"
    worker = "/job:worker/replica:0/task:1/device:CPU:0"
    assert summary.short_names([local + "GPU:0"]) == {local + "GPU:0": "GPU:0"}
    assert summary.short_names([local + "CPU:0", worker])[local + "CPU:0"] == local + "CPU:0"


def test_chrome_trace(run, plan, plan_file, tmp_path):
    result = run("show", plan_file, "--chrome-trace", tmp_path / "trace.json")
    assert result.code == 0
    assert str(tmp_path / "trace.json") in result.out
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert set(plan.ops) <= {event["name"] for event in events}
    found = run("show", plan_file, "--chrome-trace", tmp_path / "trace.json", "--json").json
    assert found["chrome_trace"] == str(tmp_path / "trace.json")


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_files_that_are_no_plan(run, plan_file, tmp_path, as_json):
    text = pathlib.Path(plan_file).read_text()
    changed = text.replace('"objective":"runtime"', '"objective":"peak_memory"')
    assert changed != text
    contents = {
        "cut.json": (text[:-200], "cannot be read as JSON"),
        "empty.json": ("", "cannot be read as JSON"),
        "changed.json": (changed, "the checksum does not fit"),
        "list.json": ("[1]", "no tf-regal file"),
        "binary.json": (b"\xff\xfe\x00", "cannot be read as JSON"),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        result = run("show", tmp_path / name, *as_json)
        assert result.code == 1
        assert message in result.err
        assert len(result.err.splitlines()) == 1
        if as_json:
            assert result.json["error"]["type"] == "PlanFileError"
    for path, message in ((tmp_path / "none.json", "there is no such file"), (tmp_path, "cannot be read")):
        result = run("show", path, *as_json)
        assert result.code == 1
        assert message in result.err

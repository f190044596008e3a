"""logdir= of enable, function, plan and the command line: what ends up where TensorBoard looks."""

import json
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import ALWAYS

import tf_regal
from tf_regal import cli
from tf_regal.tensorboard import metadata


def towers(a, b):
    for _ in range(3):
        a, b = tf.tanh(a @ a), tf.sin(b @ b)
    return tf.reduce_sum(a - b)


ARGS = [np.random.default_rng(i).standard_normal((64, 64)).astype(np.float32) for i in range(2)]


def test_enable_writes_what_became_of_each_function(tmp_path, serve, seen):
    @tf.function
    def small(x):
        return x + 1

    with tf_regal.enable(**ALWAYS | {"min_ops": 10}, logdir=tmp_path):
        traced = tf.function(towers)
        first = traced(*ARGS)
        small(1.0)
    assert first == tf.function(towers)(*ARGS)
    plans, problems = serve(tmp_path).plans()
    assert problems == []
    assert {(p["function"], p["status"]) for p in plans} == {(r.function, r.status) for r in seen()}
    assert {p["status"] for p in plans} == {"planned", "skipped"}
    assert [r.entry for r in seen("towers")] == [p["id"] for p in plans if "towers" in p["function"]]


def overview(logdir, identity):
    with zipfile.ZipFile(logdir / metadata.ASSETS / f"{identity}.view.zip") as archive:
        return json.loads(archive.read("overview.json"))


def test_a_call_of_a_planned_function_is_recorded_once(tmp_path, seen):
    planned = tf_regal.function(towers, **ALWAYS, logdir=tmp_path)
    expected = tf.function(towers)(*ARGS)
    results = [planned(*ARGS) for _ in range(6)]
    assert all(result == expected for result in results)
    report = seen.only("towers")
    found = overview(tmp_path, report.entry)["measured"]
    assert found["step_ns"] > 0
    by_name = {report.plan.ops[op]: (predicted, took) for op, predicted, took in found["ops"]}
    products = {name for name, kind in zip(report.plan.ops, report.plan.details.types, strict=True) if kind == "MatMul"}
    assert products
    assert products <= set(by_name)
    assert all(0 < took <= found["step_ns"] for _, took in by_name.values())
    written = (tmp_path / metadata.ASSETS / f"{report.entry}.view.zip").stat().st_mtime_ns
    planned(*ARGS)
    assert (tmp_path / metadata.ASSETS / f"{report.entry}.view.zip").stat().st_mtime_ns == written


def test_a_program_that_profiles_itself_goes_on(tmp_path, seen):
    planned = tf_regal.function(towers, **ALWAYS, logdir=tmp_path / "regal")
    tf.profiler.experimental.start(str(tmp_path / "profile"))
    try:
        results = [planned(*ARGS) for _ in range(5)]
    finally:
        tf.profiler.experimental.stop()
    assert len({float(result) for result in results}) == 1
    assert seen.only("towers").status == "planned"
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))


def test_a_log_directory_that_fills_up_does_not_stop_the_program(tmp_path, monkeypatch, seen):
    from tf_regal.tensorboard import writer

    def full(*args):
        raise OSError(28, "No space left on device")

    planned = tf_regal.function(towers, **ALWAYS, logdir=tmp_path)
    monkeypatch.setattr(writer, "write_report", full)
    assert planned(*ARGS) == tf.function(towers)(*ARGS)
    assert seen.only("towers").status == "planned"


@pytest.mark.parametrize("bad", ["", 7, True])
def test_bad_logdir(bad):
    with pytest.raises(tf_regal.errors.InvalidArgumentError, match=r"logdir="):
        tf_regal.enable(logdir=bad)


def test_logdir_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(tf_regal.errors.InvalidArgumentError, match=r"logdir=.*file.*cannot be written"):
        tf_regal.enable(logdir=tmp_path / "file")
    assert not tf_regal.is_enabled()


def test_plan_and_command_line(tmp_path, serve, capsys):
    concrete = tf.function(towers).get_concrete_function(*(tf.TensorSpec([64, 64]) for _ in range(2)))
    plan = tf_regal.plan(concrete, topology="2xCPU", evaluations=50, cache_dir=False, logdir=tmp_path)
    frozen = tmp_path / "g.pb"
    frozen.write_bytes(concrete.graph.as_graph_def().SerializeToString())
    arguments = ["--topology", "2xA100-40GB", "--evaluations", "50", "--no-cache", "--logdir", str(tmp_path), "-o", str(tmp_path / "p.json")]
    assert cli.main(["plan", str(frozen), *arguments]) == 0
    assert f"tensorboard --logdir {tmp_path}" in capsys.readouterr().out
    plans, _ = serve(tmp_path).plans()
    assert {p["topology"] for p in plans} == {"2xCPU", "2xA100-40GB"}
    assert plan.fingerprint in {p["fingerprint"] for p in plans}


def test_a_plan_that_is_tried_is_recorded_after_the_trial(tmp_path, seen):
    """A recorded step takes longer: it must not be one of those that are compared."""
    planned = tf_regal.function(towers, **ALWAYS | {"apply": "if_better", "verify": True}, logdir=tmp_path)
    recorded, large = [], [np.tile(arg, (6, 6)) for arg in ARGS]
    for _ in range(100):
        planned(*large)
        report = seen.only("towers")
        assert report.status != "default_kept", "the towers are too small for the plan to be predicted better"
        found = overview(tmp_path, report.entry)["measured"] is not None
        recorded.append(found)
        if found:
            assert report.measured is not None, "it was recorded during the trial"
    assert report.measured is not None
    assert recorded[-1] == (report.status == "planned")

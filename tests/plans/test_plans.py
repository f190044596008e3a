"""What a plan says is consistent; the cache; the Chrome trace; plan and apply."""

import dataclasses
import itertools
import json
import os
import stat

import absl.logging
import numpy as np
import pytest
import tensorflow as tf

import tf_regal
from tf_regal import errors
from tf_regal.plans import PlanCache

from .models_for_plans import QUICK, body, concrete, plan_of

VARIANTS = [
    {},
    {"objective": "peak_memory"},
    {"method": "topological", "order": "full"},
    {"topology": "2xA100-40GB"},
    {"topology": "paper"},
]
each = pytest.mark.parametrize("settings", VARIANTS, ids=str)


@pytest.fixture
def warned(monkeypatch):
    messages = []
    monkeypatch.setattr(absl.logging, "warning", lambda text, *args: messages.append(text % args))
    return messages


@each
def test_schedule_is_consistent(settings):
    plan = plan_of(**settings)
    names = plan.topology.names
    assert set(plan.placement) == set(plan.ops)
    assert sorted(op for ops in plan.order.values() for op in ops) == sorted(plan.ops)
    assert set(plan.order) == set(names)
    for name, ops in plan.order.items():
        assert all(plan.placement[op] == name for op in ops)
        starts = [int(plan.start_ns[plan.ops.index(op)]) for op in ops]
        assert starts == sorted(starts)
    last = max(int(plan.end_ns.max()), *(t[4] for t in plan.transfers)) if plan.transfers else int(plan.end_ns.max())
    assert plan.predicted.makespan_s == pytest.approx(last / 1e9)
    assert plan.predicted.transfer_bytes == sum(t[5] for t in plan.transfers)
    for q, name in enumerate(names):
        assert max(b for _, b in plan.memory[q]) == plan.predicted.peak_bytes[name]
    assert plan.bounds.makespan_s <= plan.predicted.makespan_s
    for before, after in plan.edges.tolist():
        assert plan.end_ns[before] <= plan.start_ns[after]


@each
def test_chrome_trace(tmp_path, settings):
    plan = plan_of(**settings)
    plan.to_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    devices = [e for e in bars if e["pid"] < plan.topology.n_devices]
    assert sorted(e["name"] for e in devices) == sorted(plan.ops)
    assert len(bars) - len(devices) == len(plan.transfers)
    by_lane = {}
    for bar in bars:
        assert bar["dur"] >= 0
        by_lane.setdefault((bar["pid"], bar["tid"]), []).append((bar["ts"], bar["ts"] + bar["dur"]))
    for lane in by_lane.values():
        lane.sort()
        for (_, end), (start, _) in itertools.pairwise(lane):
            assert end <= start + 1e-6
    for q, spec in enumerate(plan.topology.devices):
        positive = {e["tid"] for e in devices if e["pid"] == q and e["dur"] > 0}
        assert len(positive) <= spec.lanes, "more lanes than the device has"
    named = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert [named[q] for q in range(plan.topology.n_devices)] == list(plan.topology.names)
    counters = [e for e in events if e["ph"] == "C"]
    for q, name in enumerate(plan.topology.names):
        assert max(e["args"]["bytes"] for e in counters if e["pid"] == q) == plan.predicted.peak_bytes[name]


def test_same_plan_again():
    a, b = (tf_regal.plan(concrete(), **QUICK).to_json() for _ in range(2))
    a["search"].pop("seconds"), b["search"].pop("seconds")
    assert a == b


def test_provenance():
    plan = tf_regal.plan(concrete(), **{**QUICK, "seed": 7})
    assert (plan.search.method, plan.search.seed, plan.search.policy) == ("regal", 7, None)
    assert plan.search.evaluations == 200
    assert plan.search.seconds >= 0
    assert (plan.objective, plan.order_mode) == ("runtime", "needed")


def test_default_included():
    for settings in VARIANTS[:2]:
        for seed in range(5):
            plan = tf_regal.plan(concrete(), **{**QUICK, **settings, "seed": seed, "evaluations": 30})
            if plan.objective == "runtime":
                assert plan.predicted.makespan_s <= plan.default.makespan_s * 1.001
            else:
                assert max(plan.predicted.peak_bytes.values()) <= max(plan.default.peak_bytes.values())


def test_max_slowdown_bounds_the_predicted_time():
    """Measured against the default plan's time, as Settings says."""
    for slowdown in (1.0, 1.2, 2.0):
        plan = tf_regal.plan(concrete(), **{**QUICK, "objective": "peak_memory", "max_slowdown": slowdown})
        assert plan.predicted.makespan_s <= slowdown * plan.default.makespan_s * 1.0001 or not plan.pays


def cached(tmp_path, model, **settings):
    return tf_regal.plan(model, **{**QUICK, "cache_dir": tmp_path / "cache", **settings})


def entries(tmp_path):
    return sorted((tmp_path / "cache").glob("*"))


def test_cache_hit(tmp_path, monkeypatch):
    first = cached(tmp_path, concrete())
    assert len(entries(tmp_path)) == 1
    monkeypatch.setattr("tf_regal.plans.planner.make_plan", lambda *a, **k: pytest.fail("planned again"))
    second = cached(tmp_path, concrete())
    assert json.dumps(first.to_json()) == json.dumps(second.to_json())


def test_cache_hit_with_other_op_names(tmp_path, monkeypatch):
    first = cached(tmp_path, concrete())
    monkeypatch.setattr("tf_regal.plans.planner.make_plan", lambda *a, **k: pytest.fail("planned again"))

    def elsewhere(x):
        with tf.name_scope("zz/elsewhere"):
            return body(x)

    other = concrete(elsewhere)
    second = cached(tmp_path, other)
    assert second.ops != first.ops
    assert all(a == b for a, b in zip(first.placement.values(), second.placement.values(), strict=True))


@pytest.mark.parametrize(
    "settings",
    [{"seed": 1}, {"evaluations": 201}, {"objective": "peak_memory"}, {"topology": "3xCPU"}, {"order": "none"}, {"method": "heft"}],
    ids=str,
)
def test_cache_is_missed_for_other_settings(tmp_path, settings):
    cached(tmp_path, concrete())
    cached(tmp_path, concrete(), **settings)
    assert len(entries(tmp_path)) == 2


def test_cache_is_missed_for_another_graph(tmp_path):
    cached(tmp_path, concrete())
    cached(tmp_path, concrete(n=65))
    assert len(entries(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "other plan"])
def test_damaged_entry_is_one_warning_and_planned_again(tmp_path, damage, warned):
    want = cached(tmp_path, concrete())
    (path,) = entries(tmp_path)
    content = path.read_bytes()
    if damage == "other plan":
        tf_regal.plan(concrete(n=65), **QUICK).save(path)
    else:
        path.write_bytes({"truncate": content[:-50], "garbage": b"xx" + content, "empty": b""}[damage])
    got = cached(tmp_path, concrete())
    assert len(warned) == 1
    assert "planned again" in warned[0]
    assert got.placement == want.placement
    warned.clear()
    cached(tmp_path, concrete())
    assert warned == [], "the entry was mended"


@pytest.mark.parametrize("how", ["a file is in the way", "read-only"])
def test_cache_that_cannot_be_written_is_one_warning(tmp_path, how, warned):
    if how == "read-only":
        if os.getuid() == 0:
            pytest.skip("root may write everywhere")
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache").chmod(stat.S_IRUSR | stat.S_IXUSR)
    else:
        (tmp_path / "cache").write_text("")
    plan = cached(tmp_path, concrete())
    assert plan.placement
    assert len(warned) == 1
    assert "cache_dir" in warned[0]


def test_cache_entry_that_cannot_be_read(tmp_path, warned):
    cached(tmp_path, concrete())
    (path,) = entries(tmp_path)
    path.unlink()
    path.mkdir()
    assert cached(tmp_path, concrete()).placement
    assert warned
    assert "planned again" in warned[0]


def test_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TF_REGAL_CACHE_DIR", str(tmp_path / "env"))
    tf_regal.plan(concrete(), **QUICK)
    assert not (tmp_path / "env").exists()
    tf_regal.plan(concrete(), **{**QUICK, "cache_dir": None})
    assert len(list((tmp_path / "env").iterdir())) == 1


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("TF_REGAL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert PlanCache(None).directory == tmp_path / "tf_regal"
    assert PlanCache(False).directory is None
    assert PlanCache(str(tmp_path)).directory == tmp_path


def test_notes_and_bindings_are_in_the_plan():
    model = tf.function(body).get_concrete_function(tf.TensorSpec([None, None]))
    notes = tf_regal.plan(model, **{**QUICK, "batch_size": 8}).notes
    assert any("dimension 0 = 8 (batch_size)" in note for note in notes)


def test_tf_function_with_one_trace_or_a_signature():
    fn = tf.function(body)
    with pytest.raises(errors.GraphError, match=r"traced 0 times.*get_concrete_function"):
        tf_regal.plan(fn, **QUICK)
    fn(tf.ones([64, 64]))
    assert tf_regal.plan(fn, **QUICK).fingerprint == plan_of().fingerprint
    fn(tf.ones([32, 32]))
    with pytest.raises(errors.GraphError, match="traced 2 times"):
        tf_regal.plan(fn, **QUICK)
    signed = tf.function(body, input_signature=[tf.TensorSpec([64, 64])])
    assert tf_regal.plan(signed, **QUICK).fingerprint == plan_of().fingerprint


def test_plan_after_a_gradient_was_taken():
    """TensorFlow adds the intermediates to the traced graph's outputs then; the function has not changed."""
    fn = concrete()
    plan = tf_regal.plan(fn, **{**QUICK, "topology": "local"})
    x = tf.eye(64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    tape.gradient(y, x)
    later = tf_regal.plan(fn, **{**QUICK, "topology": "local"})
    assert later.fingerprint == plan.fingerprint
    np.testing.assert_array_equal(tf_regal.apply(later, fn)(x), y)


def test_plan_and_apply_of_an_op_graph():
    from tf_regal.graph import models

    read = models.read(concrete(), default_device="CPU:0")
    with pytest.raises(errors.GraphError, match="no costs for device"):
        tf_regal.plan(read.graph, **QUICK)
    plan_of()
    read.graph.durations["*"] = np.ones(read.graph.n_ops, np.int64) * 1000
    plan = tf_regal.plan(read.graph, **QUICK)
    assert plan.fingerprint == read.graph.fingerprint
    with pytest.raises(errors.GraphError, match="nothing that could run"):
        tf_regal.apply(plan, read.graph)


@pytest.mark.parametrize("slowdown", [1.0, 1.2, 50.0])
def test_a_plan_that_takes_longer_than_max_slowdown_does_not_pay(slowdown):
    """Branches that two lanes run side by side: two at a time save memory and take a little longer, one at a time saves more and takes twice as long.

    Two at a time is what two threads do by themselves, since each works depth first: such a plan does not pay either, and says why.
    """

    def wide(x):
        return tf.add_n([tf.reduce_sum(tf.tanh(x @ (x + float(i)))) for i in range(8)])

    two_lanes = dataclasses.replace(tf_regal.Topology.parse("1xCPU").devices[0], lanes=2)
    topology = tf_regal.Topology("two lanes", (two_lanes,), [[0]], [[1.0]])
    function = tf.function(wide).get_concrete_function(tf.TensorSpec([256, 256]))
    plan = tf_regal.plan(function, topology=topology, objective="peak_memory", max_slowdown=slowdown, evaluations=500, cache_dir=False)
    saves = max(plan.predicted.peak_bytes.values()) <= 0.98 * max(plan.default.peak_bytes.values())
    in_time = plan.predicted.makespan_s <= slowdown * plan.default.makespan_s * (1 + 1e-9)
    assert (saves and in_time) == (slowdown > 1.0)
    assert plan.pays == (slowdown == 50.0)
    assert any("TensorFlow's threads by themselves" in note for note in plan.notes) == (slowdown == 1.2)
    assert (plan.predicted.makespan_s > 1.5 * plan.default.makespan_s) == (slowdown == 50.0)

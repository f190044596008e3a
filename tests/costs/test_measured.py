"""Measured costs: what a profile saw, in a file, for any later plan; what it did not see is modelled, put right by what it did."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0

import tf_regal
from tf_regal import errors
from tf_regal.costs import analytic, measured, profile
from tf_regal.devices import Topology
from tf_regal.graph import models, signatures
from tf_regal.hook import measuring

X = tf.constant(np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32))
W = tf.constant(np.random.default_rng(1).normal(size=(256, 256)).astype(np.float32) * 0.05)


def network(x):
    for _ in range(3):
        x = tf.nn.relu(x @ W)
    return tf.reduce_sum(x)


@pytest.fixture(scope="module")
def one_cpu():
    return Topology.detect(only=CPU0)


@pytest.fixture(scope="module")
def costs(tmp_path_factory, one_cpu):
    path = tmp_path_factory.mktemp("costs") / "costs.json"
    found = tf_regal.profile(tf.function(network), X, topology=one_cpu, seconds=0.3, costs=path)
    return found, path


def test_a_profile_sees_the_kernels(costs, one_cpu):
    found, _ = costs
    kinds = found.entries[one_cpu.devices[0].model].values()
    by_type = {cost.op_type: cost for cost in kinds}
    assert by_type.keys() & {"MatMul", "_FusedMatMul"} and "Sum" in by_type
    product = by_type.get("MatMul", by_type.get("_FusedMatMul"))
    assert product.runs >= 3  # three products of a kind per call
    assert 5_000 < product.ns < 50_000_000  # 8.4 MFLOP on a core


def test_a_file_is_read_back(costs, tmp_path):
    found, path = costs
    again = measured.Costs.load(path)
    assert again.entries == found.entries and again.digest == found.digest
    again.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == path.read_bytes()


def test_plans_use_the_file(costs, one_cpu, tmp_path):
    found, path = costs
    concrete = tf.function(network).get_concrete_function(X)
    settings = {"topology": one_cpu, "cache_dir": tmp_path}
    analytic = tf_regal.plan(concrete, **settings)
    plan = tf_regal.plan(concrete, costs=str(path), **settings)
    assert plan.default.makespan_s != analytic.default.makespan_s
    assert any(note.startswith("costs: measured for") for note in plan.notes)
    capture = models.read(concrete, default_device=CPU0).capture
    kinds = signatures.of_ops(capture)
    known = found.entries[one_cpu.devices[0].model]
    seen = sum(known[kind].ns for kind in kinds if kind in known)
    assert plan.default.makespan_s * 1e9 >= 0.9 * seen / one_cpu.devices[0].lanes


def test_what_was_not_seen_is_put_right_by_what_was(costs, one_cpu):
    """A network of another width has other kinds of products; their modelled time is corrected as that of the products seen."""
    found, _ = costs
    other = tf.constant(np.ones((256, 128), np.float32))
    concrete = tf.function(lambda x: tf.reduce_sum(x @ other)).get_concrete_function(X)
    capture = models.read(concrete, default_device=CPU0).capture
    analytic.add_costs(capture, one_cpu)
    model = one_cpu.devices[0].model
    before = capture.graph.durations[model].copy()
    note = measured.add_costs(capture, one_cpu, found)
    after = capture.graph.durations[model]
    product = next(i for i, t in enumerate(capture.graph.types) if "MatMul" in t)
    assert after[product] != before[product]
    assert "costs: measured for" in note
    kinds = signatures.of_ops(capture)
    assert kinds[product] not in found.entries[model]


def test_same_kind_same_digest():
    def kinds(function, *args):
        capture = models.read(tf.function(function).get_concrete_function(*args), default_device=CPU0).capture
        return dict(zip(capture.graph.types, signatures.of_ops(capture), strict=True))

    a = kinds(lambda x, y: tf.matmul(x, y) + 1.0, tf.ones([4, 8]), tf.ones([8, 2]))
    b = kinds(lambda u, v: tf.matmul(u, v) + 2.0, tf.ones([4, 8]), tf.ones([8, 2]))
    assert a["MatMul"] == b["MatMul"]
    assert a["MatMul"] != kinds(lambda u, v: tf.matmul(u, v) + 2.0, tf.ones([4, 9]), tf.ones([9, 2]))["MatMul"]
    assert a["MatMul"] != kinds(lambda u, v: tf.matmul(u, v, transpose_b=True) + 2.0, tf.ones([4, 8]), tf.ones([2, 8]))["MatMul"]


def test_ops_that_share_a_core_are_charged_their_share():
    assert profile.own_time([0, 0], [10, 10], 1) == [5, 5]
    assert profile.own_time([0, 0], [10, 10], 2) == [10, 10]
    assert profile.own_time([0, 5], [10, 7], 1) == [9, 1]
    assert profile.own_time([], [], 1) == []
    rng = np.random.default_rng(0)
    starts = rng.random(200) * 100
    ends = starts + rng.random(200) * 20
    busy, until = 0.0, -1.0
    for start, end in sorted(zip(starts, ends, strict=True)):
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    # Together they are charged exactly the time in which the core was busy.
    assert sum(profile.own_time(starts.tolist(), ends.tolist(), 1)) == pytest.approx(busy)


def test_enable_measures_on_the_first_calls_and_keeps_it(tmp_path):
    settings = {"topology": "local", "costs": "measured", "min_ops": 0, "cache_dir": tmp_path, "on_error": "raise"}
    count = tf.Variable(0)

    def step(x):
        count.assign_add(1)
        return network(x)

    with tf_regal.enable(**settings):
        function = tf.function(step)
        before, calls = len(tf_regal.reports()), 0
        while len(tf_regal.reports()) == before:
            function(X)
            calls += 1
            assert calls < 100_000
    assert count.numpy() == calls > 2
    assert tf_regal.reports()[-1].status in ("planned", "default_kept")
    assert (tmp_path / "costs.json").exists()
    # Another function of the same kinds of ops is planned on its first call.
    with tf_regal.enable(**settings):
        tf.function(lambda x: network(x) + 1.0)(X)
    assert len(tf_regal.reports()) == before + 2


def test_a_function_that_is_not_called_again_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "_MIN_SECONDS", 0.2)
    with tf_regal.enable(topology="local", costs="measured", min_ops=0, cache_dir=tmp_path, on_error="raise"):
        seldom = tf.function(lambda x: tf.reduce_sum(tf.cos(x) @ W))
        seldom(X)
        seldom(X)  # from now on it is recorded
        other = tf.function(lambda x: tf.reduce_max(tf.sinh(x)))
        before, deadline = len(tf_regal.reports()), time.monotonic() + 60
        while len(tf_regal.reports()) == before:
            other(X)
            assert time.monotonic() < deadline
    assert tf_regal.reports()[-1].status in ("planned", "default_kept")


@pytest.mark.parametrize("content", ["", "{}", '{"sha256": "0", "data": {}}'])
def test_damaged_files(content, tmp_path):
    path = tmp_path / "costs.json"
    path.write_text(content)
    with pytest.raises(errors.CostFileError, match=r"cannot be read as a cost file.*tf_regal\.profile"):
        tf_regal.enable(costs=str(path))


def test_a_plan_file_is_no_cost_file(tmp_path, one_cpu):
    plan = tf_regal.plan(tf.function(network).get_concrete_function(X), topology=one_cpu, cache_dir=False)
    plan.save(tmp_path / "plan.json")
    with pytest.raises(errors.CostFileError, match=r"kind 'tf_regal\.Plan'"):
        tf_regal.enable(costs=str(tmp_path / "plan.json"))
    assert json.loads((tmp_path / "plan.json").read_text())


@pytest.mark.parametrize("seconds", [0, -1, True, "2"])
def test_bad_seconds(seconds):
    with pytest.raises(errors.InvalidArgumentError, match="seconds="):
        tf_regal.profile(tf.function(network), X, seconds=seconds)


def test_bad_costs():
    with pytest.raises(errors.InvalidArgumentError, match="costs=3"):
        tf_regal.enable(costs=3)


def test_scratch_of_pooling_is_seen():
    """With oneDNN's kernels max pooling keeps a workspace; without there is none. Whatever the build, the figure is no less than nothing."""
    function = tf.function(lambda x: tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "SAME")))
    found = tf_regal.profile(function, tf.ones([4, 32, 32, 8]), topology=CPU0, seconds=0.2, cache_dir=False)
    pools = [cost for kinds in found.entries.values() for cost in kinds.values() if cost.op_type == "MaxPool"]
    assert pools and all(cost.scratch >= 0 for cost in pools)


@pytest.mark.parametrize("seconds", [5, -3600])
def test_a_clock_of_another_machine_is_put_right(seconds, monkeypatch):
    now = time.time_ns
    assert abs(profile.clock_offset(CPU0)) < 1e8
    monkeypatch.setattr(profile.time, "time_ns", lambda: now() - seconds * 10**9)
    assert profile.clock_offset(CPU0) == pytest.approx(seconds * 1e9, abs=1e8)

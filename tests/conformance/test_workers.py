"""Plans on worker processes: measured links, ops and variables there, and what happens when a worker dies."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, warnings
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
from tf_regal.bench.workers import Workers

with Workers(2) as workers:
    import tensorflow as tf
    import tf_regal
    from tf_regal.devices import Link, Topology

    measured = Topology.parse("/job:worker")
    assert measured.names == tuple(workers.devices), measured.names
    link = measured.link(0, 1)
    assert 10_000 < link.latency_ns < 100_000_000 and 1e6 < link.bandwidth < 1e12, link
    assert measured.blocking_transfers and measured.devices[0].model.endswith(", measured")
    everything = Topology.detect()
    assert everything.n_devices == 3

    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(32, 128)).astype(np.float32))

    def make():
        with tf.device(workers.devices[0]):
            towers = [[tf.Variable(np.random.default_rng(i).normal(size=(128, 128)).astype(np.float32) * 0.1) for i in range(3)] for _ in range(2)]
            count = tf.Variable(0)

        def step(x):
            count.assign_add(1)
            outputs = []
            for tower in towers:
                y = x
                for weights in tower:
                    y = tf.tanh(y @ weights)
                outputs.append(y)
            for tower in towers:
                for weights in tower:
                    weights.assign_sub(0.01 * weights)
            return tf.reduce_sum(outputs[0] - outputs[1] * 0.5)

        return step, towers, count

    def run(function, n=4):
        with tf.device(workers.devices[0]):
            return [float(function(x).numpy()) for _ in range(n)]

    step, _, _ = make()
    expected = run(tf.function(step))
    settings = dict(topology="/job:worker", min_ops=0, cache_dir=False, on_error="raise", apply="always")
    step, towers, count = make()
    planned = tf_regal.optimize(step, move_variables=True, method="topological", **settings)
    assert run(planned) == expected
    report = tf_regal.reports()[-1]
    assert report.status == "planned" and report.applied.ops_on_planned_device == report.applied.ops_planned, str(report)
    assert {v.device for tower in towers for v in tower} == set(workers.devices)
    assert int(count.numpy()) == 4
    print("placed")

    # As the README has it, with everything on.
    step, _, _ = make()
    with tf_regal.enable(topology="/job:worker", costs="measured", move_variables=True, min_ops=0, on_error="raise"):
        everything_on = tf.function(step)
        before, losses = len(tf_regal.reports()), []
        while len(tf_regal.reports()) == before or (tf_regal.reports()[-1].status == "planned" and tf_regal.reports()[-1].measured is None):
            losses += run(everything_on, 1)
    assert losses[:4] == expected and tf_regal.reports()[-1].status != "failed", str(tf_regal.reports()[-1])

    # A recorded call: every op of it lies within the call, whatever the workers' clocks say.
    import json, pathlib, zipfile
    logdir = pathlib.Path(os.environ["TF_REGAL_CACHE_DIR"]) / "log"
    step, _, _ = make()
    recorded = tf_regal.optimize(step, move_variables=True, method="topological", logdir=logdir, **settings)
    assert run(recorded, 5) == losses[:5]
    (path,) = logdir.glob("plugins/tf_regal/*.view.zip")
    with zipfile.ZipFile(path) as archive:
        found = json.loads(archive.read("overview.json"))["measured"]
    types = tf_regal.reports()[-1].plan.details.types
    products = [op for op, _, took in found["ops"] if types[op] == "MatMul" and 0 < took <= found["step_ns"]]
    assert len(products) == 6, found
    print("recorded")

    # A cost model that promises what the link cannot hold: measured, and rolled back.
    slow = [__import__("dataclasses").replace(d, flops=1e6, launch_overhead_ns=10**7, model="slow") for d in measured.devices]
    promised = Topology.from_links("promised", slow, lambda i, j: Link(0, 1e15))
    def ping_pong(x):
        a = b = x
        for _ in range(25):
            a, b = tf.sin(a) + b[:1, :1], tf.cos(b) + a[:1, :1]
        return tf.reduce_sum(a + b)
    expected = run(tf.function(ping_pong), 1)[0]
    bad = tf_regal.optimize(ping_pong, topology=promised, min_ops=0, cache_dir=False, on_error="raise")
    calls = 0
    while calls == 0 or tf_regal.reports()[-1].measured is None:
        assert run(bad, 1)[0] == expected
        calls += 1
    report = tf_regal.reports()[-1]
    assert report.plan.pays and report.status == "rolled_back", str(report)
    print("rolled back")

    # A function that only reads goes on without the worker, in the same call; one with side effects says so and goes on afterwards.
    w = tf.Variable(np.eye(128, dtype=np.float32))
    reads = tf_regal.optimize(lambda x: tf.reduce_sum(tf.tanh(tf.tanh(x @ w) @ w)), method="topological", **settings)
    state = tf.Variable(0.0)
    def counts(x):
        state.assign_add(1.0)
        return tf.reduce_sum(tf.tanh(tf.tanh(tf.matmul(x, x, transpose_b=True) @ x)))
    with tf.device(workers.devices[0]):
        writes = tf_regal.optimize(counts, method="topological", **settings)
    before = float(reads(x)), float(writes(x))
    assert all(r.status == "planned" for r in tf_regal.reports()[-2:])
    used = [{r.plan.topology.names[q] for q in r.plan.device} for r in tf_regal.reports()[-2:]]
    assert all(workers.devices[1] in u for u in used), used
    workers.kill(1)
    np.testing.assert_allclose(float(reads(x)), before[0], rtol=1e-5)
    np.testing.assert_allclose(float(reads(x)), before[0], rtol=1e-5)
    try:
        writes(x)
    except tf.errors.OpError as error:
        assert "task:1" in str(error) and "does not answer" in str(error) and "from the next call on" in str(error), error
    else:
        raise AssertionError("the step cannot have been done")
    np.testing.assert_allclose(float(writes(x)), before[1], rtol=1e-5)
    assert Topology.detect().n_devices == 2
    print("went on")
    new = tf_regal.optimize(lambda x: tf.reduce_sum(tf.sin(x) @ w), **{**settings, "topology": "local", "on_error": "warn"})
    float(new(x))
    assert tf_regal.reports()[-1].status == "failed" and "does not answer" in tf_regal.reports()[-1].reason, str(tf_regal.reports()[-1])
    print("left alone")
"""


@pytest.mark.slow
@pytest.mark.cluster
def test_workers(tmp_path):
    env = {**os.environ, "TF_REGAL_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False, env=env)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    # TensorFlow's profiler, too, writes to the standard output.
    lines = [line for line in run.stdout.splitlines() if line and not line.startswith("Starting to trace")]
    assert lines == ["placed", "recorded", "rolled back", "went on", "left alone"]


@pytest.mark.slow
@pytest.mark.cluster
def test_the_example(tmp_path):
    example = pathlib.Path(__file__).parents[2] / "examples" / "two_workers.py"
    env = {**os.environ, "TF_REGAL_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, str(example), "--steps", "4"], capture_output=True, text=True, timeout=300, check=False, env=env)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert "losses equal" in run.stdout

"""Functions with ops on other processes: pinned devices of workers are kept, and the parameter server strategy is respected."""

import pytest
from tf_setup import run_python

SERVERS = """
import json, socket, subprocess
import numpy as np

def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]

def start(job, n, cluster):
    code = (
        "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'; import tensorflow as tf;"
        f"s = tf.distribute.Server({cluster!r}, job_name={job!r}, task_index={n}, protocol='grpc'); s.join()"
    )
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)

import tf_regal
FORCED = dict(min_ops=0, apply="always", method="topological", order="full", evaluations=100, cache_dir=False, on_error="raise")
"""

WORKERS = """
cluster = {"worker": [f"localhost:{free_port()}" for _ in range(2)]}
servers = [start("worker", n, cluster) for n in range(2)]
try:
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster))
    with tf.device("/job:worker/task:1"):
        v = tf.Variable(np.eye(8, dtype=np.float32) * 2)

    def body(x):
        with tf.device("/job:worker/task:0"):
            a = tf.tanh(x @ x)
        with tf.device("/job:worker/task:1"):
            b = tf.sin(a @ v)
            v.assign_add(tf.eye(8))
        return a + tf.cos(b), tf.sin(x) @ b

    x = tf.constant(np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32))
    plain = [t.numpy() for t in tf.function(body)(x)]
    for topology in ("local", "2xCPU"):
        v.assign(np.eye(8) * 2)
        with tf_regal.enable(**{**FORCED, "on_error": "warn", "topology": topology}):
            fn = tf.function(body)
            for step in range(3):
                got = [t.numpy() for t in fn(x)]
                if step == 0:
                    assert all((a == b).all() for a, b in zip(got, plain)), topology
        assert (v.numpy() == np.eye(8) * 5).all()
    for report in tf_regal.reports():
        print(report.status, report.reason[:200])
finally:
    for server in servers:
        server.kill()
"""

PARAMETER_SERVER = """
cluster = {"worker": [f"localhost:{free_port()}"], "ps": [f"localhost:{free_port()}"]}
servers = [start("worker", 0, cluster), start("ps", 0, cluster)]
cluster["chief"] = [f"localhost:{free_port()}"]
try:
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(tf.ones([8, 8]))

    def train():
        @tf.function
        def step():
            def replica():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum((tf.tanh(w @ tf.eye(8)) - 0.5) ** 2)
                w.assign_sub(0.1 * tape.gradient(loss, w))
                return loss
            return strategy.run(replica)

        for _ in range(4):
            coordinator.schedule(step)
            coordinator.join()
        return w.numpy()

    plain = train()
    w.assign(tf.ones([8, 8]))
    with tf_regal.enable(**{**FORCED, "on_error": "warn"}):
        assert (train() == plain).all()
    for report in tf_regal.reports():
        print(report.status, report.reason[:200])
finally:
    for server in servers:
        server.kill()
"""


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("program", "verdicts"),
    [(WORKERS, ["planned runtime"] * 2), (PARAMETER_SERVER, ["skipped it runs under tf.distribute (ParameterServerStrategyV2), which places it"])],
    ids=["pinned to workers", "parameter server strategy"],
)
def test_cluster(program, verdicts):
    lines = run_python(SERVERS + program).splitlines()
    assert len(lines) == len(verdicts)
    for line, verdict in zip(lines, verdicts, strict=True):
        assert line.startswith(verdict)

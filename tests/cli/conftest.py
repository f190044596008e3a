"""Small models in files, a plan of one of them, and the command line in this process or another."""

import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import clean_hook

from tf_regal import cli

__all__ = ["clean_hook"]

BATCH = 4096


class Towers(tf.Module):
    """Four towers of two layers over one input: worth a second device."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.weights = [tf.Variable(rng.normal(0, 0.1, (64, 64)).astype(np.float32)) for _ in range(8)]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="x")])
    def serve(self, x):
        towers = [tf.nn.relu(tf.nn.relu(x @ a) @ b) for a, b in zip(self.weights[::2], self.weights[1::2], strict=True)]
        return {"y": tf.concat(towers, -1)}

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="x")])
    def first(self, x):
        return {"y": tf.nn.relu(x @ self.weights[0])}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Paths: saved_model, graph_def (.pb), graph_text (.pbtxt), directory (one without a model)."""
    base = tmp_path_factory.mktemp("models")
    towers = Towers()
    signatures = {"serving_default": towers.serve, "first": towers.first}
    tf.saved_model.save(towers, str(base / "saved_model"), signatures=signatures)
    weights = [weight.numpy() for weight in towers.weights]
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 64], "x")
        tf.concat([tf.nn.relu(x @ weight) for weight in weights], -1, name="y")
    definition = graph.as_graph_def()
    (base / "graph.pb").write_bytes(definition.SerializeToString())
    (base / "graph.pbtxt").write_text(str(definition))
    (base / "directory").mkdir()
    return types.SimpleNamespace(
        saved_model=str(base / "saved_model"),
        graph_def=str(base / "graph.pb"),
        graph_text=str(base / "graph.pbtxt"),
        directory=str(base / "directory"),
    )


@pytest.fixture(scope="session")
def plan_file(files, tmp_path_factory):
    """A plan of the SavedModel for two catalogue CPUs, with ops on both."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    arguments = ["--topology", "2xCPU", "--batch-size", str(BATCH), "--evaluations", "300", "--no-cache"]
    assert cli.main(["plan", files.saved_model, *arguments, "-o", str(path)]) == 0
    return str(path)


class Result:
    """Exit code, stdout and stderr of one command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        """stdout, which must be one JSON object and nothing else."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


@pytest.fixture
def run(capsys):
    """run("plan", …) → Result, in this process."""

    def call(*arguments):
        capsys.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def process():
    """process("plan", …) → Result, in another process, with the environment as a user has it."""

    def call(*arguments, program=(sys.executable, "-m", "tf_regal"), cwd=None, timeout=120):
        environment = {k: v for k, v in os.environ.items() if k not in ("TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")}
        command = [*program, *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=cwd, env=environment, timeout=timeout
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call

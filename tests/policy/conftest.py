"""A tiny training, made once by the command line: Spektral needs a process in which Keras is tf_keras."""

import os
import subprocess
import sys
import types

import pytest

from tf_regal.bench import graphs

TRAINING = ["--topology", "3xV100-16GB", "--evaluations", "60", "--batch", "2", "--samples", "2", "--validate-every", "2", "--variants", "2", "--threads", "2",
            "--validation-evaluations", "60"]  # fmt: skip


def run(*command, code=0, env=None):
    """The command line in a process of its own → CompletedProcess."""
    done = subprocess.run(
        [sys.executable, "-m", "tf_regal", *map(str, command)], capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **(env or {})}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="session")
def graph_files(tmp_path_factory):
    """Paths of graphs with costs for every device, and with room."""
    folder = tmp_path_factory.mktemp("graphs")
    for seed in range(3):
        graphs.layered(100 + 10 * seed, seed).save(folder / f"g{seed}-b1.json")
    return sorted(folder.iterdir())


@pytest.fixture(scope="session")
def trained(graph_files, tmp_path_factory):
    """directory: of a training of four steps; policy: of what it gave; graph: one it learned from; train(output, *options): the same again, elsewhere."""

    def train(output, *options, **more):
        return run("train", *graph_files[:2], "--validation", graph_files[2], *TRAINING, "-o", output, *options, **more)

    directory = tmp_path_factory.mktemp("training") / "t"
    train(directory, "--steps", "4", "--json")
    return types.SimpleNamespace(directory=directory, policy=directory / "policy", train=train, graph=graph_files[0])

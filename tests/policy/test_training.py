"""Training through the command line: the same after a kill, every algorithm, and what is refused."""

# bazel: manual (trains a policy, which needs TensorFlow and Spektral)
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from tests.policy.conftest import TRAINING, run


def curve(directory):
    return [json.loads(line) for line in (directory / "curve.jsonl").read_text().splitlines()]


def script(text, timeout=300):
    """Runs Python where Keras is tf_keras."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False, timeout=timeout,
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_a_training_leaves(trained):
    points = curve(trained.directory)
    assert [point["step"] for point in points] == [0, 1, 2, 3, 4]
    assert [point["step"] for point in points if "validation" in point] == [0, 2, 4]
    assert all(-3 < point["reward"] < 0 for point in points[1:])
    assert list((trained.directory / "curves").iterdir())
    assert not list(trained.directory.rglob("*.part")) + list(trained.directory.rglob("*.tmp"))


def test_a_killed_training_goes_on_with_the_same_curve(trained, graph_files, tmp_path):
    output = tmp_path / "t"
    command = [sys.executable, "-m", "tf_regal", "train", *graph_files[:2], "--validation", graph_files[2], *TRAINING, "--steps", "4", "-o", output]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while not (output / "checkpoint.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (output / "policy").exists()
    trained.train(output, "--steps", "4")
    assert curve(output) == curve(trained.directory)
    with np.load(output / "checkpoint.npz") as mine, np.load(trained.directory / "checkpoint.npz") as theirs:
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in theirs.files)
    # Another seed in the same directory would be another training.
    done = run("train", *graph_files[:2], "--validation", graph_files[2], *TRAINING, "--steps", "4", "--seed", "1", "-o", output, code=2)
    assert "holds a training with other settings: seed=1 (there: 0)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "network", "figure"), [("reinforce", "sequence", "entropy"), ("imitation", "constant", "loss")])
def test_the_other_algorithms_and_networks(trained, tmp_path, algorithm, network, figure):
    output = tmp_path / "t"
    trained.train(output, "--steps", "2", "--algorithm", algorithm, "--network", network)
    points = curve(output)
    assert all(np.isfinite(point[figure]) for point in points[1:])
    assert (output / "policy" / "card.json").exists()
    before = (output / "curve.jsonl").read_text()
    trained.train(output, "--steps", "2", "--algorithm", algorithm, "--network", network)  # nothing is left to do
    assert (output / "curve.jsonl").read_text() == before
    more = tmp_path / "more"
    trained.train(more, "--steps", "1", "--start", output, "--network", network)
    assert curve(more)[0]["validation"] == max(point["validation"] for point in points if "validation" in point)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "steps=0 is not valid; expected a whole number, 1 or more"),
        (["--rate", "-1"], "rate=-1.0 is not valid"),
        (["--objective", "speed"], "objective='speed' is not known"),
        (["--topology", "2xB52"], "B52"),
        (["--algorithm", "dqn"], "invalid choice: 'dqn'"),
    ],
)
def test_bad_options(graph_files, tmp_path, options, message):
    assert message in run("train", graph_files[0], *options, "-o", tmp_path / "t", code=2).stderr


def test_bad_input(graph_files, tmp_path):
    assert "no such file" in run("train", tmp_path / "nothing.json", "-o", tmp_path / "t", code=1).stderr
    (tmp_path / "damaged.json").write_text("{")
    assert "damaged.json" in run("train", tmp_path / "damaged.json", "-o", tmp_path / "t", code=1).stderr
    done = run("train", graph_files[0], "--max-ops", "3", "-o", tmp_path / "t", code=1)
    assert "graphs: none of 1 graphs has at most max_ops=3 ops" in done.stderr
    done = run("train", graph_files[0], "--start", tmp_path, "-o", tmp_path / "u", code=2)
    assert "cannot be used" in done.stderr


@pytest.mark.parametrize("kind", ["graph", "pairs"])
def test_the_network_against_numpy(kind):
    """Every layer again, one op, one device and one edge at a time."""
    script(f"kind = {kind!r}\n" + textwrap.dedent("""
        import dataclasses
        import numpy as np
        import tensorflow as tf
        from tf_regal.bench import graphs
        from tf_regal.devices import Topology
        from tf_regal.plans.planner import default_placement
        from tf_regal.policy import algorithms, features, network
        from tf_regal.problem import build
        from tf_regal.search import Task, proposal

        problem = build(graphs.layered(40), Topology.parse("3xA100-40GB"))[0]
        f = features.extract(Task(problem, "runtime", default_placement(problem)))
        net = network.build(kind, 8, 3, seed=1)
        rng = np.random.default_rng(0)
        net.set_weights([rng.normal(0, 0.4, w.shape) for w in net.get_weights()])
        found = net(algorithms.tensors(f))
        w = {v.name.replace(":0", "").removeprefix(f"policy_{kind}/"): v.numpy() for v in net.weights}
        dense = lambda name, x: x @ w[name + "/kernel"] + w.get(name + "/bias", 0)
        n = len(f.op)
        states = [np.tanh(dense("encoder", f.op if kind == "graph" else np.concatenate([f.op, f.device[:, q]], 1))) for q in range(3)]
        for _ in range(3):
            around = dense("mix", sum(states) / 3) if kind == "pairs" else 0
            new = []
            for state in states:
                into, out = np.zeros_like(state), np.zeros_like(state)
                for s, t, a, b in zip(f.source, f.target, f.forward, f.backward):
                    into[t] += a * state[s]
                    out[s] += b * state[t]
                conv = lambda name, taken: taken @ w[name + "/kernel_1"] + state @ w[name + "/kernel_2"] + w[name + "/bias"]
                new.append(np.tanh(state + around + conv("inward", into) + conv("outward", out)))
            states = new
        state = sum(states) / 3
        bounded = lambda x: 1 / (1 + np.exp(-x)) * np.array([1.0, network.LEVELS])
        op = bounded(dense("op_out", np.tanh(dense("op_hidden", np.concatenate([state, f.op], 1)))) + dense("op_direct", f.op))
        np.testing.assert_allclose(found["priority"], op, atol=2e-5)
        for q in range(3):
            pair = np.concatenate([states[q], f.device[:, q]], 1)
            affinity = bounded(dense("device_out", np.tanh(dense("device_hidden", pair))) + dense("device_direct", f.device[:, q]))
            np.testing.assert_allclose(found["affinity"][:, q], affinity, atol=2e-5)
        np.testing.assert_allclose(found["value"], dense("value", state.mean(0, keepdims=True))[0], atol=2e-5)
        chosen = network.choices(found["priority"]).numpy()
        assert chosen.tolist() == proposal.choice(found["priority"][:, 0].numpy(), found["priority"][:, 1].numpy()).tolist()
        from tf_regal.policy import config
        assert set(config.ALGORITHMS) == set(algorithms.CLASSES)
        primed = network.build("graph", 8, 3, seed=1)
        network.prime(primed, "runtime")
        priority = primed(algorithms.tensors(f))["priority"][:, 0].numpy()
        assert np.corrcoef(priority, f.op[:, 0])[0, 1] > 0.99
    """))


@pytest.mark.slow
def test_both_policy_gradients_learn():
    """Twenty independent ops, each fast on one of two devices, which nothing but the `duration` feature tells: the reward must rise."""
    out = script("""
        import json
        import numpy as np
        from tf_regal.bench import graphs
        from tf_regal.devices import Topology
        from tf_regal.plans.planner import default_placement
        from tf_regal.policy import algorithms, config, features, instances, network
        from tf_regal.problem import build
        from tf_regal.search import Task

        n = 20
        none, zeros = np.zeros(0, np.int32), np.zeros(n + 1, np.int32)
        problem = build(graphs.layered(n), Topology.parse("2xA100-40GB"))[0].replace(
            duration=np.array([[100, 200], [200, 100]] * (n // 2)), group=np.arange(n), view=np.full(n, -1), scratch=np.zeros((n, 2)), persistent=np.zeros(n),
            input_ptr=zeros, input_idx=none, control_ptr=zeros, control_idx=none, reuse_ptr=zeros, reuse_idx=none,
        )

        class Made(instances.Prepared):
            def __init__(self):
                self.task = Task(problem, "runtime", default_placement(problem))
                self._features, self._lock = features.extract(self.task), instances.threading.Lock()

        instance = instances.Instance("made", "made", "runtime")
        instances._prepared[instance] = Made()

        class Set:
            def draw(self, count, key):
                return [instance]

            def rewards(self, rollouts):
                from tf_regal.policy.rollouts import value
                return np.array([-value(r) / 2000 for r in rollouts])

        for name, rate, steps in (("pgpe", 0.05, 60), ("reinforce", 0.02, 150)):
            settings = config.Config((), (), algorithm=name, rate=rate, batch=1, samples=8, evaluations=3)
            net = network.build("graph", 8, 2)
            algorithm = algorithms.CLASSES[name](net, Set(), settings)
            rewards = [algorithm.step(i)["reward"] for i in range(steps)]
            print(json.dumps([name, np.mean(rewards[:10]), np.mean(rewards[-10:])]))
    """)
    for line in out.splitlines():
        name, first, last = json.loads(line)
        assert last > first + 0.05, (name, first, last)
    assert len(out.splitlines()) == 2


@pytest.mark.slow
@pytest.mark.cluster
def test_ray_gives_what_threads_give_and_survives_a_killed_worker(trained, tmp_path):
    pytest.importorskip("ray", reason="pip install 'tf-regal[ray]'")
    output = tmp_path / "t"
    trained.train(output, "--steps", "4", "--ray", "local")
    assert curve(output) == curve(trained.directory)
    script(f"""
        import os, signal, threading, time
        import numpy as np
        import ray
        from tf_regal.policy import rollouts
        from tf_regal.policy.instances import Instance

        jobs = [rollouts.Rollout(Instance({str(trained.graph)!r}, "3xV100-16GB", "runtime"), None, None, s, 4000)
                for s in range(40)]
        ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
        runner = rollouts.Ray("auto")
        pids = ray.get([ray.remote(lambda i: (time.sleep(0.5), os.getpid())[1]).remote(i) for i in range(2)])

        def kill():
            time.sleep(1.0)
            for pid in set(pids[:1]):
                os.kill(pid, signal.SIGKILL)

        threading.Thread(target=kill).start()
        values = runner.values(jobs)
        runner.close()
        threads = rollouts.Threads(2)
        assert values.tolist() == threads.values(jobs).tolist()
        threads.close()
        ray.shutdown()
    """)

"""Proposals from a SavedModel: in a process without Spektral and tf_keras, for any number of devices, and without a trace in the user's program."""

# bazel: manual (trains a policy, which needs TensorFlow and Spektral)
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.bench import graphs
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.policy import cards, inference
from tf_regal.problem import build
from tf_regal.search import METHODS, Budget, Task


@pytest.fixture(scope="module")
def policy(trained):
    return inference.Policy(trained.policy)


def task_of(problem):
    return Task(problem, "runtime", default_placement(problem))


@pytest.mark.parametrize("n_devices", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("n_ops", [1, 2, 77])
def test_any_number_of_devices_and_ops(policy, n_devices, n_ops):
    task = task_of(cases.random_problem(np.random.default_rng(n_ops), n_ops, n_devices))
    task.proposal = policy.propose(task)
    assert task.proposal.affinity.shape == (n_ops, n_devices)
    assert METHODS["brkga"](task, Budget(30)).evaluations == 30


def test_the_order_of_the_ops_does_not_matter(policy):
    """A graph with its ops listed in another order gets the same proposals, op by op, where the heuristics see no ties."""
    rng = np.random.default_rng(4)
    graph = cases.Graph(2, ns_per_byte=0.1)
    tensors = []
    for i in range(30):
        inputs = sorted(rng.choice(i, min(i, 2), replace=False).tolist())
        op = graph.op(rng.integers(1000, 100_000, 2).tolist(), inputs=[tensors[j] for j in inputs])
        tensors.append(graph.tensor(op, size=int(rng.integers(1000, 100_000))))
    problem = graph.problem()
    new = rng.permutation(30)  # old op -> new op; tensors go with their ops
    order = np.argsort(new)
    inputs = [[new[t] for t in problem.inputs(op)] for op in order]
    ptr = np.concatenate([[0], np.cumsum([len(x) for x in inputs])])
    moved = problem.replace(
        duration=problem.duration[order], scratch=problem.scratch[order], persistent=problem.persistent[order], group=np.arange(30),
        size=problem.size[order], view=problem.view[order], lifetime=problem.lifetime[order], producer=np.arange(30),
        input_ptr=ptr, input_idx=np.concatenate(inputs).astype(np.int32),
    )  # fmt: skip
    mine, theirs = policy.propose(task_of(problem)), policy.propose(task_of(moved))
    assert np.mean(theirs.priority[new] == mine.priority) > 0.9
    assert np.mean(theirs.affinity[new] == mine.affinity) > 0.9


def test_the_same_again(policy):
    task = task_of(build(graphs.layered(60), Topology.parse("2xA100-40GB"))[0])
    assert policy.propose(task).priority.tobytes() == policy.propose(task).priority.tobytes()


def test_a_process_of_its_own(trained):
    """Neither Spektral nor tf_keras comes in, the user's Keras stays Keras 3, and what TensorFlow is set to stays as it was."""
    script = f"""
        import sys
        import numpy as np
        import tensorflow as tf
        tf.keras.utils.set_random_seed(1)
        first = tf.random.uniform([2]).numpy().tolist()
        tf.keras.utils.set_random_seed(1)
        import tf_regal
        from tf_regal.bench import graphs
        tf.config.run_functions_eagerly(True)
        with tf.device("/CPU:0"), tf.Graph().as_default():
            plan = tf_regal.plan(graphs.layered(60), topology="2xA100-40GB", policy={str(trained.policy)!r}, evaluations=50, cache_dir=False)
        assert plan.search.policy == {str(trained.policy)!r}
        assert "spektral" not in sys.modules and "tf_keras" not in sys.modules
        assert tf.keras.__version__.startswith("3"), tf.keras.__version__
        assert tf.random.uniform([2]).numpy().tolist() == first
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_it_works_under_the_hook(trained):
    """The policy's own function is not planned, and the user's is, with it."""
    script = f"""
        import tensorflow as tf
        import tf_regal
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)

        @tf.function
        def f(x):
            return tf.add_n([tf.nn.relu(x @ x) @ x for _ in range(4)])

        with tf_regal.enable(min_ops=1, policy={str(trained.policy)!r}, cache_dir=False, on_error="raise", evaluations=100):
            f(tf.ones([64, 64]))
        reports = tf_regal.reports()
        assert [r.function for r in reports] == ["f"], reports
        assert reports[0].plan.search.policy == {str(trained.policy)!r}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_the_shipped_policies(objective):
    path = cards.shipped(objective)
    card = cards.read(path, objective)
    assert sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) <= 5e6
    assert {"command", "results", "training"} <= set(card)
    task = task_of(build(graphs.layered(200), Topology.parse("2xA100-40GB"))[0])
    task.objective = objective
    made = inference.Policy(path, objective).propose(task)
    recorded = np.load(f"{__file__.rpartition('/')[0]}/golden_{objective}.npz")
    # Another processor may round differently; a choice at the border between two may then be its neighbour.
    assert np.mean(made.affinity == recorded["affinity"]) > 0.99
    assert np.mean(made.priority == recorded["priority"]) > 0.99

"""Analytic costs: sizes, device models, and what is free."""

import numpy as np
import pytest
import tensorflow as tf

import tf_regal
from tf_regal.costs import analytic
from tf_regal.graph import models

HEAVY = ("MatMul", "Conv2D", "Tanh")


def costs(python_function, topology, *specs):
    concrete = tf.function(python_function).get_concrete_function(*specs)
    topology = tf_regal.Topology.parse(topology)
    capture = models.read(concrete, default_device=topology.names[0]).capture
    analytic.add_costs(capture, topology)
    return capture.graph, topology


def duration_of(graph, kind, model):
    return int(sum(d for t, d in zip(graph.types, graph.durations[model], strict=True) if t == kind))


def matmul(n, model="A100-40GB"):
    graph, _ = costs(lambda x: x @ x, f"1x{model}", tf.TensorSpec([n, n]))
    return duration_of(graph, "MatMul", model)


@pytest.mark.parametrize("model", ["CPU", "T4", "A100-40GB", "TPUv4"])
def test_positive_where_there_is_work_and_zero_where_there_is_none(model):
    def f(x):
        image = tf.reshape(x, [4, 16, 16, 2])
        y = tf.nn.conv2d(image, tf.ones([3, 3, 2, 8]), 1, "SAME")
        return tf.tanh(tf.reshape(y, [4, -1])) @ tf.ones([2048, 5]), tf.identity(x)

    graph, topology = costs(f, f"1x{model}", tf.TensorSpec([4, 512]))
    spec = topology.devices[0]
    for kind in HEAVY:
        assert duration_of(graph, kind, spec.model) > spec.launch_overhead_ns
    for kind in ("_Arg", "_Retval", "Const", "Reshape"):
        assert kind in graph.types
        assert duration_of(graph, kind, spec.model) == 0
    assert graph.durations[spec.model].dtype == np.int64


@pytest.mark.parametrize("model", ["CPU", "A100-40GB", "TPUv4"])
def test_larger_takes_longer(model):
    times = [matmul(n, model) for n in (64, 256, 1024, 4096)]
    assert times == sorted(times)
    assert times[-1] > 10 * times[-2]  # 64 times the operations, launches and memory apart


def test_close_to_the_roofline():
    """A large matrix product takes FLOPs / peak, plus the bytes, plus a launch: Grappler adds them."""
    spec = tf_regal.Topology.parse("1xA100-40GB").devices[0]
    n = 4096
    want = (2 * n**3 / spec.flops + 3 * 4 * n * n / spec.bandwidth) * 1e9 + spec.launch_overhead_ns
    assert matmul(n) == pytest.approx(want, rel=0.05)


def test_models_differ():
    assert len({matmul(2048, model) for model in ("CPU", "T4", "V100-16GB", "A100-40GB", "H100-80GB", "TPUv4")}) == 6
    assert matmul(2048, "CPU") > matmul(2048, "T4") > matmul(2048, "A100-40GB")


def test_one_entry_per_model_in_a_mixed_topology():
    graph, topology = costs(lambda x: tf.tanh(x @ x), "1xCPU+2xT4", tf.TensorSpec([512, 512]))
    assert set(graph.durations) == {spec.model for spec in topology.devices}
    assert len(graph.durations) == 2


@pytest.mark.parametrize("topology", ["2xA100-40GB", "4xTPUv4", "2xCPU", "1xCPU+2xT4", "8xH100-80GB", "paper"])
@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_devices_that_are_not_here_can_be_planned_for(topology, objective):
    def f(x):
        return sum(tf.tanh(x @ (x + float(i))) @ x for i in range(6))

    concrete = tf.function(f).get_concrete_function(tf.TensorSpec([1024, 1024]))
    plan = tf_regal.plan(concrete, topology=topology, objective=objective, evaluations=400, cache_dir=False)
    names = tf_regal.Topology.parse(topology).names
    assert set(plan.placement.values()) <= set(names)
    assert set(plan.predicted.peak_bytes) == set(names)
    assert plan.bounds.makespan_s <= plan.predicted.makespan_s
    assert plan.bounds.peak_bytes <= max(plan.predicted.peak_bytes.values())
    if objective == "runtime":
        assert plan.predicted.makespan_s <= plan.default.makespan_s
    else:
        assert max(plan.predicted.peak_bytes.values()) <= max(plan.default.peak_bytes.values())


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_a_graph_larger_than_one_device_is_split(objective):
    """Six branches of which one device holds about half."""
    def f(x):
        big = [tf.tanh(x @ (x + float(i))) for i in range(8)]
        return tf.add_n([tf.reduce_sum(a * b) for a, b in zip(big, big[::-1], strict=True)])

    concrete = tf.function(f).get_concrete_function(tf.TensorSpec([512, 512]))
    unlimited = tf_regal.plan(concrete, topology="2xA100-40GB", objective="peak_memory", evaluations=400, cache_dir=False)
    limit = int(max(unlimited.predicted.peak_bytes.values()) * 1.2)
    small = tf_regal.Topology.parse("2xA100-40GB").with_memory(limit)
    plan = tf_regal.plan(concrete, topology=small, objective=objective, evaluations=1000, cache_dir=False)
    assert max(plan.predicted.peak_bytes.values()) <= limit
    assert plan.feasible


def test_loops_cost_more_than_their_body_once():
    def looped(x):
        return tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])[1]

    spec = tf.TensorSpec([512, 512])
    loop, topology = costs(looped, "1xT4", spec)
    once, _ = costs(lambda x: tf.tanh(x @ x), "1xT4", spec)
    model = topology.devices[0].model
    assert duration_of(loop, "Region", model) > 2 * once.durations[model].sum()

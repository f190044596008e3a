"""Loops and branches: contracted into one op each, left unordered, and with the same results when planned."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import SPREAD, assert_same, calls

import tf_regal
from tf_regal.graph import models

X = tf.constant(np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32) / 4)
CONTROL_FLOW = {"Enter", "Exit", "NextIteration", "LoopCond", "Switch", "Merge"}


def pre(x):
    return tf.sin(x) @ x + 1


def one_loop(x):
    y = pre(x)
    for _ in tf.range(5):
        y = tf.tanh(y @ x)
    return tf.cos(y) @ x, y


def loop_with_other_work_beside(x):
    a = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])[1]
    b = tf.sin(x) @ tf.cos(x)
    for _ in range(3):
        b = tf.sin(b @ x)
    return a + b, b


def loops_in_a_row(x):
    y = pre(x)
    for _ in tf.range(3):
        y = tf.tanh(y @ x)
    z = tf.sin(y) @ x
    for _ in tf.range(2):
        z = tf.cos(z) + y
    w = tf.exp(-z) @ y
    for _ in tf.range(4):
        w = w * 0.5 + z
    return w, z


def loop_feeds_loop_directly(x):
    y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])
    return tf.while_loop(lambda i, y: i < 8, lambda i, y: (i + 2, tf.sin(y + x)), y)[1] @ x


def nested_loops(x):
    y = pre(x)
    for i in tf.range(3):
        for _ in tf.range(i):
            y = tf.tanh(y @ x)
        y = y + tf.cast(i, tf.float32)
    return tf.sin(y) @ x


def loop_with_two_loops_inside(x):
    y = pre(x)
    for i in tf.range(2):
        for _ in tf.range(i + 1):
            y = tf.tanh(y @ x)
        for _ in tf.range(2):
            y = tf.sin(y) + x
    return y @ x


def branch(x):
    y = pre(x)
    if tf.reduce_sum(y) > 0:
        z = tf.sin(y) @ x
    else:
        z = tf.cos(y) - x
    return tf.exp(z) @ y, z


def branches_in_a_row(x):
    y = pre(x)
    z = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y) @ x, lambda: tf.cos(y))
    w = tf.tanh(z) @ x
    return tf.cond(tf.reduce_sum(w) > 1, lambda: w + z, lambda: w @ y) @ x


def branch_in_branch(x):
    y = pre(x)

    def inner():
        return tf.cond(tf.reduce_max(y) > 1, lambda: tf.sin(y) @ x, lambda: y)

    return tf.cond(tf.reduce_sum(y) > 0, inner, lambda: tf.cos(y)) @ x


def branch_in_loop(x):
    y = pre(x)
    for i in tf.range(5):
        if i % 2 == 0:
            y = tf.tanh(y @ x)
        else:
            y = tf.sin(y) + x
    return tf.cos(y) @ x


def loop_in_branch(x):
    y = pre(x)
    if tf.reduce_sum(y) > 0:
        for _ in tf.range(3):
            y = tf.tanh(y @ x)
    return tf.cos(y) @ x, y


def loop_and_branch_side_by_side(x):
    a = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])[1]
    b = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) @ x, lambda: tf.cos(x))
    return a @ b, tf.sin(a) + b


def early_exit(x):
    y = pre(x)
    for i in tf.range(10):
        y = tf.tanh(y @ x)
        if tf.reduce_sum(tf.abs(y)) < 1.0:
            break
        if i == 3:
            continue
        y = y + 0.1
    return tf.sin(y) @ x


def tensor_array(x):
    y, array = pre(x), tf.TensorArray(tf.float32, 5)
    for i in tf.range(5):
        y = tf.tanh(y @ x)
        array = array.write(i, y)
    return tf.sin(array.stack()) + 1, array.read(2)


def tensor_array_without_loop(x):
    array = tf.TensorArray(tf.float32, 3).unstack([tf.sin(x), tf.cos(x), x])
    return array.read(1) @ x, array.stack()


def map_fn(x):
    return tf.map_fn(lambda row: tf.reduce_sum(tf.sin(row) * row), pre(x)) + 1


def scan(x):
    return tf.scan(lambda a, row: tf.tanh(a + row), pre(x)) @ x


def loop_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pre(x)
        for _ in tf.range(4):
            y = tf.tanh(y @ x)
        loss = tf.reduce_sum(tf.cos(y) @ x)
    return tape.gradient(loss, x), loss


def branch_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pre(x)
        z = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y) @ x, lambda: tf.cos(y))
        loss = tf.reduce_sum(tf.exp(z) @ x)
    return tape.gradient(loss, x), loss


def switch_case(x):
    y = pre(x)
    index = tf.cast(tf.reduce_sum(tf.abs(y)), tf.int32) % 3
    return tf.switch_case(index, [lambda: y @ x, lambda: tf.sin(y), lambda: tf.cos(y) + x]) @ x


def dynamic_loop_count(x):
    y, i = pre(x), tf.constant(0)
    while tf.reduce_sum(tf.abs(y)) > 2.0 and i < 20:
        y = y * 0.8
        i += 1
    return tf.sin(y) @ x, i


CASES = [
    one_loop, loop_with_other_work_beside, loops_in_a_row, loop_feeds_loop_directly, nested_loops, loop_with_two_loops_inside, branch,
    branches_in_a_row, branch_in_branch, branch_in_loop, loop_in_branch, loop_and_branch_side_by_side, early_exit, tensor_array,
    tensor_array_without_loop, map_fn, scan, loop_gradient, branch_gradient, switch_case, dynamic_loop_count,
]
ids = pytest.mark.parametrize("python_function", CASES, ids=lambda f: f.__name__)


@ids
def test_planned_loops_and_branches_give_the_same(python_function, seen):
    plain = tf.function(python_function)
    planned = tf_regal.optimize(python_function, **SPREAD)
    want = plain(X)
    for got in calls(planned, X):
        assert_same(want, got)
    for x in (-X, X * 3, X * 0.1):
        assert_same(plain(x), planned(x))
    report = seen.only(python_function.__name__)
    assert report.status == "planned", str(report)
    assert report.applied is not None, str(report)
    assert report.applied.ops_on_planned_device == report.applied.ops_planned
    assert_edges_touch_no_region(report.plan, python_function)


@ids
def test_plan_ahead_and_apply_give_the_same(python_function):
    """The graph comes from Grappler here, not from a first call."""
    concrete = tf.function(python_function).get_concrete_function(tf.TensorSpec([4, 4]))
    want = tf.function(python_function)(X)
    plan = tf_regal.plan(concrete, topology="local", method="topological", order="full", cache_dir=False)
    assert_edges_touch_no_region(plan, python_function)
    planned = tf_regal.apply(plan, concrete)
    for got in calls(planned, X, times=3):
        for a, b in zip(tf.nest.flatten(want), tf.nest.flatten(got), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def graph_of(python_function):
    return models.read(tf.function(python_function).get_concrete_function(tf.TensorSpec([4, 4])), default_device="CPU:0").graph


def assert_edges_touch_no_region(plan, python_function):
    regions = {name for name, kind in zip(*_names_and_types(python_function), strict=True) if kind == "Region"}
    for before, after in plan.control_edges:
        assert before not in regions
        assert after not in regions


def _names_and_types(python_function):
    graph = graph_of(python_function)
    return graph.names, graph.types


@ids
def test_control_flow_is_inside_regions_only(python_function):
    graph = graph_of(python_function)
    assert not CONTROL_FLOW & set(graph.types)
    members = [m for ms in graph.members for m in ms]
    assert len(members) == len(set(members))
    for kind, ms in zip(graph.types, graph.members, strict=True):
        assert kind == "Region" or len(ms) == 1
    assert not any(o for o, kind in zip(graph.orderable, graph.types, strict=True) if kind == "Region")


@pytest.mark.parametrize(
    ("python_function", "count"),
    [(one_loop, 1), (loop_with_other_work_beside, 1), (loops_in_a_row, 3), (nested_loops, 1), (branch_in_loop, 1),
     (branch, 1), (branches_in_a_row, 2),
     (loop_and_branch_side_by_side, 2), (pre, 0)],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_number_of_regions(python_function, count):
    assert graph_of(python_function).types.count("Region") == count


@pytest.mark.parametrize("kind", [pytest.param("LSTM", marks=pytest.mark.slow), "GRU"])
def test_recurrent_layer(kind, seen):
    """Keras' own loop over time, forward and backward, in a training step."""
    layer = getattr(tf.keras.layers, kind)(6, return_sequences=True)
    head = tf.keras.layers.Dense(1)
    x = tf.random.stateless_normal([3, 5, 4], [1, 2])
    head(layer(x))
    weights = [tf.identity(w) for w in layer.trainable_variables + head.trainable_variables]

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(head(layer(x)) ** 2)
        variables = layer.trainable_variables + head.trainable_variables
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    def run(fn):
        for v, w in zip(layer.trainable_variables + head.trainable_variables, weights, strict=True):
            v.assign(w)
        return [float(fn(x)) for _ in range(4)]

    want = run(tf.function(step))
    got = run(tf_regal.optimize(step, **SPREAD))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert seen.only("step").status == "planned", str(seen.only("step"))

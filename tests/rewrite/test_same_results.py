"""A planned function gives what the traced one gives, to the bit, on the same devices and in the same structure."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0, SPREAD, assert_same, calls

import tf_regal

M = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def chain(x):
    for i in range(3):
        x = tf.tanh(x @ (x + i)) + tf.sin(x)
    return x


def split_and_join(x):
    a, b, c, d = tf.split(tf.sin(x), 4)
    return tf.concat([d, c + a, b], 0), a


def unstacked(x):
    rows = tf.unstack(tf.cos(x))
    return [r * i for i, r in enumerate(rows)]


def best_three(x):
    values, indices = tf.math.top_k(tf.abs(x), 3)
    return {"values": values, "indices": indices, "sum": tf.reduce_sum(indices)}


def identities(x):
    a, b, c = tf.raw_ops.IdentityN(input=[tf.sin(x), tf.cast(x, tf.int32), x > 0])
    return c, tf.cast(b, tf.float32) + a, b


def uneven_split(x):
    parts = tf.raw_ops.SplitV(value=tf.exp(x), size_splits=[1, 5, 2], axis=0, num_split=3)
    return parts[2], parts[0] + 1


def several_lists(x):
    # Two outputs of which the first is a list: the port numbers of the second come after it.
    table = tf.raw_ops.ParseExample(
        serialized=tf.constant([], tf.string), names=tf.constant([], tf.string), sparse_keys=[b"s"], dense_keys=[b"d", b"e"],
        dense_defaults=[tf.constant([1.0]), tf.constant([2.0])], sparse_types=[tf.int64], dense_shapes=[[1], [1]],
    )
    return table.dense_values[1], table.sparse_shapes[0], tf.sin(x) + tf.reduce_sum(table.dense_values[0])


def unique(x):
    y, index, count = tf.unique_with_counts(tf.cast(tf.reshape(x * 3, [-1]), tf.int32))
    return count, y, index


def integers(x):
    n = tf.cast(x * 100, tf.int64)
    return tf.bitwise.bitwise_xor(n, n // 3), tf.cast(n, tf.uint8), tf.math.floormod(n, 7)


def strings(x):
    text = tf.strings.as_string(x, precision=3)
    return tf.strings.reduce_join(text, axis=1, separator="|"), tf.strings.length(text)


def booleans(x):
    positive = x > 0
    return tf.reduce_any(positive, 0), tf.where(positive, x, -x), tf.math.logical_xor(positive, tf.transpose(positive))


def complex_numbers(x):
    z = tf.complex(x, tf.transpose(x))
    return tf.signal.fft(z), tf.math.abs(z), tf.math.conj(z) * z


def half_precision(x):
    return tf.cast(x, tf.float16) * 2, tf.cast(x, tf.bfloat16) + 1, tf.cast(x, tf.float64) / 3


def gradient_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x @ x))
    return tape.gradient(y, x), y


def untouched_input(x):
    return x, tf.sin(x)


def same_tensor_twice(x):
    y = tf.sin(x) @ x
    return y, y, [y]


def only_constants_and_input(x):
    return x, tf.constant([1, 2, 3]), tf.reduce_sum(x)


def nothing_in_some_places(x):
    return {"a": None, "b": (tf.sin(x), None)}, None


def views(x):
    a = tf.reshape(x, [-1])
    b = tf.expand_dims(a, 0)
    return tf.squeeze(b) + 1, b, tf.stop_gradient(a) * 2


def in_place_and_still_needed(x):
    y = tf.exp(x)
    z = y + 1  # may take y over only where y is not used again
    return z, tf.nn.relu(y), y


def large_constant(x):
    big = tf.constant(np.arange(400_000, dtype=np.float32).reshape(8, -1))
    return x @ big, tf.reduce_sum(big)


def odd_names(x):
    with tf.name_scope("a.b-c/D_9.x>y"):
        y = tf.sin(x, name="1st")
    with tf.name_scope("Func"):
        z = tf.cos(y, name="_Retval")
    return tf.add(y, z, name="Func")


def empty_tensors(x):
    nothing = x[:0]
    return tf.concat([nothing, tf.sin(x)], 0), nothing, tf.reduce_sum(tf.exp(nothing))


def scalars(x):
    return tf.reduce_max(x) + 1.0, tf.size(x), tf.rank(x)


def sorting(x):
    return tf.argsort(x, axis=1), tf.sort(x), tf.cumsum(x, axis=1)


def convolution(x):
    image = tf.reshape(x, [1, 8, 8, 1])
    y = tf.nn.bias_add(tf.nn.conv2d(image, tf.ones([3, 3, 1, 4]) / 9, 1, "SAME"), tf.constant([0.1, 0.2, 0.3, 0.4]))
    return tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "VALID"), tf.nn.softmax(y)


def batch_norm(x):
    image = tf.reshape(x, [2, 4, 4, 2])
    return tf.raw_ops.FusedBatchNormV3(x=image, scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[], variance=[], is_training=True)[:3]


def linear_algebra(x):
    s = x @ tf.transpose(x) + 8 * tf.eye(8)
    values, vectors = tf.linalg.eigh(s)
    return tf.linalg.cholesky(s), values, vectors, tf.linalg.inv(s)


CASES = [
    chain, split_and_join, unstacked, best_three, identities, uneven_split, several_lists, unique, integers, strings, booleans,
    complex_numbers, half_precision, gradient_inside, untouched_input, same_tensor_twice, only_constants_and_input,
    nothing_in_some_places, views, in_place_and_still_needed, large_constant, odd_names, empty_tensors, scalars, sorting, convolution,
    batch_norm, linear_algebra,
]


@pytest.mark.parametrize("python_function", CASES, ids=lambda f: f.__name__)
def test_planned_gives_the_same(python_function, seen):
    plain = tf.function(python_function)
    planned = tf_regal.optimize(python_function, **SPREAD)
    x = tf.constant(M)
    want = plain(x)
    for got in calls(planned, x):
        assert_same(want, got)
    other = tf.constant(M[::-1] + 1)
    assert_same(plain(other), planned(other))
    report = seen.only(python_function.__name__)
    assert report.status == "planned", str(report)
    assert report.applied is not None
    assert report.applied.ops_on_planned_device == report.applied.ops_planned
    assert report.applied.control_edges == report.applied.control_edges_planned == len(report.plan.edges)


@pytest.mark.parametrize("python_function", CASES, ids=lambda f: f.__name__)
def test_results_stay_where_the_default_gives_them(python_function):
    plain = tf.function(python_function)
    planned = tf_regal.optimize(python_function, **SPREAD)
    x = tf.constant(M)
    want = [t.device for t in tf.nest.flatten(plain(x)) if t is not None]
    for got in calls(planned, x, times=3):
        assert [t.device for t in tf.nest.flatten(got) if t is not None] == want
    assert set(want) <= {CPU0}


def test_something_really_runs_on_the_second_device(seen):
    planned = tf_regal.optimize(chain, **SPREAD)
    for _ in range(2):
        planned(tf.constant(M))
    plan = seen.only().plan
    assert len({device for op, device in plan.placement.items()}) == 2


@pytest.mark.parametrize("order", ["needed", "full", "none"])
@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_every_order_and_objective(order, objective):
    planned = tf_regal.optimize(gradient_inside, **{**SPREAD, "method": "regal", "order": order, "objective": objective})
    want = tf.function(gradient_inside)(tf.constant(M))
    for got in calls(planned, tf.constant(M)):
        assert_same(want, got)


def test_signature_of_the_definition_is_kept():
    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, "first"), tf.TensorSpec([], tf.int32, "second")])
    def f(a, b):
        return {"z": tf.sin(a) * tf.cast(b, tf.float32), "y": tf.reduce_sum(a)}

    planned = tf_regal.optimize(f, **SPREAD)
    for _ in range(2):
        planned(tf.constant(M), 3)
    definition = planned.get_concrete_function()._inference_function._planned.definition.signature
    traced = f.get_concrete_function()._inference_function.definition.signature
    assert [(a.name, a.type) for a in definition.input_arg] == [(a.name, a.type) for a in traced.input_arg]
    assert [a.type for a in definition.output_arg] == [a.type for a in traced.output_arg]
    concrete = planned.get_concrete_function()
    assert {k: v.shape.as_list() for k, v in concrete.structured_outputs.items()} == {"z": [None, 8], "y": []}
    assert [s.name for s in concrete.structured_input_signature[0]] == ["first", "second"]

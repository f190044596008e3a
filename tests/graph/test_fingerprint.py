"""Fingerprints depend on the content and on nothing else."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import run_python

from tf_regal.graph import models

SPEC = tf.TensorSpec([4, 4])


def graph_of(python_function, *specs, **options):
    specs = specs or (SPEC,)
    return models.read(tf.function(python_function).get_concrete_function(*specs), default_device="CPU:0", **options).graph


def fingerprint(python_function, *specs, **options):
    return graph_of(python_function, *specs, **options).fingerprint


def base(x):
    return tf.tanh(x @ x + 1.0) * tf.sin(x)


def test_same_function_traced_again():
    assert fingerprint(base) == fingerprint(base)
    assert fingerprint(base) == fingerprint(lambda x: base(x))


def test_names_do_not_count():
    def other_name(other_argument):
        with tf.name_scope("scope"):
            a = tf.add(tf.matmul(other_argument, other_argument, name="m"), 1.0, name="plus")
            return tf.multiply(tf.tanh(a, name="t"), tf.sin(other_argument, name="s"), name="result")

    assert fingerprint(other_name) == fingerprint(base)
    assert graph_of(other_name).names != graph_of(base).names


def test_names_do_not_count_with_calls_loops_and_branches():
    def make(name):
        inner = tf.function(lambda x: tf.sin(x) @ x)

        def body(x):
            with tf.name_scope(name):
                y = inner(x)
                for _ in tf.range(3):
                    y = tf.tanh(inner(y))
                return tf.cond(tf.reduce_sum(y) > 0, lambda: y @ x, lambda: inner(x))

        return body

    assert fingerprint(make("one")) == fingerprint(make("a_much_longer_name"))


PROGRAM = """
    from tf_regal.graph import models
    for _ in range(int(sys.argv[1])):
        tf.function(lambda x: tf.sin(x)).get_concrete_function(tf.TensorSpec([2]))
    w = tf.Variable(tf.ones([4, 4]))
    inner = tf.function(lambda x: tf.tanh(x @ w))
    @tf.function
    def f(x):
        y = inner(x) * tf.constant([1.0, 2.0, 3.0, 4.0])
        y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(y) + x), [0, y])[1]
        w.assign_add(y)
        return tf.cond(tf.reduce_sum(y) > 0, lambda: inner(y), lambda: x)
    print("fingerprint", models.read(f.get_concrete_function(tf.TensorSpec([4, 4])), default_device="CPU:0").graph.fingerprint)
"""


@pytest.mark.slow
def test_same_in_another_process():
    def run(n):
        return [line for line in run_python(PROGRAM, n).splitlines() if line.startswith("fingerprint")]

    first = run(0)
    assert len(first) == 1
    assert first == run(5)


def test_hash_seed_does_not_count():
    assert fingerprint(lambda x: {"b": tf.sin(x), "a": tf.cos(x)}) == fingerprint(lambda x: {"b": tf.sin(x), "a": tf.cos(x)})


def inner_plus(n):
    inner = tf.function(lambda x: x + n)
    return lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(inner(y))), [0, x])[1] @ x


def sorting_by(direction):
    return lambda x: tf.map_fn(lambda row: tf.sort(row, direction=direction), x) @ x


DIFFERENT = {
    "other op": lambda x: tf.tanh(x @ x + 1.0) * tf.cos(x),
    "other constant": lambda x: tf.tanh(x @ x + 2.0) * tf.sin(x),
    "other attribute": lambda x: tf.tanh(tf.matmul(x, x, transpose_b=True) + 1.0) * tf.sin(x),
    "other edge": lambda x: tf.tanh(x @ x + 1.0) * tf.sin(x + 1.0),
    "more ops": lambda x: tf.exp(tf.tanh(x @ x + 1.0) * tf.sin(x)),
    "one more result": lambda x: (tf.tanh(x @ x + 1.0) * tf.sin(x), x @ x),
    "operands swapped": lambda x: tf.sin(x) - tf.tanh(x @ x + 1.0),
}


@pytest.mark.parametrize("what", list(DIFFERENT))
def test_content_counts(what):
    assert fingerprint(DIFFERENT[what]) != fingerprint(base)


def test_all_differ_from_each_other():
    assert len({fingerprint(f) for f in DIFFERENT.values()}) == len(DIFFERENT)


def test_shape_and_dtype_count():
    assert fingerprint(base, tf.TensorSpec([5, 5])) != fingerprint(base)
    assert fingerprint(lambda x: x @ x, tf.TensorSpec([4, 4], tf.float64)) != fingerprint(lambda x: x @ x)


def test_bound_batch_counts():
    spec = tf.TensorSpec([None, 4])
    body = lambda x: tf.sin(x) @ tf.ones([4, 4])  # noqa: E731
    assert fingerprint(body, spec, batch_size=8) == fingerprint(body, spec, batch_size=8)
    assert fingerprint(body, spec, batch_size=8) != fingerprint(body, spec, batch_size=16)
    assert fingerprint(body, spec) == fingerprint(body, spec, batch_size=32)


def test_large_constants_count_to_the_last_element():
    a = np.arange(100_000, dtype=np.float32)
    b = a.copy()
    b[-1] += 1
    assert fingerprint(lambda x: tf.reduce_sum(x) * a) != fingerprint(lambda x: tf.reduce_sum(x) * b)


def test_variable_shapes_count():
    v, w = tf.Variable(tf.ones([4, 8])), tf.Variable(tf.ones([4, 9]))
    assert fingerprint(lambda x: tf.reduce_sum(x @ v)) != fingerprint(lambda x: tf.reduce_sum(x @ w))


def test_requested_device_counts():
    def pinned(x):
        with tf.device("CPU:1"):
            return tf.tanh(x @ x + 1.0) * tf.sin(x)

    assert fingerprint(pinned) != fingerprint(base)


def test_body_of_a_function_that_is_not_inlined_counts():
    """Functions that ops call (tf.data, map_defun) are part of the content: their constants and attributes too."""

    def reduce_by(n):
        return lambda x: tf.data.Dataset.range(5).reduce(x, lambda s, i: tf.tanh(s) * n) @ x

    assert fingerprint(reduce_by(2.0)) == fingerprint(reduce_by(2.0))
    assert fingerprint(reduce_by(2.0)) != fingerprint(reduce_by(3.0))


def test_loop_bodies_count():
    assert fingerprint(inner_plus(1.0)) != fingerprint(inner_plus(2.0))
    assert fingerprint(sorting_by("ASCENDING")) != fingerprint(sorting_by("DESCENDING"))

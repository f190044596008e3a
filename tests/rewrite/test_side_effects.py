"""What a function does besides its results happens once per call, in the order of the program."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU1, SPREAD, assert_same

import tf_regal

X = tf.constant(np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32))


def test_assignments_happen_once_per_call(seen):
    v, count = tf.Variable(tf.zeros([6, 6])), tf.Variable(0, dtype=tf.int64)

    @tf_regal.function(**SPREAD)
    def step(x):
        v.assign_add(tf.sin(x))
        count.assign_add(1)
        v.assign(v * 2)
        return tf.reduce_sum(v)

    want = np.zeros((6, 6), np.float32)
    for i in range(1, 5):
        got = step(X)
        want = (want + np.sin(X.numpy())) * 2
        np.testing.assert_allclose(v.numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(got.numpy(), want.sum(), rtol=1e-4)
        assert count.numpy() == i
    assert seen.only().status == "planned"


def test_function_without_results_still_acts():
    v = tf.Variable(tf.zeros([6, 6]))

    @tf_regal.function(**SPREAD)
    def step(x):
        v.assign_add(tf.exp(x) @ x)

    for _ in range(4):
        assert step(X) is None
    np.testing.assert_allclose(v.numpy(), 4 * (np.exp(X.numpy()) @ X.numpy()), rtol=1e-4)


def test_read_before_and_after_a_write():
    v = tf.Variable(1.0)

    @tf_regal.function(**SPREAD)
    def step(x):
        before = v.read_value()
        v.assign_add(tf.reduce_sum(x) * 0 + 1)
        middle = v.read_value()
        v.assign(v * 3)
        return before, middle, v.read_value()

    value = 1.0
    for _ in range(4):
        before, middle, after = (float(t) for t in step(X))
        assert (before, middle, after) == (value, value + 1, (value + 1) * 3)
        value = after


def test_prints_come_once_and_in_order(tmp_path):
    path = tmp_path / "out.txt"

    @tf_regal.function(**SPREAD)
    def step(x, i):
        tf.print("first", i, output_stream=f"file://{path}")
        y = tf.sin(x) @ x
        tf.print("second", i, tf.size(y), output_stream=f"file://{path}")
        return y

    for i in range(4):
        step(X, tf.constant(i))
    assert path.read_text().splitlines() == [line for i in range(4) for line in (f"first {i}", f"second {i} 36")]


def test_files_are_written():
    @tf_regal.function(**SPREAD)
    def step(x, name):
        tf.io.write_file(name, tf.strings.as_string(tf.reduce_sum(tf.ones_like(x))))
        return tf.sin(x)

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for i in range(3):
            step(X, tf.constant(f"{folder}/{i}"))
            with open(f"{folder}/{i}") as file:
                assert float(file.read()) == 36


def test_queue_gets_each_element_once():
    queue = tf.queue.FIFOQueue(100, [tf.float32], [[6, 6]])

    @tf_regal.function(**SPREAD)
    def step(x, i):
        queue.enqueue(tf.sin(x) + i)
        queue.enqueue(tf.cos(x) + i)

    for i in range(4):
        step(X, tf.constant(float(i)))
    assert queue.size().numpy() == 8
    for i in range(4):
        np.testing.assert_allclose(queue.dequeue(), np.sin(X) + i, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(queue.dequeue(), np.cos(X) + i, rtol=1e-5, atol=1e-6)


def test_failing_assertion_still_fails():
    @tf_regal.function(**SPREAD)
    def step(x):
        tf.debugging.assert_less(tf.reduce_max(x), 100.0, message="too large")
        return tf.sin(x) @ x

    for _ in range(3):
        step(X)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            step(X * 1e6)
    assert_same(step(X), tf.function(lambda x: tf.sin(x) @ x)(X))


def test_error_names_the_op_of_the_program():
    @tf_regal.function(**SPREAD)
    def step(x, i):
        y = tf.sin(x) @ x
        return tf.gather(y, i, name="my_gather")

    for _ in range(3):
        step(X, tf.constant(0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="my_gather"):
        step(X, tf.constant(99))


def test_argument_that_only_its_shape_is_used_of(seen):
    """Grappler folds ones_like(x): the argument is not in the graph that runs."""
    v = tf.Variable(0.0)

    @tf_regal.function(**SPREAD)
    def step(x, y):
        v.assign_add(tf.reduce_sum(tf.ones_like(x)))
        return tf.sin(y) @ y + v

    for i in range(1, 5):
        got = step(X, X)
        assert float(v) == 36 * i
        np.testing.assert_allclose(got, np.sin(X) @ X.numpy() + 36 * i, rtol=1e-5)
    assert seen.only().status == "planned"


def test_argument_without_a_use(seen):
    @tf_regal.function(**SPREAD)
    def step(unused, y, also_unused):
        return tf.sin(y) @ y

    for _ in range(3):
        np.testing.assert_allclose(step(X, X, tf.constant("a")), np.sin(X) @ X.numpy(), rtol=1e-5)
    assert seen.only().status == "planned"


def test_hash_table():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)

    @tf_regal.function(**SPREAD)
    def step(k, x):
        old = table.lookup(k)
        table.insert(k, tf.reduce_sum(tf.ones_like(x), axis=1)[:2] + tf.cast(k, tf.float32))
        return old, table.lookup(k)

    k = tf.constant([3, 4], tf.int64)
    assert step(k, X)[0].numpy().tolist() == [-1, -1]
    for _ in range(3):
        old, new = step(k, X)
        assert old.numpy().tolist() == new.numpy().tolist() == [9, 10]


def test_python_function_is_called_once_per_call():
    happened = []

    def note(x):
        happened.append(float(x))
        return x * 2

    @tf_regal.function(**SPREAD)
    def step(x):
        return tf.numpy_function(note, [tf.reduce_sum(tf.ones_like(x))], tf.float32) + tf.reduce_sum(x) * 0

    for i in range(1, 5):
        assert float(step(X)) == 72
        assert happened == [36.0] * i


def test_variable_on_the_second_device_stays_there():
    with tf.device("CPU:1"):
        v = tf.Variable(tf.ones([6, 6]))
    assert v.device == CPU1

    @tf_regal.function(**SPREAD)
    def step(x):
        v.assign_add(x @ x)
        return tf.reduce_sum(v * x)

    want = np.ones((6, 6), np.float32)
    for _ in range(4):
        got = step(X)
        want = want + X.numpy() @ X.numpy()
        np.testing.assert_allclose(v.numpy(), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got, (want * X.numpy()).sum(), rtol=1e-3)
    assert v.device == CPU1


def test_two_variables_on_two_devices(seen):
    with tf.device("CPU:0"):
        a = tf.Variable(tf.ones([6, 6]))
    with tf.device("CPU:1"):
        b = tf.Variable(tf.ones([6, 6]))

    @tf_regal.function(**SPREAD)
    def step(x):
        a.assign_add(b @ x)
        b.assign_sub(tf.tanh(a))
        return a + b

    pa, pb = np.ones((6, 6), np.float32), np.ones((6, 6), np.float32)
    for _ in range(4):
        step(X)
        pa = pa + pb @ X.numpy()
        pb = pb - np.tanh(pa)
        np.testing.assert_allclose(a.numpy(), pa, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(b.numpy(), pb, rtol=1e-3, atol=1e-4)
    assert seen.only().status == "planned"


def test_sparse_and_scatter_updates():
    v = tf.Variable(tf.zeros([10, 3]))

    @tf_regal.function(**SPREAD)
    def step(i, x):
        v.scatter_add(tf.IndexedSlices(x, i))
        v.scatter_nd_update([[0]], [[7.0, 7.0, 7.0]])
        return tf.gather(v, i)

    i = tf.constant([2, 5])
    for n in range(1, 4):
        got = step(i, tf.ones([2, 3]))
        assert got.numpy().tolist() == [[n] * 3] * 2
        assert v.numpy()[0].tolist() == [7, 7, 7]

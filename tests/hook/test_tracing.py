"""A planned function is a tf.function: tracing, retracing, variables, errors, methods, autograph, lifetime."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import assert_same

import tf_regal

from .programs import ON_BOTH, SETTINGS, X, fresh, is_planned, network


def test_decorator_without_arguments(seen):
    @tf_regal.function
    def step(x):
        return network(x)

    assert_same(step(X), tf.function(network)(X))
    assert seen.only().status == "skipped"  # min_ops


def test_decorator_with_arguments(seen):
    @tf_regal.function(**ON_BOTH)
    def step(x):
        return network(x)

    assert_same(step(X), tf.function(network)(X))
    assert seen.only("step").status == "planned"


def test_the_result_is_presented_like_a_tf_function():
    def step(x):
        """Says what it does."""
        return network(x)

    plain = tf.function(step)
    for fn in (tf_regal.function(step, **ON_BOTH), tf_regal.optimize(step, **ON_BOTH), tf_regal.optimize(plain, **ON_BOTH)):
        assert isinstance(fn, type(plain))
        assert fn.__name__ == plain.__name__ == "step"
        assert fn.__doc__ == plain.__doc__ == "Says what it does."
        assert fn.__wrapped__ is plain.__wrapped__ is step


def test_python_side_effects_happen_while_tracing_only():
    traced = []

    @tf_regal.function(**ON_BOTH)
    def step(x):
        traced.append(x.shape.as_list())
        return network(x)

    for _ in range(4):
        step(X)
    assert traced == [[8, 8]]


def test_user_error_on_the_first_call_then_success(seen):
    @tf_regal.function(**ON_BOTH)
    def step(x, i):
        tf.debugging.assert_less(i, 5, message="i is too large")
        return network(x)

    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="i is too large"):
            step(X, tf.constant(9))
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(step(X, tf.constant(1)), want)
    assert seen.only().status == "planned", str(seen.only())
    with pytest.raises(tf.errors.InvalidArgumentError, match="i is too large"):
        step(X, tf.constant(9))


def test_error_while_tracing(seen):
    @tf_regal.function(**ON_BOTH)
    def step(x, wrong):
        if wrong:
            raise KeyError("mine")
        return network(x)

    with pytest.raises(KeyError, match="mine"):
        step(X, True)
    assert_same(step(X, False), tf.function(network)(X))
    assert seen.only().status == "planned"


def test_retracing_for_new_shapes(seen):
    step = tf_regal.function(fresh("step"), **ON_BOTH)
    plain = tf.function(network)
    for n in (2, 3, 8):
        x = tf.ones([n, n]) / n
        for _ in range(3):
            assert_same(step(x), plain(x))
    assert step.experimental_get_tracing_count() == 3
    assert [r.status for r in seen("step")] == ["planned"] * 3


def test_retracing_for_dtypes_and_python_values(seen):
    @tf_regal.function(**ON_BOTH)
    def step(x, k, deep=False):
        y = network(x) * tf.cast(k, x.dtype)
        return tf.sin(y) if deep else y

    want = tf.function(network)
    assert_same(step(X, 1), want(X) * 1)
    assert_same(step(X, 2), want(X) * 2)
    assert_same(step(tf.cast(X, tf.float64), 2), want(tf.cast(X, tf.float64)) * 2)
    np.testing.assert_allclose(step(X, 2, deep=True), tf.sin(want(X) * 2), rtol=1e-6)
    assert len(seen("step")) == 4


def test_input_signature(seen):
    @tf_regal.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)], **ON_BOTH)
    def step(x):
        return tf.tanh(x) @ tf.transpose(tf.sin(x)) + tf.cos(x) @ tf.transpose(x)

    plain = tf.function(step.python_function)
    for n in (1, 5, 8):
        x = tf.ones([n, 8]) / 9
        for _ in range(2):
            np.testing.assert_allclose(step(x), plain(x), rtol=1e-6)
    assert step.experimental_get_tracing_count() == 1
    assert seen("step")[0].status == "planned"
    with pytest.raises(TypeError):
        step(tf.ones([3, 7]))


def test_reduce_retracing():
    @tf_regal.function(reduce_retracing=True, **ON_BOTH)
    def step(x):
        return tf.sin(x) @ tf.transpose(x)

    for n in range(1, 7):
        x = tf.ones([n, 4])
        np.testing.assert_allclose(step(x), tf.sin(x) @ tf.transpose(x), rtol=1e-6)
    assert step.experimental_get_tracing_count() <= 3


def test_variables_created_on_the_first_call(seen):
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf_regal.function(**ON_BOTH)
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([8, 8]) * 0.1, name="w")
            self.w.assign_add(tf.ones([8, 8]))
            return tf.tanh(x @ self.w) @ self.w

    layer = Layer()
    for i in range(1, 5):
        got = layer(X)
        w = np.full((8, 8), 0.1 + i, np.float32)
        np.testing.assert_allclose(layer.w, w, rtol=1e-5)
        np.testing.assert_allclose(got, np.tanh(X.numpy() @ w) @ w, rtol=1e-4, atol=1e-4)
    assert "planned" in {r.status for r in seen()}, [str(r) for r in seen()]
    assert "failed" not in {r.status for r in seen()}, [str(r) for r in seen()]


def test_methods_of_two_instances():
    class Layer(tf.Module):
        def __init__(self, k):
            super().__init__()
            self.v = tf.Variable(float(k))

        @tf_regal.function(**ON_BOTH)
        def step(self, x):
            self.v.assign_add(1.0)
            return network(x) * 0 + self.v

    a, b = Layer(10), Layer(20)
    for i in range(1, 4):
        assert float(a.step(X)[0, 0]) == 10 + i
        assert float(b.step(X)[0, 0]) == 20 + i
    assert float(a.v) == 13


def test_static_and_class_methods():
    class Layer:
        k = 2.0

        @staticmethod
        @tf_regal.function(**ON_BOTH)
        def plain(x):
            return network(x)

        @classmethod
        def of_class(cls, x):
            return cls.plain(x) * cls.k

    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(Layer.plain(X), want)
        assert_same(Layer().of_class(X), want * 2)


def test_autograph_is_on():
    @tf_regal.function(**ON_BOTH)
    def step(x, n):
        i = 0
        while i < n:
            x = tf.tanh(x @ x)
            i += 1
        if tf.reduce_sum(x) > 1000:
            x = x * 2
        for row in tf.range(2):
            x = x + tf.cast(row, tf.float32)
        return x

    def plain(x, n):
        for _ in range(n):
            x = tf.tanh(x @ x)
        return x + 1

    for n in (0, 1, 3):
        for _ in range(2):
            np.testing.assert_allclose(step(X, tf.constant(n)), plain(X, n), rtol=1e-5, atol=1e-6)


def test_autograph_is_on_for_optimized_python_functions():
    def step(x):
        if tf.reduce_sum(x) > 1000:
            return x
        return tf.sin(x) @ x

    fn = tf_regal.optimize(step, **ON_BOTH)
    for _ in range(2):
        np.testing.assert_allclose(fn(X), tf.sin(X) @ X, rtol=1e-6)


def test_autograph_can_be_off():
    @tf_regal.function(autograph=False, **ON_BOTH)
    def step(x):
        return tf.sin(x) @ x if x.shape[0] == 8 else x

    assert step(X).shape == [8, 8]

    @tf_regal.function(autograph=False, **ON_BOTH)
    def branch(x):
        return x if tf.reduce_sum(x) > 0 else -x

    with pytest.raises(Exception, match=r"(?i)autograph"):
        branch(X)


def test_closures_follow_their_variables():
    v = tf.Variable(2.0)
    fn = tf_regal.function(fresh("closure", lambda x: network(x) * 0 + v), **ON_BOTH)
    for value in (2.0, 5.0, -1.0, 8.0):
        v.assign(value)
        assert float(fn(X)[0, 0]) == value


def test_recursion_of_planned_functions(seen):
    inner = tf_regal.function(fresh("inner"), **ON_BOTH)
    outer = tf_regal.function(fresh("outer", lambda x: inner(x) + inner(x * 2)), **ON_BOTH)
    plain = tf.function(network)
    for _ in range(3):
        np.testing.assert_allclose(outer(X), plain(X) + plain(X * 2), rtol=1e-5)
    for _ in range(3):
        assert_same(inner(X), plain(X))
    assert seen("outer")[0].status == "planned"


def test_structures_and_none(seen):
    @tf_regal.function(**ON_BOTH)
    def step(batch, scale=2.0, *, extra=None):
        (x, y), name = batch["xy"], batch["name"]
        z = tf.sin(x) @ y * scale
        return {"z": [z, (z + 1,)], "none": None, "name": name, "extra": extra}

    batch = {"xy": (X, X + 1), "name": tf.constant("n")}
    plain = tf.function(step.python_function)
    for extra in (None, {"a": X}):
        for _ in range(3):
            got, want = step(batch, 3.0, extra=extra), plain(batch, 3.0, extra=extra)
            assert_same(got, want)
    assert {r.status for r in seen("step")} == {"planned"}


def test_ragged_and_sparse_arguments_and_results(seen):
    @tf_regal.function(**ON_BOTH)
    def step(ragged, sparse):
        total = tf.reduce_sum(ragged, axis=1)
        dense = tf.sparse.sparse_dense_matmul(sparse, tf.ones([3, 2]))
        return ragged * 2.0, total, dense, tf.sparse.add(sparse, sparse)

    ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    sparse = tf.sparse.from_dense([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    plain = tf.function(step.python_function)
    for _ in range(3):
        assert_same(step(ragged, sparse), plain(ragged, sparse))
    assert {r.status for r in seen("step")} == {"planned"}, [str(r) for r in seen()]


def test_indexed_slices_and_tensor_array_results(seen):
    @tf_regal.function(**ON_BOTH)
    def step(x):
        return tf.IndexedSlices(tf.sin(x), tf.range(8), tf.constant([20, 8]))

    for _ in range(3):
        np.testing.assert_allclose(tf.convert_to_tensor(step(X))[:8], tf.sin(X), rtol=1e-6)
    assert seen.only().status == "planned", str(seen.only())


def test_stateless_random_is_the_same(seen):
    def step(x, seed):
        return network(x) + tf.random.stateless_normal([8, 8], seed), tf.random.stateless_uniform([3], seed, maxval=9, dtype=tf.int32)

    plain, planned = tf.function(step), tf_regal.optimize(step, **ON_BOTH)
    for seed in ([1, 2], [3, 4], [1, 2]):
        assert_same(planned(X, tf.constant(seed)), plain(X, tf.constant(seed)))
    assert seen.only("step").status == "planned"


def test_generator_state_goes_on(seen):
    def draws(wrap):
        generator = tf.random.Generator.from_seed(5)
        fn = wrap(fresh("draw", lambda x: network(x) * 0 + generator.normal([8, 8])))
        return [fn(X) for _ in range(5)]

    assert_same(draws(lambda f: tf_regal.optimize(f, **ON_BOTH)), draws(tf.function))
    assert seen.only("draw").status == "planned"


def test_dataset_iterator_as_argument(seen):
    @tf_regal.function(**ON_BOTH)
    def step(iterator):
        x = next(iterator)
        return network(x) * 0 + x

    iterator = iter(tf.data.Dataset.range(6).map(lambda i: tf.ones([4, 4]) * tf.cast(i, tf.float32)))
    assert [float(step(iterator)[0, 0]) for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(tf.errors.OutOfRangeError):
        step(iterator)
    assert seen("step")[0].status == "planned", str(seen("step")[0])


def test_planned_function_goes_when_the_function_goes():
    from tensorflow.python.eager import context

    fn = tf_regal.function(fresh("mortal"), **ON_BOTH)
    for _ in range(3):
        fn(X)
    concrete = fn.get_concrete_function(X)
    assert is_planned(concrete)
    name = concrete._inference_function._planned.name
    traced = concrete._inference_function._original.name
    ref = weakref.ref(concrete)
    assert context.context().has_function(name)
    del fn, concrete
    gc.collect()
    assert ref() is None
    assert not context.context().has_function(traced)
    assert not context.context().has_function(name)


def test_nothing_is_kept_of_a_function_that_was_never_called():
    concrete = tf_regal.function(fresh("idle"), **SETTINGS).get_concrete_function(X)
    ref = weakref.ref(concrete)
    del concrete
    gc.collect()
    assert ref() is None

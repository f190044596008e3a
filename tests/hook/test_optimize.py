"""optimize() on everything that it takes, get_concrete_function, saving and loading."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import assert_same, run_python

import tf_regal
from tf_regal import errors

from .programs import ON_BOTH, X, fresh, is_planned, network


def test_python_function(seen):
    fn = tf_regal.optimize(fresh("python"), **ON_BOTH)
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(fn(X), want)
    assert seen.only("python").status == "planned"


def test_lambda_partial_and_callable_object(seen):
    import functools

    class Model:
        def __call__(self, x):
            return network(x)

        def method(self, x):
            return network(x) + 1

    want = tf.function(network)(X)
    for body, result in (
        (lambda x: network(x), want), (functools.partial(lambda k, x: network(x) * k, 2.0), want * 2), (Model(), want),
        (Model().method, want + 1),
    ):
        fn = tf_regal.optimize(body, **ON_BOTH)
        for _ in range(3):
            np.testing.assert_allclose(fn(X), result, rtol=1e-6)
    assert [r.status for r in seen()] == ["planned"] * 4, [str(r) for r in seen()]


def test_tf_function_stays_as_it_is(seen):
    original = tf.function(fresh("original"))
    want = original(X)
    fn = tf_regal.optimize(original, **ON_BOTH)
    for _ in range(3):
        assert_same(fn(X), want)
    assert is_planned(fn.get_concrete_function(X))
    assert not is_planned(original.get_concrete_function(X))
    assert seen.only().status == "planned"


def test_options_of_the_tf_function_are_kept():
    original = tf.function(fresh(), input_signature=[tf.TensorSpec([None, None], tf.float32, "x")], reduce_retracing=True)
    fn = tf_regal.optimize(original, **ON_BOTH)
    assert fn.input_signature == original.input_signature
    compiled = tf_regal.optimize(tf.function(fresh(), jit_compile=True), **ON_BOTH)
    assert "_XlaMustCompile" in compiled.get_concrete_function(X)._attrs


def test_bound_tf_function_of_an_instance():
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(1.0)

        @tf.function
        def step(self, x):
            self.v.assign_add(1.0)
            return network(x) * 0 + self.v

    layer = Layer()
    fn = tf_regal.optimize(layer.step, **ON_BOTH)
    for i in range(2, 6):
        assert float(fn(X)[0, 0]) == i


class WithLoop:
    """A method that AutoGraph has to convert, with a signature and without."""

    def __init__(self, factor):
        self.factor = factor

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def positive(self, x):
        total = 0.0
        for v in x:
            if v > 0:
                total += v * self.factor
        return total

    @tf.function
    def scaled(self, x, k=2):
        total = 0.0
        for v in x:
            total += v * k * self.factor
        return total


def test_bound_method_with_a_loop_is_converted(seen):
    x, of = tf.constant([1.0, -2.0, 3.0]), WithLoop(2.0)
    first, second = (tf_regal.optimize(of.positive, **ON_BOTH) for _ in range(2))
    assert [f(x).numpy() for f in (first, of.positive, second, first)] == [8.0] * 4
    assert of.scaled(x).numpy() == 8.0  # traced before it is optimized
    fn = tf_regal.optimize(of.scaled, **ON_BOTH)
    assert [fn(x).numpy(), fn(x, k=3).numpy(), fn(x, 4).numpy(), of.scaled(x, 5).numpy()] == [8.0, 12.0, 16.0, 20.0]
    assert WithLoop(1.0).scaled(x).numpy() == 4.0
    assert [r.status for r in seen()] == ["planned"] * 5


def test_concrete_function(seen):
    concrete = tf.function(fresh("concrete")).get_concrete_function(tf.TensorSpec([8, 8], tf.float32, "x"))
    fn = tf_regal.optimize(concrete, **ON_BOTH)
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(fn(X), want)
        assert_same(fn(x=X), want)
    assert is_planned(fn)
    assert not is_planned(concrete)
    assert_same(concrete(X), want)
    assert seen.only().status == "planned"
    assert fn.structured_input_signature == concrete.structured_input_signature


def test_concrete_function_that_has_run_already(seen):
    concrete = tf.function(fresh("ran_before")).get_concrete_function(X)
    want = concrete(X)
    fn = tf_regal.optimize(concrete, **ON_BOTH)
    for _ in range(3):
        assert_same(fn(X), want)
    assert seen.only().status == "planned", str(seen.only())


def test_concrete_function_twice(seen):
    concrete = tf.function(fresh("twice")).get_concrete_function(X)
    first, second = tf_regal.optimize(concrete, **ON_BOTH), tf_regal.optimize(concrete, **{**ON_BOTH, "objective": "peak_memory"})
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(first(X), want)
        assert_same(second(X), want)
    assert [r.status for r in seen()] == ["planned"] * 2, [str(r) for r in seen()]


def test_concrete_function_with_variables_and_gradients():
    w = tf.Variable(X)
    concrete = tf.function(lambda x: tf.tanh(x @ w) @ w).get_concrete_function(X)
    fn = tf_regal.optimize(concrete, **ON_BOTH)

    def gradients(f):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(X))
        return tape.gradient(y, w)

    want = gradients(concrete)
    for _ in range(3):
        fn(X)
        assert_same(gradients(fn), want)
    w.assign(w * 2)
    assert_same(fn(X), concrete(X))


def test_optimized_concrete_function_outlives_the_original():
    import gc

    def make():
        w = tf.Variable(X)
        holder = tf.Module()
        holder.w = w
        return holder, tf_regal.optimize(tf.function(lambda x: tf.tanh(x @ w) @ w).get_concrete_function(X), **ON_BOTH)

    holder, fn = make()
    gc.collect()
    want = np.tanh(X.numpy() @ X.numpy()) @ X.numpy()
    for _ in range(3):
        np.testing.assert_allclose(fn(X), want, rtol=1e-4, atol=1e-5)
        gc.collect()
    del holder


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(X, name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, "x")])
    def serve(self, x):
        return {"y": tf.tanh(x @ self.w) @ self.w, "z": tf.reduce_sum(tf.sin(x), 1)}


def test_saved_model_signature(tmp_path, seen):
    net = Net()
    tf.saved_model.save(net, str(tmp_path / "m"), signatures=net.serve)
    want = net.serve(X)
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    fn = tf_regal.optimize(loaded.signatures["serving_default"], **ON_BOTH)
    for _ in range(3):
        assert_same(fn(x=X), want)
        assert_same(fn(X), want)
    assert seen.only().status == "planned", str(seen.only())
    assert sorted(fn.structured_outputs) == ["y", "z"]
    other = tf.ones([3, 8])
    np.testing.assert_allclose(fn(x=other)["y"], net.serve(other)["y"], rtol=1e-6)


def test_loaded_function_of_a_saved_model(tmp_path, seen):
    net = Net()
    tf.saved_model.save(net, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    fn = tf_regal.optimize(loaded.serve, **ON_BOTH)
    for _ in range(3):
        assert_same(fn(X), net.serve(X))
    assert "planned" in {r.status for r in seen()}, [str(r) for r in seen()]


@pytest.mark.parametrize("fn", [3, None, "model", tf.constant(1.0)])
def test_something_else(fn):
    with pytest.raises(errors.InvalidArgumentError, match=r"fn=.* cannot be optimized; expected a Python function, tf\.function"):
        tf_regal.optimize(fn)


def test_get_concrete_function(seen):
    fn = tf_regal.function(fresh("specs"), **ON_BOTH)
    concrete = fn.get_concrete_function(tf.TensorSpec([8, 8]))
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(concrete(X), want)
    assert_same(fn(X), want)
    assert is_planned(concrete)
    assert fn.experimental_get_tracing_count() == 1
    assert seen.only().status == "planned"


class Planned(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(X, name="w")
        self.steps = tf.Variable(0)

    @tf_regal.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, "x")], **ON_BOTH)
    def serve(self, x):
        self.steps.assign_add(1)
        return {"y": tf.tanh(x @ self.w) @ self.w, "steps": self.steps.read_value()}


@pytest.mark.slow
@pytest.mark.parametrize("ran", [0, 3])
def test_saved_with_tensorflow_and_loaded_without_tf_regal(tmp_path, ran):
    net = Planned()
    for _ in range(ran):
        net.serve(X)
    tf.saved_model.save(net, str(tmp_path / "m"), signatures=net.serve)
    np.save(tmp_path / "x.npy", X.numpy())
    out = run_python(
        """
        import numpy as np
        folder, ran = sys.argv[1], int(sys.argv[2])
        x = np.load(folder + "/x.npy")
        loaded = tf.saved_model.load(folder + "/m")
        want = np.tanh(x @ x) @ x
        for i in range(1, 4):
            got = loaded.signatures["serving_default"](x=tf.constant(x))
            np.testing.assert_allclose(got["y"], want, rtol=1e-4, atol=1e-5)
            assert int(got["steps"]) == ran + i
        np.testing.assert_allclose(loaded.serve(tf.constant(x))["y"], want, rtol=1e-4, atol=1e-5)
        assert "tf_regal" not in sys.modules
        print("loaded")
        """,
        tmp_path, ran, devices=1,
    )
    assert "loaded" in out


def test_checkpoints_are_not_touched(tmp_path):
    net = Planned()
    net.serve(X), net.serve(X)
    path = tf.train.Checkpoint(net=net).save(str(tmp_path / "c"))
    other = Planned()
    tf.train.Checkpoint(net=other).restore(path).assert_consumed()
    assert int(other.serve(X)["steps"]) == 3


def test_eager_mode_of_functions_runs_the_python_code():
    fn = tf_regal.function(fresh(), **ON_BOTH)
    tf.config.run_functions_eagerly(True)
    try:
        np.testing.assert_allclose(fn(X), network(X), rtol=1e-6)
    finally:
        tf.config.run_functions_eagerly(False)


def test_call_options_of_the_thread_are_put_back():
    from tensorflow.python.eager import context

    before = context.context().function_call_options
    fn = tf_regal.function(fresh(), **ON_BOTH)
    for _ in range(3):
        fn(X)
    assert context.context().function_call_options is before


def test_graph_collection_is_off_afterwards():
    from tensorflow.python.eager import context

    fn = tf_regal.function(fresh(), **ON_BOTH)
    for _ in range(3):
        fn(X)
    tf.function(fresh())(X)
    metadata = context.context().export_run_metadata()
    assert metadata is None or not metadata.function_graphs


@pytest.mark.parametrize("device", ["CPU:0", "CPU:1"])
def test_device_scope_around_the_call(device):
    fn = tf_regal.function(fresh(), **ON_BOTH)
    plain = tf.function(network)
    for _ in range(3):
        with tf.device(device):
            got, want = fn(X), plain(X)
        assert_same(got, want)
        assert got.device == want.device


def test_the_planned_graph_is_the_function_s_own(seen):
    """Caches of TensorFlow were emptied before the first call: no other small function's graph may be taken for this one's."""
    from tensorflow.python.eager import context

    tf_regal.function(fresh("warm"), **ON_BOTH)(X)
    context.context()._clear_caches()
    fn = tf_regal.function(fresh("own"), **ON_BOTH)
    want = network(X)
    for _ in range(3):
        np.testing.assert_allclose(fn(X), want, rtol=1e-5, atol=1e-6)
    report = seen.only("own")
    assert report.status == "planned"
    assert set(report.plan.ops) & {"Tanh", "Sin", "matmul", "MatMul"}

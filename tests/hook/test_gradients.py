"""Gradients through planned functions: equal to TensorFlow's on the first, second and later calls."""

import contextlib
import threading

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import assert_same

import tf_regal

from .programs import ON_BOTH, X, network


def planned_and_plain(python_function):
    return tf_regal.optimize(python_function, **ON_BOTH), tf.function(python_function)


def loss_and_gradients(fn, sources, *args):
    with tf.GradientTape(persistent=True) as tape:
        for source in sources:
            tape.watch(source)
        y = fn(*args)
        loss = tf.reduce_sum(tf.nest.flatten(y)[0] ** 2)
    return loss, tape.gradient(loss, sources)


def test_outer_tape_over_an_argument():
    planned, plain = planned_and_plain(network)
    want = loss_and_gradients(plain, [X], X)
    for _ in range(4):
        assert_same(loss_and_gradients(planned, [X], X), want)
    # and after a call without a tape, which is the one that is planned
    planned(X), planned(X)
    for _ in range(2):
        assert_same(loss_and_gradients(planned, [X], X), want)


def test_outer_tape_over_variables():
    w, b = tf.Variable(X), tf.Variable(tf.ones([8]))

    def forward(x):
        return tf.tanh(x @ w + b) @ w

    planned, plain = planned_and_plain(forward)
    want = loss_and_gradients(plain, [w, b], X)
    for _ in range(3):
        assert_same(loss_and_gradients(planned, [w, b], X), want)
        planned(X)


def test_variables_are_watched_by_themselves():
    w = tf.Variable(X)
    planned, plain = planned_and_plain(lambda x: tf.tanh(x @ w) @ w)
    for fn in (plain, planned, planned, planned):
        fn(X)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(fn(X))
        assert [v is w for v in tape.watched_variables()] == [True]
        assert tape.gradient(y, w) is not None


def test_second_order_and_jacobian():
    x = X[:3, :3]
    planned, plain = planned_and_plain(lambda x: tf.tanh(x @ x) * tf.sin(x))

    def second(fn):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(fn(x))
            g = inner.gradient(y, x)
            total = tf.reduce_sum(g * g)
        return outer.gradient(total, x)

    def jacobian(fn):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.jacobian(y, x)

    for _ in range(3):
        planned(x)
        np.testing.assert_allclose(second(planned), second(plain), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(jacobian(planned), jacobian(plain), rtol=1e-5, atol=1e-6)


def test_forward_mode():
    planned, plain = planned_and_plain(network)
    for _ in range(2):
        planned(X)

    def tangent(fn):
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
            y = fn(X)
        return accumulator.jvp(y)

    np.testing.assert_allclose(tangent(planned), tangent(plain), rtol=1e-5)


def test_custom_gradient(seen):
    @tf.custom_gradient
    def clipped(x):
        return tf.exp(x), lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    planned, plain = planned_and_plain(lambda x: tf.sin(clipped(x)) @ x)
    want = loss_and_gradients(plain, [X], X)
    for _ in range(3):
        assert_same(loss_and_gradients(planned, [X], X), want)
        planned(X)
    assert "planned" in {r.status for r in seen()}


def test_custom_gradient_inside_a_training_step(seen):
    w = tf.Variable(X)

    @tf.custom_gradient
    def odd(x):
        return tf.exp(x), lambda dy: dy * 3

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(odd(x @ w))
        g = tape.gradient(loss, w)
        w.assign_sub(0.001 * g)
        return loss

    def run(fn):
        w.assign(X)
        return [fn(X) for _ in range(4)]

    planned, plain = planned_and_plain(step)
    assert_same(run(planned), run(plain))
    assert seen.only().status == "planned"


def test_recompute_grad():
    planned, plain = planned_and_plain(lambda x: tf.recompute_grad(lambda y: tf.tanh(y @ y))(x) @ x)
    want = loss_and_gradients(plain, [X], X)
    for _ in range(3):
        assert_same(loss_and_gradients(planned, [X], X), want)
        planned(X)


def test_gradient_through_a_loop():
    def body(x):
        y = x
        for _ in tf.range(4):
            y = tf.tanh(y @ x)
        return y @ x

    planned, plain = planned_and_plain(body)
    want = loss_and_gradients(plain, [X], X)
    for _ in range(3):
        np.testing.assert_allclose(loss_and_gradients(planned, [X], X)[1][0], want[1][0], rtol=1e-5)
        planned(X)


@pytest.mark.parametrize("order", ["needed", "full", "none"])
def test_training_gives_the_same_weights(order, seen):
    """A little network with momentum: weights bitwise equal after five steps (nothing in it depends on the order)."""

    def train(wrap):
        a, b = tf.Variable(X), tf.Variable(tf.transpose(X))
        velocity = [tf.Variable(tf.zeros([8, 8])) for _ in range(2)]

        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.nn.relu(x @ a) @ b - x) ** 2)
            for v, w, g in zip(velocity, (a, b), tape.gradient(loss, (a, b)), strict=True):
                v.assign(0.9 * v - 0.01 * g)
                w.assign_add(v)
            return loss

        fn = wrap(step)
        losses = [fn(X) for _ in range(5)]
        return losses, a.read_value(), b.read_value()

    want = train(tf.function)
    got = train(lambda f: tf_regal.optimize(f, **{**ON_BOTH, "order": order}))
    assert_same(got, want)
    assert seen.only("step").status == "planned"
    assert float(want[0][-1]) < float(want[0][0])


def test_no_gradient_stays_none():
    planned, _ = planned_and_plain(lambda x, n: (tf.sin(x) @ x, n + 1))
    n = tf.constant(3)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = planned(X, n)[1]
        assert tape.gradient(y, X) is None
        planned(X, n)


@pytest.mark.parametrize(
    ("order", "functions"),
    [("first", {"(forward)", "(backward)"}), ("second", {"(forward)", "(backward) (forward)", "(backward) (backward)"})],
)
def test_forward_and_backward_functions_are_planned(order, functions, seen):
    w = tf.Variable(X)

    def body(x):
        a, b = tf.tanh(x @ w), tf.sin(x @ w)
        return tf.tanh(a @ w) + tf.cos(b) @ w

    def gradient(fn):
        with contextlib.nullcontext() if order == "first" else tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(fn(X) ** 2)
            found = tape.gradient(loss, w)
            change = tf.reduce_sum(found**2) + loss
        return found if outer is None else outer.gradient(change, w)

    plain, planned = tf.function(body), tf_regal.optimize(body, **ON_BOTH)
    want = gradient(plain)
    for _ in range(3):
        assert_same(gradient(planned), want)
    reports = seen("body")
    assert {r.status for r in reports} == {"planned"}
    assert {r.function.removeprefix("body ") for r in reports} >= functions
    for report in reports:
        applied = report.applied
        assert applied.ops_on_planned_device == applied.ops_planned and applied.control_edges == applied.control_edges_planned


def test_what_is_kept_for_the_backward_function_stays_where_it_is_made(seen):
    """Two towers of which the second is on the second device: of what it keeps nothing is sent to the first one and back."""
    wide = tf.ones([256, 256])

    def body(x):
        with tf.device("CPU:0"):
            a = tf.reduce_sum(tf.tanh(x @ wide))
        with tf.device("CPU:1"):
            b = tf.reduce_sum(tf.tanh(tf.sin(x) @ wide))
        return a + b

    fn = tf_regal.optimize(body, **{**ON_BOTH, "topology": "local"})
    x = tf.ones([256, 256])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    gradient = tape.gradient(y, x)
    np.testing.assert_allclose(gradient, tf.zeros_like(x), atol=1e-5)
    forward, backward = seen("body")
    # The arguments go over to the second device, 256 KB each, and a sum; of the activations nothing does.
    assert forward.plan.predicted.transfer_bytes < 2.5 * 256 * 256 * 4
    memory = backward.plan.predicted.peak_bytes
    assert all(peak >= 256 * 256 * 4 for peak in memory.values())  # what the forward function kept is held on both


def test_threads_that_take_the_first_gradient_at_once(seen):
    w = tf.Variable(X)

    def body(x):
        return tf.tanh(x @ w) @ w + tf.sin(x @ w)

    def gradient(fn):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(fn(X) ** 2)
        return tape.gradient(loss, w)

    planned, want = tf_regal.optimize(body, **ON_BOTH), gradient(tf.function(body))
    planned.get_concrete_function(X)
    results, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait(60)
        results.extend(gradient(planned) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24
    for got in results:
        assert_same(got, want)
    assert sorted(r.function for r in seen("body (")) == ["body (backward)", "body (forward)"]


def test_functions_below_min_ops_are_left_alone_under_a_tape(seen):
    planned, plain = tf_regal.optimize(network, **{**ON_BOTH, "min_ops": 1000}), tf.function(network)
    assert_same(loss_and_gradients(planned, [X], X), loss_and_gradients(plain, [X], X))
    assert [r.status for r in seen()] == ["skipped"]

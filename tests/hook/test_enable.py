"""enable, disable, is_enabled, the context manager, and which functions they see."""

import pytest
import tensorflow as tf
from tf_setup import assert_same

import tf_regal

from .programs import SETTINGS, X, fresh, is_planned, network


def test_off_by_default(seen):
    assert not tf_regal.is_enabled()
    tf.function(fresh())(X)
    assert seen() == []


def test_enable_plans_functions_traced_from_now_on(seen):
    before = tf.function(fresh("before"))
    before(X)
    tf_regal.enable(**SETTINGS)
    assert tf_regal.is_enabled()
    after = tf.function(fresh("after"))
    want = after(X)
    assert_same(want, after(X))
    assert_same(before(X), want)
    assert [r.function for r in seen()] == ["after"]
    assert seen.only().status == "planned"
    assert is_planned(after.get_concrete_function(X))
    assert not is_planned(before.get_concrete_function(X))


def test_disable_stops_and_leaves_planned_functions(seen):
    tf_regal.enable(**SETTINGS)
    planned = tf.function(fresh("planned"))
    planned(X)
    tf_regal.disable()
    assert not tf_regal.is_enabled()
    later = tf.function(fresh("later"))
    later(X), planned(X)
    assert [r.function for r in seen()] == ["planned"]
    assert is_planned(planned.get_concrete_function(X))


def test_disable_twice_and_without_enable():
    tf_regal.disable()
    tf_regal.disable()
    assert not tf_regal.is_enabled()


def test_context_manager(seen):
    with tf_regal.enable(**SETTINGS):
        assert tf_regal.is_enabled()
        tf.function(fresh("inside"))(X)
    assert not tf_regal.is_enabled()
    tf.function(fresh("outside"))(X)
    assert [r.function for r in seen()] == ["inside"]


def test_context_manager_leaves_after_an_error():
    with pytest.raises(KeyError, match="mine"), tf_regal.enable(**SETTINGS):
        raise KeyError("mine")
    assert not tf_regal.is_enabled()


def test_nested_the_innermost_counts(seen):
    with tf_regal.enable(**{**SETTINGS, "objective": "runtime"}):
        with tf_regal.enable(**{**SETTINGS, "objective": "peak_memory"}):
            tf.function(fresh("inner"))(X)
        assert tf_regal.is_enabled()
        tf.function(fresh("outer"))(X)
    assert not tf_regal.is_enabled()
    assert {r.function: r.plan.objective for r in seen()} == {"inner": "peak_memory", "outer": "runtime"}


def test_repeated_enable_as_statement_then_one_disable(seen):
    for _ in range(3):
        tf_regal.enable(**SETTINGS)
    tf_regal.disable()
    assert not tf_regal.is_enabled()
    tf.function(fresh())(X)
    assert seen() == []


def test_context_manager_inside_a_global_enable(seen):
    tf_regal.enable(**SETTINGS)
    with tf_regal.enable(**{**SETTINGS, "apply": "never"}):
        tf.function(fresh("inner"))(X)
    assert tf_regal.is_enabled()
    tf.function(fresh("outer"))(X)
    assert [(r.function, r.status) for r in seen()] == [("inner", "default_kept"), ("outer", "planned")]


def test_disable_inside_the_context_then_leave():
    with tf_regal.enable(**SETTINGS):
        tf_regal.disable()
        assert not tf_regal.is_enabled()
    assert not tf_regal.is_enabled()


def test_leaving_an_old_context_does_not_undo_a_newer_enable():
    with tf_regal.enable(**SETTINGS):
        tf_regal.disable()
        tf_regal.enable(**SETTINGS)
    assert tf_regal.is_enabled(), "disable() and the second enable() came after the one that is left here"


def test_a_function_is_reported_once_however_often_it_is_enabled(seen):
    for _ in range(3):
        tf_regal.enable(**SETTINGS)
    tf.function(fresh())(X)
    assert len(seen()) == 1


def test_marked_function_under_enable_uses_its_own_settings(seen):
    tf_regal.enable(**{**SETTINGS, "objective": "runtime"})
    planned = tf_regal.function(fresh(), **{**SETTINGS, "objective": "peak_memory"})
    planned(X)
    assert seen.only().plan.objective == "peak_memory"


def test_wrong_setting_does_not_enable():
    with pytest.raises(tf_regal.errors.InvalidArgumentError, match="objective"):
        tf_regal.enable(objective="speed")
    assert not tf_regal.is_enabled()
    with pytest.raises(tf_regal.errors.TopologyError, match="2xA1000"):
        tf_regal.enable(topology="2xA1000")
    assert not tf_regal.is_enabled()


def test_keras_fit_is_planned(seen):
    tf.keras.utils.set_random_seed(1)

    def model():
        tf.keras.utils.set_random_seed(1)
        layers = [tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.Input([8]), *layers])
        model.compile("sgd", "mse", jit_compile=False)
        return model

    y = tf.reduce_sum(X, 1, keepdims=True)
    plain, planned = model(), model()
    history = plain.fit(X, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]
    with tf_regal.enable(**SETTINGS):
        got = planned.fit(X, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]
    assert got == pytest.approx(history, rel=1e-6)
    assert "planned" in {r.status for r in seen("step")}, [str(r) for r in seen()]
    assert not [str(r) for r in seen() if r.status == "failed"]


def test_reports_are_a_copy():
    tf_regal.reports().append("x")
    assert "x" not in tf_regal.reports()


def test_network_is_deterministic():
    assert_same(tf.function(network)(X), tf.function(network)(X))

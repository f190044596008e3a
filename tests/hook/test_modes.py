"""mode="background" and mode="record"."""

import threading

import pytest
import tensorflow as tf
from tf_setup import CPU1, SPREAD, assert_same, run_python

import tf_regal
from tf_regal import errors
from tf_regal.hook import background

from .programs import X, fresh, is_planned, network

LATER = {**SPREAD, "mode": "background"}


def test_background_runs_at_once_and_takes_over_between_two_calls(seen, monkeypatch):
    from tf_regal.plans import planner

    gate, make_plan = threading.Event(), planner.make_plan

    def slow(*args, **kwargs):
        assert gate.wait(60)
        return make_plan(*args, **kwargs)

    monkeypatch.setattr(planner, "make_plan", slow)
    fn = tf_regal.optimize(fresh("later"), **LATER)
    want = tf.function(network)(X)
    for _ in range(5):
        assert_same(fn(X), want)  # nobody waits for the planner
    concrete = fn.get_concrete_function(X)
    assert not is_planned(concrete) and seen() == []
    gate.set()
    background.wait()
    assert is_planned(concrete)
    assert seen.only().status == "planned"
    for _ in range(3):
        assert_same(fn(X), want)


def test_background_plans_gradients_and_every_trace(seen):
    w = tf.Variable(X)

    def body(x):
        return tf.tanh(x @ w) @ w + tf.sin(x)

    def gradient(fn, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(fn(x) ** 2)
        return tape.gradient(loss, w)

    plain, fn = tf.function(body), tf_regal.optimize(fresh("often", body), **LATER)
    for x in (X, X[:4]):
        for _ in range(2):
            assert_same(gradient(fn, x), gradient(plain, x))
            assert_same(fn(x), plain(x))
            background.wait()
        assert_same(gradient(fn, x), gradient(plain, x))
    assert sorted((r.function, r.status) for r in seen()) == sorted((f"often{part}", "planned") for part in ("", " (forward)", " (backward)") * 2)


def test_background_keeps_the_device_scope_of_the_call(seen):
    fn = tf_regal.optimize(fresh("elsewhere"), **{**LATER, "apply": "never"})
    with tf.device(CPU1):
        x = tf.identity(X)
        fn(x)
    background.wait()
    assert set(seen.only().plan.placement.values()) >= {CPU1}


def test_background_failure_is_one_warning(seen, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the planner is broken")

    monkeypatch.setattr("tf_regal.plans.planner.make_plan", broken)
    fn = tf_regal.optimize(fresh("unlucky"), **{**LATER, "on_error": "warn"})
    for _ in range(3):
        assert_same(fn(X), tf.function(network)(X))
        background.wait()
    assert seen.only().status == "failed"


def test_background_failure_is_raised_by_the_next_call(seen, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the planner is broken")

    monkeypatch.setattr("tf_regal.plans.planner.make_plan", broken)
    fn = tf_regal.optimize(fresh("unlucky"), **LATER)
    want = tf.function(network)(X)
    assert_same(fn(X), want)
    background.wait()
    with pytest.raises(RuntimeError, match="the planner is broken"):
        fn(X)
    assert_same(fn(X), want)
    assert seen.only().status == "failed"


def test_background_does_not_begin_random_streams_again(seen):
    tf.random.set_seed(5)
    fn = tf_regal.optimize(lambda x: x + tf.random.uniform([4], seed=3), **LATER)
    plain = tf.function(lambda x: x + tf.random.uniform([4], seed=3))
    for _ in range(4):
        assert_same(fn(tf.zeros([4])), plain(tf.zeros([4])))
        background.wait()
    report = seen.only()
    assert report.status == "skipped"
    assert "RandomUniform" in report.reason and "first_call" in report.reason


def test_background_forgets_functions_that_are_gone(seen, monkeypatch):
    from tf_regal.plans import planner

    gate, make_plan = threading.Event(), planner.make_plan
    monkeypatch.setattr(planner, "make_plan", lambda *args, **kwargs: gate.wait(60) and make_plan(*args, **kwargs))
    first, second = (tf_regal.optimize(fresh(name), **LATER) for name in ("first", "second"))
    first(X)
    second(X)
    del second
    gate.set()
    background.wait()
    assert [r.function for r in seen()] == ["first"]


def test_background_planning_does_not_hold_up_the_end_of_a_program():
    text = run_python("""
        import tf_regal
        tf_regal.enable(min_ops=1, mode="background", cache_dir=False, evaluations=100)
        x = tf.ones([8, 8])
        for i in range(20):
            fn = tf.function(lambda x, i=i: tf.reduce_sum(tf.tanh(x @ x) + i))
            last = float(fn(x))
            keep = globals().setdefault("keep", []); keep.append(fn)
        print("done", last)
    """)
    assert text.startswith("done")


def test_record_writes_plans_that_a_later_run_finds(seen, tmp_path):
    recording = {**SPREAD, "mode": "record", "cache_dir": str(tmp_path)}
    fn = tf_regal.optimize(fresh("recorded"), **recording)
    assert_same(fn(X), tf.function(network)(X))
    assert not is_planned(fn.get_concrete_function(X))
    report = seen.only()
    assert report.status == "default_kept" and "record" in report.reason and report.plan is not None
    assert len(list(tmp_path.iterdir())) == 1
    later = tf_regal.optimize(fresh("recorded"), **{**recording, "mode": "first_call"})
    later(X)
    assert is_planned(later.get_concrete_function(X))
    assert "cached" in seen("recorded")[1].seconds


def test_record_without_a_place_to_write_to():
    with pytest.raises(errors.InvalidArgumentError, match="cache_dir"):
        tf_regal.enable(mode="record", cache_dir=False)


def test_an_unknown_mode():
    with pytest.raises(errors.InvalidArgumentError, match="'background'"):
        tf_regal.enable(mode="backround")

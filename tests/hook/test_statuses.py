"""reports(): what became of each function, and why."""

import threading

import absl.logging
import pytest
import tensorflow as tf
from tf_setup import CPU0, CPU1, assert_same

import tf_regal
from tf_regal import errors

from .programs import ON_BOTH, SETTINGS, X, fresh, is_planned, network


@pytest.fixture
def warned(monkeypatch):
    """Texts of the warnings that go to absl's log."""
    messages = []
    monkeypatch.setattr(absl.logging, "warning", lambda text, *args: messages.append(text % args))
    return messages


@pytest.fixture
def no_global_seed():
    """A function that takes TensorFlow's global seed away."""
    from tensorflow.python.eager import context

    yield lambda: context.context()._set_global_seed(None)
    context.context()._set_global_seed(None)


def test_planned(seen):
    planned = tf_regal.optimize(fresh("mine"), **ON_BOTH)
    planned(X), planned(X)
    report = seen.only()
    assert (report.function, report.status) == ("mine", "planned")
    assert report.plan.objective == "runtime"
    assert report.applied.ops_on_planned_device == report.applied.ops_planned > 0
    assert "predicted" in report.reason
    assert set(report.seconds) >= {"capture"}
    assert "mine: planned" in str(report)


def test_applied_is_known_after_the_second_call_at_the_latest(seen):
    planned = tf_regal.optimize(fresh(), **ON_BOTH)
    planned(X), planned(X)
    assert seen.only().applied is not None


def test_default_kept_where_nothing_is_gained(seen):
    chain = fresh("chain", lambda x: tf.tanh(tf.tanh(tf.tanh(x @ x) @ x) @ x))
    kept = tf_regal.optimize(chain, **{**SETTINGS, "apply": "if_better", "method": "default"})
    kept(X), kept(X)
    report = seen.only()
    assert report.status == "default_kept"
    assert "less than 2% better" in report.reason
    assert report.plan is not None
    assert report.applied is None
    assert not is_planned(kept.get_concrete_function(X))


def test_default_kept_with_apply_never(seen):
    kept = tf_regal.optimize(fresh(), **{**SETTINGS, "apply": "never"})
    assert_same(kept(X), kept(X))
    assert seen.only().status == "default_kept"
    assert not is_planned(kept.get_concrete_function(X))


def test_apply_never_plans_for_devices_that_are_not_here(seen):
    kept = tf_regal.optimize(fresh(), **{**SETTINGS, "apply": "never", "topology": "2xA100-40GB"})
    kept(X)
    report = seen.only()
    assert report.status == "default_kept"
    assert {d.rpartition(":")[0].rpartition(":")[2] for d in report.plan.placement.values()} == {"GPU"}


def test_plan_for_devices_that_are_not_here_fails_and_leaves_the_program(seen, warned):
    fn = tf_regal.optimize(fresh("elsewhere"), **{**SETTINGS, "topology": "2xA100-40GB", "on_error": "warn"})
    want = tf.function(network)(X)
    for _ in range(3):
        assert_same(fn(X), want)
    report = seen.only()
    assert report.status == "failed"
    assert "GPU:0" in report.reason and CPU0 in report.reason
    assert len(warned) == 1 and "elsewhere" in warned[0]


def test_apply_always_even_where_worse(seen):
    planned = tf_regal.optimize(fresh(), **{**ON_BOTH, "apply": "always"})
    assert_same(planned(X), planned(X))
    assert seen.only().status == "planned"
    assert not seen.only().plan.pays


def test_skipped_small_function(seen):
    small = tf_regal.optimize(fresh("small"), **{**SETTINGS, "min_ops": 50})
    small(X)
    report = seen.only()
    assert report.status == "skipped"
    assert "fewer than min_ops=50" in report.reason
    assert report.plan is None


@pytest.mark.parametrize(("min_ops", "status"), [(4, "planned"), (5, "skipped")])
def test_min_ops_counts_what_works(seen, min_ops, status):
    fn = tf_regal.optimize(fresh("four", lambda x: tf.sin(x) @ tf.cos(x) + x), **{**SETTINGS, "min_ops": min_ops})
    fn(X)
    assert seen.only().status == status


def test_ops_of_called_functions_count(seen):
    inner = tf.function(network)
    fn = tf_regal.optimize(fresh("outer", lambda x: inner(x) + 1), **{**SETTINGS, "min_ops": 10})
    fn(X)
    assert seen.only("outer").status == "planned"


def test_skipped_inner_function(seen):
    inner = tf.function(fresh("inner"))
    outer = tf.function(fresh("outer", lambda x: inner(x) + inner(tf.sin(x))))
    with tf_regal.enable(**SETTINGS):
        outer(X)
    assert [(r.function, r.status) for r in seen()] == [("inner", "skipped"), ("outer", "planned")]
    assert "called by another function" in seen("inner")[0].reason


def test_skipped_function_is_planned_when_it_is_called_by_itself(seen):
    inner = tf.function(fresh("inner"))
    with tf_regal.enable(**SETTINGS):
        tf.function(fresh("outer", lambda x: inner(x) + 1))(X)
        want = tf.function(network)(X + 0)
        assert_same(inner(X), want)


def test_skipped_xla(seen):
    with tf_regal.enable(**SETTINGS):
        fn = tf.function(fresh("compiled"), jit_compile=True)
        fn.get_concrete_function(X)
    report = seen.only()
    assert report.status == "skipped"
    assert "jit_compile=True" in report.reason


def test_jit_compile_false_is_planned(seen):
    with tf_regal.enable(**SETTINGS):
        tf.function(fresh("plain"), jit_compile=False)(X)
    assert seen.only().status == "planned"


def test_skipped_data_pipelines(seen):
    with tf_regal.enable(**SETTINGS):
        data = tf.data.Dataset.from_tensors(X).repeat(4).map(lambda x: network(x) + 1).filter(lambda x: tf.reduce_sum(x) > -1e9)
        assert len(list(data)) == 4
    assert seen()
    assert {r.status for r in seen()} == {"skipped"}
    assert all("tf.data" in r.reason for r in seen())


def test_skipped_under_a_strategy(seen):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with tf_regal.enable(**SETTINGS):
        fn = tf.function(fresh("replicated"))
        strategy.run(fn, [X])
    assert seen()
    assert {r.status for r in seen()} == {"skipped"}
    assert "MirroredStrategy" in seen("replicated")[0].reason


def noisy(seed):
    return lambda x: network(x) * 1e-9 + tf.random.normal([8, 8], seed=seed)


@pytest.mark.parametrize(("global_seed", "op_seed"), [(7, 1), (7, None), (None, 3)])
def test_seeded_random_stream_is_that_of_tensorflow(global_seed, op_seed, no_global_seed):
    """Planned or skipped: five draws are the five that the program has without tf_regal."""

    def draws(wrap):
        no_global_seed()
        if global_seed is not None:
            tf.random.set_seed(global_seed)
        fn = wrap(noisy(op_seed))
        return [fn(X) for _ in range(5)]

    want = draws(tf.function)
    assert len({t.numpy().tobytes() for t in want}) == 5
    assert_same(draws(lambda f: tf_regal.optimize(f, **ON_BOTH)), want)


def test_unseeded_random_is_planned_and_goes_on(seen, no_global_seed):
    no_global_seed()
    fn = tf_regal.optimize(noisy(None), **ON_BOTH)
    draws = [fn(X).numpy() for _ in range(5)]
    assert len({d.tobytes() for d in draws}) == 5
    assert all(abs(d.mean()) < 1 and 0.5 < d.std() < 2 for d in draws)
    assert seen.only().status == "planned"


@pytest.mark.parametrize("op_seed", [None, 5])
def test_random_ops_are_drawn_once_per_call(op_seed, no_global_seed):
    """A counter beside the random op: nothing ran that the program did not ask for."""
    count = tf.Variable(0)

    def step(x):
        count.assign_add(1)
        return noisy(op_seed)(x)

    fn = tf_regal.optimize(step, **ON_BOTH)
    for i in range(1, 5):
        fn(X)
        assert int(count) == i


def test_skipped_collectives_have_a_reason(seen):
    def reduce(x):
        return tf.raw_ops.CollectiveReduceV2(
            input=network(x), group_size=1, group_key=1, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"
        )

    with tf_regal.enable(**SETTINGS):
        tf.function(reduce).get_concrete_function(X)
    assert seen.only().status == "skipped"
    assert "collective" in seen.only().reason


def test_failure_in_planning_is_one_warning(seen, warned, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the planner is broken")

    monkeypatch.setattr("tf_regal.plans.planner.make_plan", broken)
    fn = tf_regal.optimize(fresh("unlucky"), **{**SETTINGS, "on_error": "warn"})
    want = tf.function(network)(X)
    for _ in range(4):
        assert_same(fn(X), want)
    report = seen.only()
    assert report.status == "failed"
    assert "the planner is broken" in report.reason
    assert len(warned) == 1
    assert "unlucky" in warned[0] and "the planner is broken" in warned[0]


def test_failure_in_planning_raises_where_it_is_asked_to(seen, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the planner is broken")

    monkeypatch.setattr("tf_regal.plans.planner.make_plan", broken)
    fn = tf_regal.optimize(fresh("unlucky"), **{**SETTINGS, "on_error": "raise"})
    with pytest.raises(RuntimeError, match="the planner is broken"):
        fn(X)
    assert seen.only().status == "failed"
    assert_same(fn(X), tf.function(network)(X))


def test_failure_while_the_function_is_looked_at(seen, warned, monkeypatch):
    def broken(*args):
        raise RuntimeError("cannot look")

    monkeypatch.setattr("tf_regal.hook.eligibility.reason_to_skip", broken)
    with tf_regal.enable(**{**SETTINGS, "on_error": "warn"}):
        assert_same(tf.function(fresh("unseen"))(X), tf.function(network)(X))
    assert any("unseen" in w and "cannot look" in w for w in warned)
    assert seen("unseen")[0].status == "failed", "design: one Report per function seen"


def test_infeasible_is_reported_with_the_numbers(seen, warned):
    tiny = tf_regal.Topology.detect().with_memory(100)
    fn = tf_regal.optimize(fresh("large"), **{**SETTINGS, "topology": tiny, "on_error": "warn"})
    assert_same(fn(X), tf.function(network)(X))
    assert seen.only().status == "failed"
    assert "InfeasibleError" in seen.only().reason
    assert len(warned) == 1


def test_infeasible_raises_where_it_is_asked_to():
    tiny = tf_regal.Topology.detect().with_memory(100)
    fn = tf_regal.optimize(fresh("large"), **{**SETTINGS, "topology": tiny})
    with pytest.raises(errors.InfeasibleError, match="lowest peak found") as caught:
        fn(X)
    assert caught.value.device in (CPU0, CPU1)
    assert caught.value.shortfall > 0


def test_threads_of_planned_function_agree(seen):
    """Eight threads call a function that nobody has called yet."""
    fn = tf_regal.optimize(fresh("shared"), **ON_BOTH)
    want = tf.function(network)(X)
    results, failures, barrier = [], [], threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(5):
            try:
                results.append(fn(X))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for got in results:
        assert_same(got, want)
    report = seen.only("shared")
    assert report.status == "planned"
    fn(X)
    assert report.applied.ops_on_planned_device == report.applied.ops_planned


def test_threads_with_functions_of_their_own(seen):
    """First calls at the same time: none of them takes another's graph."""
    bodies = [lambda x, k=k: network(x) * (k + 1) for k in range(6)]
    functions = [tf_regal.optimize(fresh(f"own_{k}", body), **ON_BOTH) for k, body in enumerate(bodies)]
    wants = [tf.function(body)(X) for body in bodies]
    failures, barrier = [], threading.Barrier(6)

    def work(k):
        barrier.wait()
        for _ in range(6):
            try:
                assert_same(functions[k](X), wants[k])
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=[k]) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for fn in functions:
        fn(X), fn(X)
    assert sorted(r.function for r in seen()) == [f"own_{k}" for k in range(6)]
    assert {r.status for r in seen()} == {"planned"}

"""What was really applied is counted from TensorFlow's own graphs; a wrong plan is noticed."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0, CPU1, SPREAD, calls

import tf_regal
from tf_regal import errors

X = tf.constant(np.random.default_rng(2).standard_normal((16, 16)).astype(np.float32))


def towers(x):
    a = b = c = x
    for _ in range(3):
        a, b, c = tf.tanh(a @ x), tf.sin(b @ x), tf.cos(c @ x)
    return a + b * c


def concrete():
    return tf.function(towers).get_concrete_function(tf.TensorSpec([16, 16]))


def plan_for(function, **changes):
    settings = {k: v for k, v in SPREAD.items() if k not in ("apply", "min_ops", "on_error")}
    return tf_regal.plan(function, **{**settings, **changes})


def test_applied_counts_are_complete(seen):
    f = concrete()
    plan = plan_for(f)
    planned = tf_regal.apply(plan, f)
    for got in calls(planned, X):
        np.testing.assert_array_equal(got, f(X))
    report = seen.only()
    assert report.status == "planned"
    assert report.applied.ops_planned > 8
    assert report.applied.ops_on_planned_device == report.applied.ops_planned
    assert report.applied.control_edges == report.applied.control_edges_planned == len(plan.edges) > 0
    assert report.applied.ops_missing == ()


def test_control_edges_between_devices_are_counted(seen):
    f = concrete()
    plan = plan_for(f)
    at = {plan.ops[op]: op for op in plan.start_order}
    between = [(before, "add") for before in ("Cos", "matmul_5", "Tanh") if plan.device[at[before]] != plan.device[at["add"]]]
    assert between
    plan.edges = np.concatenate([plan.edges, np.array([(at[before], at[after]) for before, after in between], np.int32)])
    planned = tf_regal.apply(plan, f)
    for got in calls(planned, X):
        np.testing.assert_array_equal(got, f(X))
    applied = seen.only().applied
    assert applied.control_edges == applied.control_edges_planned == len(plan.edges)


def test_original_is_left_alone(seen):
    f = concrete()
    before = f.graph.as_graph_def().SerializeToString(deterministic=True)
    definition = f._inference_function.definition.SerializeToString(deterministic=True)
    planned = tf_regal.apply(plan_for(f), f)
    planned(X), planned(X)
    assert f.graph.as_graph_def().SerializeToString(deterministic=True) == before
    assert f._inference_function.definition.SerializeToString(deterministic=True) == definition


def test_plan_for_another_graph_is_refused():
    f = concrete()
    other = tf.function(lambda x: tf.sin(towers(x))).get_concrete_function(tf.TensorSpec([16, 16]))
    with pytest.raises(errors.PlanMismatchError, match=r"another graph.*fingerprint.*[Pp]lan this model again"):
        tf_regal.apply(plan_for(f), other)


def test_plan_for_another_shape_is_refused():
    f = concrete()
    other = tf.function(towers).get_concrete_function(tf.TensorSpec([17, 17]))
    with pytest.raises(errors.PlanMismatchError, match="another graph"):
        tf_regal.apply(plan_for(f), other)


def test_plan_for_devices_that_are_not_here_is_refused():
    f = concrete()
    plan = plan_for(f, topology="2xA100-40GB")
    with pytest.raises(errors.PlanMismatchError, match=r"not here: .*GPU:[01].*Here are: .*CPU:0"):
        tf_regal.apply(plan, f)


def test_a_plan_that_is_not_followed_is_noticed():
    """Read-back against a plan whose placement was turned round after the function had been made."""
    from tf_regal import _tf_private as tfp
    from tf_regal.graph import models
    from tf_regal.rewrite import planned_function_def, planned_graph_def, readback

    f = concrete()
    plan = plan_for(f)
    read = models.read(f, default_device=CPU0)
    definition = planned_function_def(planned_graph_def(read.capture, plan), f._inference_function.definition)
    function = tfp.atomic_function.from_function_def(definition, f._inference_function.function_type)
    graphs = tfp.instantiate(function, [X], tfp.planned_call_options())
    right = readback.read_back(read.capture, plan, graphs)
    assert right.ops_on_planned_device == right.ops_planned
    turned = plan.renamed(plan.ops)
    turned.device = 1 - plan.device
    turned.edges = plan.edges[:, ::-1]
    wrong = readback.read_back(read.capture, turned, graphs)
    assert wrong.ops_on_planned_device == 0
    assert wrong.control_edges == 0
    assert wrong.control_edges_planned == len(plan.edges)
    nothing = readback.read_back(read.capture, plan, [])
    assert (nothing.ops_on_planned_device, nothing.control_edges) == (0, 0)
    assert len(nothing.ops_missing) == min(20, nothing.ops_planned)


@pytest.mark.parametrize("device", [CPU0, CPU1])
def test_requested_devices_win(device, seen):
    @tf_regal.function(**SPREAD)
    def f(x):
        y = tf.sin(x)
        with tf.device(device):
            z = tf.tanh(y @ x, name="pinned")
        return z + y

    for _ in range(2):
        f(X)
    plan = seen.only().plan
    pinned = [op for op in plan.ops if op.endswith("pinned")]
    assert pinned
    assert {plan.placement[op] for op in pinned} == {device}

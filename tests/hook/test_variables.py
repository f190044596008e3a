"""Moving variables: the objects, the functions that captured them, checkpoints and gradients go on."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0, CPU1

import tf_regal
from tf_regal import errors
from tf_regal.devices import DeviceSpec, Link, Topology

# Slow ops and cheap transfers: two independent halves are worth a device each.
TWO = Topology.from_links(
    "two", [DeviceSpec(name, "slow", "CPU", 1e7, 1e9, memory=2**40, launch_overhead_ns=1000) for name in (CPU0, CPU1)], lambda i, j: Link(10, 1e12)
)
SETTINGS = {"topology": TWO, "min_ops": 0, "cache_dir": False, "on_error": "raise", "evaluations": 500}


class Halves(tf.Module):
    """Two towers with weights of their own."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.left = [tf.Variable(rng.normal(size=(32, 32)).astype(np.float32), name=f"left_{i}") for i in range(3)]
        self.right = [tf.Variable(rng.normal(size=(32, 32)).astype(np.float32), name=f"right_{i}") for i in range(3)]

    def __call__(self, x):
        a = b = x
        for left, right in zip(self.left, self.right, strict=True):
            a, b = tf.tanh(a @ left), tf.tanh(b @ right)
        return a - b


def step_of(model, optimizer):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - 0.5))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return loss

    return step


def built():
    model = Halves()
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    return model, optimizer


X = tf.constant(np.random.default_rng(1).normal(size=(8, 32)).astype(np.float32))


def weights(model, optimizer):
    return [np.asarray(v) for v in [*model.variables, *optimizer.variables]]


def places(model):
    return {v.device for v in model.variables}


def test_a_plan_places_variables_and_slots():
    model, optimizer = built()
    plan = tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), move_variables=True, **SETTINGS)
    assert {item["device"] for item in plan.variables} == {CPU0, CPU1}
    assert len(plan.variables) == len(model.variables) + len(optimizer.variables)
    assert tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), **SETTINGS).variables is None


def test_moving_then_applying_gives_the_same_training(tmp_path):
    model, optimizer = built()
    step = tf.function(step_of(model, optimizer))
    plain = [float(step(X)) for _ in range(4)]
    expected = weights(model, optimizer)

    model, optimizer = built()
    concrete = tf.function(step_of(model, optimizer)).get_concrete_function(X)
    plan = tf_regal.plan(concrete, move_variables=True, **SETTINGS)
    plan.save(tmp_path / "plan.json")
    plan = tf_regal.load_plan(tmp_path / "plan.json")
    with pytest.raises(errors.PlanMismatchError, match=r"move_variables\(plan, model, optimizer\)"):
        tf_regal.apply(plan, concrete)
    assert tf_regal.move_variables(plan, model, optimizer) > 0
    assert places(model) == {CPU0, CPU1}
    planned = tf_regal.apply(plan, concrete)
    assert [float(planned(X)) for _ in range(4)] == plain
    assert all((a == b).all() for a, b in zip(weights(model, optimizer), expected, strict=True))


def test_enable_moves_on_the_first_call():
    model, optimizer = built()
    step = tf.function(step_of(model, optimizer))
    plain = [float(step(X)) for _ in range(4)]
    model, optimizer = built()
    with tf_regal.enable(move_variables=True, **SETTINGS):
        step = tf.function(step_of(model, optimizer))
        assert [float(step(X)) for _ in range(4)] == plain
    assert places(model) == {CPU0, CPU1}
    assert tf_regal.reports()[-1].status == "planned"


def test_functions_traced_before_use_the_moved_variables():
    model, optimizer = built()
    function = tf.function(model)
    concrete = function.get_concrete_function(X)
    nested = tf.function(lambda x: function(x) * 2.0)
    before = function(X).numpy(), nested(X).numpy()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function(X))
    gradient = tape.gradient(loss, model.left[0]).numpy()
    plan = tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), move_variables=True, **SETTINGS)
    tf_regal.move_variables(plan, model, optimizer)
    assert (function(X).numpy() == before[0]).all() and (concrete(X).numpy() == before[0]).all() and (nested(X).numpy() == before[1]).all()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function(X))
    assert (tape.gradient(loss, model.left[0]).numpy() == gradient).all()
    # They read the moved ones, not copies that stayed behind.
    for variable in model.variables:
        variable.assign(tf.zeros_like(variable))
    for result in (function(X), concrete(X), nested(X)):
        assert (result.numpy() == 0).all()


def test_keras_fit_with_moved_variables():
    def fit():
        tf.keras.utils.set_random_seed(0)
        inputs = tf.keras.Input((32,))
        left = right = inputs
        for _ in range(3):
            left, right = (tf.keras.layers.Dense(32, activation="tanh")(x) for x in (left, right))
        model = tf.keras.Model(inputs, left - right)
        model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mse")
        data = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
        history = model.fit(data, data, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return history.history["loss"], [w.tobytes() for w in model.get_weights()], {v.value.device for v in model.variables}

    plain = fit()
    with tf_regal.enable(move_variables=True, **SETTINGS):
        moved = fit()
    assert moved[:2] == plain[:2]
    assert plain[2] == {CPU0} and moved[2] == {CPU0, CPU1}


def test_functions_planned_before_are_planned_again():
    model, optimizer = built()
    with tf_regal.enable(apply="always", **SETTINGS):
        infer = tf.function(model)
        before = infer(X).numpy()
        step = tf.function(step_of(model, optimizer))
    plan = tf_regal.plan(step.get_concrete_function(X), move_variables=True, **SETTINGS)
    count = len(tf_regal.reports())
    tf_regal.move_variables(plan, model, optimizer)
    assert (infer(X).numpy() == before).all()
    assert tf_regal.reports()[count:][-1].status == "planned"


def test_checkpoints_both_ways(tmp_path):
    def saved(model, optimizer, name):
        return tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / name))

    def train(model, optimizer, n):
        step = tf.function(step_of(model, optimizer))
        return [float(step(X)) for _ in range(n)]

    def moved(model, optimizer):
        plan = tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), move_variables=True, **SETTINGS)
        tf_regal.move_variables(plan, model, optimizer)

    model, optimizer = built()
    train(model, optimizer, 2)
    before = saved(model, optimizer, "before")
    moved(model, optimizer)
    after = saved(model, optimizer, "after")
    expected = train(model, optimizer, 3)
    for path in (before, after):
        for should_move in (False, True):
            other, other_optimizer = built()
            if should_move:
                moved(other, other_optimizer)
            tf.train.Checkpoint(model=other, optimizer=other_optimizer).restore(path).assert_existing_objects_matched()
            assert (places(other) == {CPU0, CPU1}) == should_move
            assert train(other, other_optimizer, 3) == expected


def keras_3():
    model = tf.keras.Sequential([tf.keras.Input((32,)), tf.keras.layers.Dense(32, activation="tanh"), tf.keras.layers.Dense(32)])
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    return model, optimizer


@pytest.mark.parametrize("make", [built, keras_3])
def test_scope_creates_them_there(make):
    model, optimizer = make()
    plan = tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), move_variables=True, **SETTINGS)
    with plan.scope() as matcher:
        model, optimizer = make()
        unknown = tf.Variable(tf.zeros([7]), name="not_in_the_plan")
    assert not matcher.left
    assert unknown.device == CPU0
    made = [v if isinstance(v, tf.Variable) else v.value for v in [*model.variables, *optimizer.variables]]
    devices = [v.device for v in sorted(made, key=lambda v: int(v._unique_id.rpartition("_")[2]))]
    assert devices == [item["device"] for item in plan.variables]
    planned = tf_regal.apply(plan, tf.function(step_of(model, optimizer)).get_concrete_function(X))
    assert np.isfinite(float(planned(X)))


def test_a_function_whose_variables_are_gone_can_still_be_planned():
    def make():
        variable = tf.Variable(tf.ones([32, 32]))
        return tf.function(lambda x: tf.tanh(x @ variable) @ variable).get_concrete_function(X)

    concrete = make()
    assert tf_regal.plan(concrete, **SETTINGS).placement
    assert tf_regal.plan(concrete, move_variables=True, **SETTINGS).variables == []


def test_a_data_pipeline_that_uses_a_variable_is_refused():
    model, optimizer = built()
    plan = tf_regal.plan(tf.function(step_of(model, optimizer)).get_concrete_function(X), move_variables=True, **SETTINGS)
    moving = [v for v, item in zip(model.variables, plan.variables, strict=False) if item["device"] == CPU1]
    assert moving
    data = tf.data.Dataset.from_tensors(1.0).map(lambda x: x + moving[0][0, 0])
    with pytest.raises(errors.VariableMoveError, match=r"tf\.data pipeline .* Make the pipeline after moving"):
        tf_regal.move_variables(plan, model, optimizer)
    assert places(model) == {CPU0}
    assert np.isfinite(next(iter(data)).numpy())


def test_wrong_arguments():
    model, optimizer = built()
    concrete = tf.function(step_of(model, optimizer)).get_concrete_function(X)
    plan = tf_regal.plan(concrete, move_variables=True, **SETTINGS)
    with pytest.raises(errors.InvalidArgumentError, match=r"the plan places are not among them.*move_variables\(plan, model, optimizer\)"):
        tf_regal.move_variables(plan, model)
    with pytest.raises(errors.InvalidArgumentError, match="has no variables"):
        tf_regal.move_variables(plan, model, optimizer, 3)
    with pytest.raises(errors.InvalidArgumentError, match="is not a Plan"):
        tf_regal.move_variables("plan.json", model)
    with pytest.raises(errors.InvalidArgumentError, match="move_variables=True"):
        tf_regal.move_variables(tf_regal.plan(concrete, **SETTINGS), model)
    with pytest.raises(errors.InvalidArgumentError, match="mode='background'"):
        tf_regal.enable(move_variables=True, mode="background")
    with pytest.raises(errors.InvalidArgumentError, match="costs='measured' keeps what it measures in cache_dir, which is False"):
        tf_regal.enable(costs="measured", cache_dir=False)
    with pytest.raises(errors.InvalidArgumentError, match="move_variables='yes'"):
        tf_regal.enable(move_variables="yes")

"""Moving variables to other devices: the objects stay the same, and so do the functions that captured them."""

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.devices import detection
from tf_regal.plans import Plan
from tf_regal.plans import variables as of_plans


def describe(capture, plan):
    """`Plan.variables` for a plan of this capture: where it has put the variables that may be moved."""
    devices = plan.topology.names
    found = []
    for op, variable in capture.movable:
        shape = variable.shape.as_list() if variable.shape.rank is not None else None
        found.append(of_plans.entry(op, variable.name, shape, variable.dtype.name, devices[plan.device[op]]))
    return found


def moves(capture, plan):
    """[(variable, device)] that a plan asks for."""
    devices = plan.topology.names
    return [(variable, devices[plan.device[op]]) for op, variable in capture.movable]


def check_moved(capture, plan):
    """Raises PlanMismatchError where a variable is not where the plan wants it."""
    for variable, device in moves(capture, plan):
        if variable.device != device:
            raise errors.PlanMismatchError(
                f"variable {variable.name!r} is on {variable.device}, and the plan wants it on {device}: move it first, with "
                "tf_regal.move_variables(plan, model, optimizer), or create it inside `with plan.scope():`"
            )


def move(pairs):
    """Puts variables on devices; whatever captured them goes on with the moved ones.

    Functions that were planned with the variables elsewhere are planned again on their next call.

    Args:
        pairs: [(tf.Variable, full device name)].

    Returns:
        {id of a handle that was replaced: (that handle, the new one)}, for arguments that were flattened before.

    Raises:
        VariableMoveError: a tf.data pipeline uses one of them, or one has no value yet. Nothing has been moved then.
    """
    pairs = [(v, device) for v, device in pairs if v.device != device]
    if not pairs:
        return {}
    old = [v.handle for v, _ in pairs]
    functions, graphs = tfp.capturing(old)
    for function in functions:
        if "_tf_data_function" in function._attrs:
            raise errors.VariableMoveError(
                f"a tf.data pipeline ({function.graph.name}) uses a variable that would be moved (one of {', '.join([v.name for v, _ in pairs[:5]])}, …): "
                "its elements would come from where the variable was. Make the pipeline after moving, or without the variable."
            )
    new = []
    with tf.init_scope():
        for variable, device in pairs:
            if not bool(tf.raw_ops.VarIsInitializedOp(resource=variable.handle)):
                raise errors.VariableMoveError(f"variable {variable.name!r} has no value yet: initialize it, or create it inside `with plan.scope():`")
            with tf.device(device):
                copy = tfp.resource_variable_ops.ResourceVariable(
                    variable.read_value(), trainable=variable.trainable, name=variable.name.partition(":")[0], dtype=variable.dtype, shape=variable.shape
                )
            new.append(copy.handle)
    for (variable, _), handle in zip(pairs, new, strict=True):
        tfp.set_handle(variable, handle)
    replaced = {id(a): (a, b) for a, b in zip(old, new, strict=True)}
    tfp.replace_captures(functions, graphs, {key: b for key, (_, b) in replaced.items()})
    for function in functions:
        again = getattr(function._inference_function, "plan_again", None)
        if again is not None:
            again(function)
    return replaced


def current(args, replaced):
    """Flat arguments with the handles that `move` replaced."""
    return [replaced[id(arg)][1] if id(arg) in replaced else arg for arg in args] if replaced else args


def move_variables(plan, *owners):
    """Moves existing variables to where a plan wants them, before the first step.

    The objects stay the same: models, optimizers and checkpoints go on with them, and functions that captured them, traced or not, use them where they
    are now. Functions that were planned before are planned again.

    Args:
        plan: a `Plan` made with move_variables=True.
        *owners: the model, the optimizer, or anything with `variables`; or tf.Variables; or lists of these. Together the variables that the plan names.

    Returns:
        how many variables were moved.

    Raises:
        InvalidArgumentError: the plan places no variables, or `owners` lack some that it places. PlanMismatchError: a device is not here.
        VariableMoveError: a variable cannot be moved. Nothing has been moved then.
    """
    if not isinstance(plan, Plan):
        raise errors.InvalidArgumentError(f"plan={plan!r} is not a Plan; make one with tf_regal.plan(…, move_variables=True)")
    matcher = of_plans.Matcher(plan)
    found = sorted({id(v): v for v in _variables(owners)}.values(), key=tfp.creation_number)
    pairs = []
    for variable in found:
        item = matcher.take(variable.name, variable.shape.as_list() if variable.shape.rank is not None else None, variable.dtype.name)
        if item is not None:
            pairs.append((variable, item["device"]))
    if matcher.left:
        first = matcher.left[0]
        raise errors.InvalidArgumentError(
            f"owners: {len(found)} variables were given, and {len(matcher.left)} of the {len(plan.variables)} that the plan places are not among them: the "
            f"first is {first['name']!r} of shape {first['shape']} and dtype {first['dtype']}. Pass all that has any: move_variables(plan, model, optimizer)."
        )
    available = detection.visible_devices()
    missing = sorted({device for _, device in pairs} - set(available))
    if missing:
        raise errors.PlanMismatchError(f"the plan puts variables on devices that are not here: {', '.join(missing)}. Here are: {', '.join(available)}.")
    return len(move(pairs))


def _variables(owners):
    """The plain variables in models, optimizers, modules, variables, and lists and dicts of these."""
    for owner in owners:
        if isinstance(owner, (list, tuple)):
            yield from _variables(owner)
        elif isinstance(owner, dict):
            yield from _variables(owner.values())
        elif isinstance(owner, tf.Variable):
            if not tfp.is_plain_variable(owner):
                raise errors.InvalidArgumentError(f"owners: {owner!r} is not a variable on one device (of tf.distribute, or of a graph): it cannot be moved")
            yield owner
        elif isinstance(getattr(owner, "value", None), tf.Variable):  # Keras 3 keeps a tf.Variable in its own
            yield owner.value
        elif callable(getattr(owner, "variables", None)):
            yield from _variables(owner.variables())
        elif hasattr(owner, "variables"):
            yield from _variables(list(owner.variables))
        else:
            raise errors.InvalidArgumentError(
                f"owners: {owner!r} has no variables; expected a model, an optimizer, a tf.Module, tf.Variables, or lists of these"
            )

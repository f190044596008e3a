"""Where a plan wants variables to live, told by name, shape and dtype: plan files, and models that are built again, know nothing of one another's objects."""

import contextlib
import re

from tf_regal import errors

_NUMBERS = re.compile(r"_\d+(?=_|$)")


def entry(op, name, shape, dtype, device):
    """One variable in `Plan.variables`: op is the index of the argument; shape: list with None for unknown dimensions, or None."""
    return {"op": int(op), "name": str(name), "shape": shape, "dtype": str(dtype), "device": str(device)}


def key(name, shape, dtype):
    """What a variable is recognised by: the last part of its name without the numbers that make names unique, its shape and its dtype."""
    return _NUMBERS.sub("", name.rpartition("/")[2].partition(":")[0]), None if shape is None else tuple(shape), str(dtype)


class Matcher:
    """Gives devices to variables in the order in which they are created: the n-th of a kind gets the device of the plan's n-th of that kind."""

    def __init__(self, plan):
        if plan.variables is None:
            raise errors.InvalidArgumentError(
                "plan: it was made for variables that stay where they are; make it with tf_regal.plan(…, move_variables=True) to have them placed too"
            )
        self._waiting = {}
        for item in plan.variables:
            self._waiting.setdefault(key(item["name"], item["shape"], item["dtype"]), []).append(item)

    def take(self, name, shape, dtype):
        """The plan's entry for the next variable of this kind, or None."""
        waiting = self._waiting.get(key(name, shape, dtype))
        return waiting.pop(0) if waiting else None

    @property
    def left(self):
        """Entries for which no variable was seen."""
        return [item for items in self._waiting.values() for item in items]


@contextlib.contextmanager
def scope(plan):
    """See `Plan.scope`."""
    import tensorflow as tf  # here and nowhere else in this room: everything else about plans goes without

    matcher = Matcher(plan)

    def create(next_creator, **kwargs):
        if not tf.executing_eagerly():
            return next_creator(**kwargs)  # inside a function that is traced: TensorFlow decides later what its shape is
        value = kwargs["initial_value"]
        if callable(value):
            value = value()
        value = tf.convert_to_tensor(value, dtype=kwargs.get("dtype"))
        shape = tf.TensorShape(kwargs.get("shape") if kwargs.get("shape") is not None else value.shape)
        found = matcher.take(kwargs.get("name") or "Variable", shape.as_list() if shape.rank is not None else None, value.dtype.name)
        with tf.device(found["device"]) if found else contextlib.nullcontext():
            return next_creator(**{**kwargs, "initial_value": value})

    with tf.variable_creator_scope(create):
        yield matcher

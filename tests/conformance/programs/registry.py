"""What a program kind gives to the properties that are tested over it."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

PROGRAMS = {}


@dataclasses.dataclass
class Instance:
    """One program, built anew. All of it is deterministic.

    step: i → structure of tensors; calls the program with its i-th arguments.
    state: () → structure of arrays: variables, logs and whatever else the program changes.
    functions: the tf.functions whose retracing is counted.
    gradient, second: i → gradients of the first and the second order, taken by tapes outside the function; None where it has none.
    fail: () → calls it so that an op fails; None where nothing can.
    module: a tf.Module with a tf.function `serve` that takes `serve_args`; None where it cannot be saved.
    model: a model to copy and pickle.
    """

    step: Callable
    state: Callable = list
    functions: list = dataclasses.field(default_factory=list)
    gradient: Callable | None = None
    second: Callable | None = None
    fail: Callable | None = None
    module: object = None
    serve_args: tuple = ()
    model: object = None


@dataclasses.dataclass(frozen=True)
class Program:
    """A kind of program. make: () → Instance, with tf.function as it is at that moment.

    planned: a function of it is planned; else `reason` is in the report of why it is left alone.
    stateless: calls from several threads are independent of each other.
    heavy: takes seconds; few calls only.
    """

    name: str
    make: Callable
    planned: bool
    reason: str
    stateless: bool
    heavy: bool


def program(name, *, planned=True, reason="", stateless=True, heavy=False):
    """Registers a function that makes an Instance."""

    def register(make):
        assert name not in PROGRAMS
        PROGRAMS[name] = Program(name, make, planned, reason, stateless, heavy)
        return make

    return register


def values(i, *shape, dtype=np.float32):
    """The i-th array of this shape."""
    return tf.constant(np.random.default_rng([i, *shape]).standard_normal(shape).astype(dtype))


def weights(*shape, seed=100):
    return tf.Variable(np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32) / 4)


def tape_gradients(fn, arguments, sources):
    """(i → first-order gradients, i → second-order gradients) of the sum of squares of fn(*arguments(i)), over `sources` (variables)."""

    def loss(i):
        results = [r for r in tf.nest.flatten(fn(*arguments(i)), expand_composites=True) if r.dtype.is_floating]
        return tf.add_n([tf.reduce_sum(r**2) for r in results])

    def first(i):
        with tf.GradientTape() as tape:
            value = loss(i)
        return tape.gradient(value, sources)

    def second(i):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = loss(i)
            found = inner.gradient(value, sources)
            change = tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) ** 2) for g in found])
        return outer.gradient(change, sources)

    return first, second



def of_function(body, arguments, sources=(), *, options=None, fail=None, serve=None, gradients=True):
    """Instance of one tf.function over `body`. arguments: i → tuple; sources: its variables; serve: TensorSpecs for a SavedModel."""
    fn = tf.function(body, **(options or {}))
    first = second = None
    if sources and gradients:
        first, second = tape_gradients(fn, arguments, list(sources))
    module, serve_args = None, ()
    if serve is not None:
        module = tf.Module()
        module.kept = list(sources)
        module.serve = tf.function(body, input_signature=serve)
        serve_args = arguments(0)
    return Instance(
        step=lambda i: fn(*arguments(i)), state=lambda: [v.numpy() for v in sources], functions=[fn], gradient=first, second=second,
        fail=None if fail is None else (lambda: fn(*fail)), module=module, serve_args=serve_args, model=module,
    )

"""Programs with the hook and without."""

import contextlib

import numpy as np
import tensorflow as tf
from tf_setup import SPREAD

import tf_regal

FORCED = SPREAD


def ran(program, with_hook, act):
    """`act` of a new Instance, made and used under enable() or without."""
    tf_regal.disable()
    with tf_regal.enable(**FORCED) if with_hook else contextlib.nullcontext():
        return act(program.make())


def to_numpy(structure):
    """Tensors → (dtype, shape, bytes or values); composite tensors by their parts."""
    return [_one(x) for x in tf.nest.flatten(structure, expand_composites=True)]


def _one(x):
    if isinstance(x, (tf.Tensor, np.ndarray)):
        x = np.asarray(x)
        return str(x.dtype), x.shape, x.tolist() if x.dtype == object else x.tobytes()
    return x

"""Small programs that several hook tests use."""

import numpy as np
import tensorflow as tf
from tf_setup import ALWAYS, SPREAD

X = tf.constant(np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32))
SETTINGS = ALWAYS
ON_BOTH = SPREAD


def network(x):
    """12 ops or so on two branches."""
    a = b = x
    for _ in range(3):
        a, b = tf.tanh(a @ x), tf.sin(b) @ x
    return a + b


def fresh(name="network", body=network):
    """A Python function that no tf.function has seen, of this name."""

    def function(x):
        return body(x)

    function.__name__ = name
    return function


def is_planned(concrete):
    return type(concrete._inference_function).__name__ == "PlannedFunction"

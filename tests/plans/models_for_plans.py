"""One small model and its plans, for the tests of plans."""

import functools

import tensorflow as tf

import tf_regal

QUICK = {"topology": "2xCPU", "evaluations": 200, "cache_dir": False}


def body(x):
    a = b = c = x
    for _ in range(3):
        a, b, c = tf.tanh(a @ x), tf.sin(b @ x), tf.cos(c @ x)
    return a + b * c


def concrete(python_function=body, n=64):
    return tf.function(python_function).get_concrete_function(tf.TensorSpec([n, n], tf.float32, "x"))


@functools.cache
def plan_of(**settings):
    return tf_regal.plan(concrete(), **{**QUICK, **settings})

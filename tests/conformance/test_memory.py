"""No function, graph or plan is left of programs that are gone, over many calls and many retraces; a deleted tf.function frees its plan."""

import gc

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tf_regal

from .hooked import FORCED, ran


def applies(program):
    return not program.heavy


def registered():
    """How many functions TensorFlow's runtime holds."""
    gc.collect()
    return len(context.context().list_function_names())


def test_memory(kind, planned, cell):
    def grown(with_hook):
        """By how many functions four more programs grow what is held."""

        def act(instance):
            for i in range(3):
                instance.step(i)
                if instance.gradient is not None:
                    instance.gradient(i)

        ran(kind, with_hook, act)
        before = registered()
        for _ in range(4):
            ran(kind, with_hook, act)
        return registered() - before

    assert grown(True) <= max(grown(False), 0)
    cell()


@pytest.mark.slow
def test_a_thousand_calls_and_a_hundred_retraces():
    import resource

    def body(x):
        y = tf.tanh(x @ tf.transpose(x))
        return tf.sin(y) @ x + tf.cos(x)

    fn = tf_regal.optimize(body, **FORCED)
    x = tf.ones([64, 64])
    for _ in range(200):
        fn(x)
    held, resident = registered(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        fn(x)
    assert registered() == held
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 20_000  # kB
    for n in range(1, 101):
        fn(tf.ones([n, 3]))
    assert fn.experimental_get_tracing_count() == 101
    del fn
    assert registered() < held

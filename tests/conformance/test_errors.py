"""Same errors: type, message and op of a failing op, wrong arguments, errors while tracing; and the program goes on afterwards."""

import re

import pytest
import tensorflow as tf

from .hooked import FORCED, to_numpy


def applies(program):
    return program.name in ("assertion or op that fails",)


def scrubbed(error):
    """Type and message without the numbers that TensorFlow gives functions, and without the names of ours."""
    text = re.sub(r"_tf_regal_[0-9a-f]{12}", "", str(error))
    text = re.sub(r"__(inference|forward|backward)_([^ }]+?)_\d+", r"__\1_\2", text)
    return type(error), re.sub(r' File "[^"]*", line \d+, in [^\n]*\n', "", text)


def test_errors(kind, plain, planned, cell):
    def act(instance):
        found = []
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                instance.fail()
            found.append(scrubbed(caught.value))
            found.append(to_numpy(instance.step(0)))
        return found

    assert planned(act) == plain(act)
    cell()


BROKEN = {
    "gather": lambda x: tf.gather(tf.sin(x), [7], name="the_gather") + 1.0,
    "inverse": lambda x: tf.linalg.inv(x * 0.0, name="the_inverse") @ x,
    "python": lambda x: tf.py_function(lambda y: 1 / 0, [tf.sin(x)], tf.float32),
    "check": lambda x: tf.debugging.check_numerics(tf.math.log(-tf.abs(x) - 1.0), "a message of the user's"),
    "reshape": lambda x: tf.reshape(tf.sin(x), tf.cast(x[0, :2] * 0 + 3, tf.int32), name="the_reshape") + 1.0,
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_each_failing_op(name):
    import tf_regal

    x = tf.eye(4)

    def errors(fn):
        found = []
        for _ in range(2):
            with pytest.raises(tf.errors.OpError) as caught:
                fn(x)
            found.append((scrubbed(caught.value), caught.value.error_code))
        return found

    want = errors(tf.function(BROKEN[name]))
    assert errors(tf_regal.optimize(BROKEN[name], **FORCED)) == want


def test_wrong_arguments():
    import tf_regal

    def body(x, y=1.0):
        return tf.sin(x) @ x + y

    def errors(fn):
        found = []
        for args, kwargs in (((), {}), ((1, 2, 3), {}), ((tf.eye(2),), {"z": 1}), ((tf.ones([2, 3]),), {})):
            with pytest.raises((TypeError, ValueError)) as caught:
                fn(*args, **kwargs)
            found.append((type(caught.value), str(caught.value)))
        return found

    assert errors(tf_regal.optimize(body, **FORCED)) == errors(tf.function(body))

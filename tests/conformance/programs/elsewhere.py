"""Functions that other machinery calls: strategies, data pipelines, threads, XLA."""

import contextlib
import threading

import tensorflow as tf

from .functions import one, two_branches
from .registry import Instance, program, values, weights


def under(strategy, *, whole=False):
    """Training under a strategy, which runs inside the function; whole: the function is also called in its scope."""
    with strategy.scope():
        w = tf.Variable(weights(8, 8), aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def train(x):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(two_branches(x, w)[0] ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        return strategy.reduce("mean", strategy.run(replica, args=(x,)), axis=None)

    def step(i):
        with strategy.scope() if whole else contextlib.nullcontext():
            return train(*one(i))

    return Instance(step=step, state=lambda: [w.numpy()], functions=[train])


@program("MirroredStrategy on two devices, run inside the function", stateless=False)
def mirrored():
    return under(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))


@program("MirroredStrategy on two devices, function called in its scope", planned=False, reason="tf.distribute", stateless=False)
def mirrored_scope():
    return under(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), whole=True)


@program("central storage strategy", stateless=False)
def central_storage():
    return under(tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0"))


@program("one-device strategy", stateless=False)
def one_device():
    return under(tf.distribute.OneDeviceStrategy("CPU:1"))


@program("jit_compile=True", planned=False, reason="XLA")
def xla():
    w = weights(8, 8)
    fn = tf.function(lambda x: two_branches(x, w), jit_compile=True)
    return Instance(step=lambda i: fn(*one(i)), functions=[fn])


@program("function of a tf.data pipeline", planned=False, reason="tf.data", stateless=False)
def data_pipeline():
    w = weights(8, 8)
    data = tf.data.Dataset.from_tensor_slices(values(0, 8, 4, 8)).map(tf.function(lambda x: two_branches(x, w)[0]))

    def step(i):
        return list(data.skip(i).take(1))

    return Instance(step=step)


@program("called from other threads", stateless=False)
def other_threads():
    w = weights(8, 8)
    fn = tf.function(lambda x: two_branches(x, w))

    def step(i):
        results = [None] * 3

        def work(n):
            results[n] = fn(*one(i + n))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    return Instance(step=step, functions=[])

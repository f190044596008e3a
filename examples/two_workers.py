"""Trains a two-tower model on two TensorFlow workers of one core each, first with everything on one, then as tf-regal places it.

    python examples/two_workers.py

The workers are processes on this machine; with a cluster of your own, connect with tf.config.experimental_connect_to_cluster and leave `Workers` out.
"""

import argparse
import statistics
import time

import numpy as np
import tensorflow as tf

import tf_regal
from tf_regal.bench.workers import Workers

BATCH, WIDTH, DEPTH = 256, 1024, 4


class TwoTowers(tf.Module):
    """Two towers of dense layers side by side and a head over both."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(2)
        self.towers = [[tf.Variable(rng.normal(0, 0.03, (WIDTH, WIDTH)).astype(np.float32)) for _ in range(DEPTH)] for _ in range(2)]
        self.head = tf.Variable(rng.normal(0, 0.03, (2 * WIDTH, 1)).astype(np.float32))

    def __call__(self, users, items):
        outputs = []
        for x, tower in zip((users, items), self.towers, strict=True):
            for weights in tower:
                x = tf.nn.relu(x @ weights)
            outputs.append(x)
        return tf.concat(outputs, axis=1) @ self.head


def make_step():
    """A training step, and the model and optimizer that it trains."""
    model = TwoTowers()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(users, items, target):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(users, items) - target))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return loss

    return step, model, optimizer


def train(step, batches):
    """(losses, median seconds per step, those of the first steps left out)."""
    losses, seconds = [], []
    for batch in batches:
        began = time.perf_counter()
        losses.append(float(step(*batch).numpy()))
        seconds.append(time.perf_counter() - began)
    return losses, statistics.median(seconds[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="of each training (default: %(default)s)")
    args = parser.parse_args()
    with Workers(2) as workers:
        rng = np.random.default_rng(3)
        shapes = ((BATCH, WIDTH), (BATCH, WIDTH), (BATCH, 1))
        batches = [[tf.constant(rng.normal(size=shape).astype(np.float32)) for shape in shapes] for _ in range(args.steps)]

        with tf.device(workers.devices[0]):
            step, _, _ = make_step()
            plain, seconds = train(step, batches)
            tf_regal.profile(step, *batches[0], topology="/job:worker")  # what the ops really take
        print(f"one worker:  {seconds * 1e3:.0f} ms per step")

        with tf.device(workers.devices[0]):
            step, model, optimizer = make_step()
        plan = tf_regal.plan(step.get_concrete_function(*batches[0]), topology="/job:worker", costs="measured", move_variables=True)
        moved = tf_regal.move_variables(plan, model, optimizer)
        planned, planned_seconds = train(tf_regal.apply(plan, step.get_concrete_function(*batches[0])), batches)
        print(f"two workers: {planned_seconds * 1e3:.0f} ms per step ({plan.predicted.makespan_s * 1e3:.0f} predicted), {moved} variables moved")
        print(f"{seconds / planned_seconds:.2f} times as fast; losses {'equal' if plain == planned else 'differ'}")
    return 0 if plain == planned else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""A custom training loop with a GradientTape inside a tf.function, on two logical CPU devices, with and without tf-regal.

    python examples/custom_loop.py
"""

import argparse

import compare_processes
import numpy as np
import tensorflow as tf

BATCH, STEPS = 16, 5


class TwoTowers(tf.Module):
    """Two towers of dense layers side by side and a head over both."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(2)
        self.towers = [
            [tf.Variable(rng.normal(0, 0.05, shape).astype(np.float32)) for shape in ((256, 512), (512, 512), (512, 64))] for _ in range(2)
        ]
        self.head = tf.Variable(rng.normal(0, 0.05, (128, 1)).astype(np.float32))

    def __call__(self, users, items):
        outputs = []
        for x, tower in zip((users, items), self.towers, strict=True):
            for weights in tower:
                x = tf.nn.relu(x @ weights)
            outputs.append(x)
        return tf.concat(outputs, axis=1) @ self.head


def train():
    """Five steps of Adam from fixed weights. Returns (losses, weights)."""
    model = TwoTowers()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(users, items, target):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(users, items) - target))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    rng = np.random.default_rng(3)
    losses = []
    for _ in range(STEPS):
        users, items = (tf.constant(rng.random((BATCH, 256), np.float32)) for _ in range(2))
        losses.append(step(users, items, tf.constant(rng.random((BATCH, 1), np.float32))).numpy())
    return losses, [v.numpy() for v in [*model.trainable_variables, *optimizer.variables]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", choices=["plain", "planned"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    return compare_processes.child(train, args.run) if args.run else compare_processes.compare(__file__)


if __name__ == "__main__":
    raise SystemExit(main())

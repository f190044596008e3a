"""Keras `model.fit` on two logical CPU devices, with and without tf-regal: the same weights to the bit, ops on both devices.

    python examples/keras_fit.py
"""

import argparse

import compare_processes
import numpy as np
import tensorflow as tf

BATCH, STEPS = 8, 5


def inception_block(x, width):
    """Four branches of different depth, side by side: what a second device can take."""
    layers = tf.keras.layers
    one = layers.Conv2D(width, 1, padding="same", activation="relu")(x)
    three = layers.Conv2D(width, 1, padding="same", activation="relu")(x)
    three = layers.Conv2D(width, 3, padding="same", activation="relu")(three)
    five = layers.Conv2D(width, 1, padding="same", activation="relu")(x)
    five = layers.Conv2D(width, 3, padding="same", activation="relu")(five)
    five = layers.Conv2D(width, 3, padding="same", activation="relu")(five)
    pooled = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    pooled = layers.Conv2D(width, 1, padding="same", activation="relu")(pooled)
    return layers.Concatenate()([one, three, five, pooled])


def make_model():
    inputs = tf.keras.Input((32, 32, 3))
    x = tf.keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(inputs)
    x = inception_block(x, 16)
    x = tf.keras.layers.MaxPooling2D(2)(x)
    x = inception_block(x, 24)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(10)(x))


def train():
    """Five steps from fixed weights. Returns (losses, weights)."""
    tf.keras.utils.set_random_seed(1)
    model = make_model()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    rng = np.random.default_rng(1)
    images = rng.random((BATCH * STEPS, 32, 32, 3), np.float32)
    labels = rng.integers(0, 10, BATCH * STEPS)
    losses = []
    record = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(logs["loss"]))
    model.fit(images, labels, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[record])
    return losses, model.get_weights()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", choices=["plain", "planned"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    return compare_processes.child(train, args.run) if args.run else compare_processes.compare(__file__)


if __name__ == "__main__":
    raise SystemExit(main())

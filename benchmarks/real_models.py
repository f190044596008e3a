"""Models for `real_devices.py`: parallel parts are marked with `place(i)`, so that a user's placement by hand can be measured too."""

import contextlib
import dataclasses
import itertools

import numpy as np
import tensorflow as tf


def nowhere(part):
    """A `place` that leaves everything where it is."""
    return contextlib.nullcontext()


@dataclasses.dataclass
class Model:
    """forward: (inputs, place) → output [batch, 1]. inputs, target: of a batch. has_branches: whether `place` does anything."""

    variables: list
    forward: object
    inputs: list
    target: object
    has_branches: bool = True


class _Weights:
    """Makes variables from one seed, the same in every process."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.made = []

    def __call__(self, *shape, scale=None):
        fan_in = int(np.prod(shape[:-1])) or 1
        value = self._rng.normal(0, scale or fan_in**-0.5, shape).astype(np.float32)
        self.made.append(tf.Variable(value))
        return self.made[-1]

    def data(self, *shape):
        return tf.constant(self._rng.normal(size=shape).astype(np.float32))


def two_towers(batch=256, width=1024, depth=4):
    w = _Weights(0)
    towers = [[w(width, width) for _ in range(depth)] for _ in range(2)]
    head = w(2 * width, 1)

    def forward(inputs, place):
        outputs = []
        for i, (x, tower) in enumerate(zip(inputs, towers, strict=True)):
            with place(i):
                for weights in tower:
                    x = tf.nn.relu(x @ weights)
                outputs.append(x)
        return tf.concat(outputs, 1) @ head

    return Model(w.made, forward, [w.data(batch, width), w.data(batch, width)], w.data(batch, 1))


def inception(batch=16, size=28, channels=64, blocks=3, branches=4):
    """Blocks of four branches of two convolutions each, side by side, and a concatenation: the plan of Inception's blocks."""
    w = _Weights(1)
    stem = w(3, 3, 3, channels)
    shapes = (1, 1, channels, channels), (3, 3, channels, channels), (3, 3, channels, channels // branches)
    layers = [[[w(*shape) for shape in shapes] for _ in range(branches)] for _ in range(blocks)]
    head = w(channels, 1)

    def forward(inputs, place):
        x = tf.nn.relu(tf.nn.conv2d(inputs[0], stem, 1, "SAME"))
        for block in layers:
            outputs = []
            for i, weights in enumerate(block):
                with place(i):
                    y = x
                    for kernel in weights:
                        y = tf.nn.relu(tf.nn.conv2d(y, kernel, 1, "SAME"))
                    outputs.append(y)
            x = tf.concat(outputs, 3)
        return tf.reduce_mean(x, [1, 2]) @ head

    return Model(w.made, forward, [w.data(batch, size, size, 3)], w.data(batch, 1))


def _attention(x, memory, wq, wk, wv, wo, heads):
    def split(t):
        return tf.transpose(tf.reshape(t, [t.shape[0], t.shape[1], heads, -1]), [0, 2, 1, 3])

    q, k, v = split(x @ wq), split(memory @ wk), split(memory @ wv)
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (q.shape[-1] ** -0.5))
    mixed = tf.transpose(weights @ v, [0, 2, 1, 3])
    return tf.reshape(mixed, [x.shape[0], x.shape[1], -1]) @ wo


def transformer(batch=8, length=64, width=256, layers=2, heads=4):
    w = _Weights(2)
    encoder = [([w(width, width) for _ in range(4)], w(width, 4 * width), w(4 * width, width)) for _ in range(layers)]
    decoder = [([w(width, width) for _ in range(4)], [w(width, width) for _ in range(4)], w(width, 4 * width), w(4 * width, width)) for _ in range(layers)]
    head = w(width, 1)

    def forward(inputs, place):
        x, y = inputs
        with place(0):
            for attention, up, down in encoder:
                x = x + _attention(x, x, *attention, heads)
                x = x + tf.nn.relu(x @ up) @ down
        with place(1):
            for own, cross, up, down in decoder:
                y = y + _attention(y, y, *own, heads)
                y = y + _attention(y, x, *cross, heads)
                y = y + tf.nn.relu(y @ up) @ down
        return tf.reduce_mean(y, 1) @ head

    return Model(w.made, forward, [w.data(batch, length, width), w.data(batch, length, width)], w.data(batch, 1))


def dlrm(batch=512, tables=8, rows=2000, width=64, hidden=512):
    """Embedding tables and a dense part, pairwise products of what they give, and layers over these."""
    w = _Weights(3)
    embeddings = [w(rows, width, scale=0.05) for _ in range(tables)]
    bottom = [w(13, hidden), w(hidden, hidden), w(hidden, width)]
    pairs = (tables + 1) * (tables + 1)
    top = [w(pairs + width, hidden), w(hidden, hidden), w(hidden, 1)]

    def forward(inputs, place):
        dense, indices = inputs
        with place(0):
            for weights in bottom:
                dense = tf.nn.relu(dense @ weights)
        with place(1):
            looked_up = [tf.gather(table, indices[:, i]) for i, table in enumerate(embeddings)]
        features = tf.stack([dense, *looked_up], 1)
        x = tf.concat([tf.reshape(tf.matmul(features, features, transpose_b=True), [-1, pairs]), dense], 1)
        for weights in top[:-1]:
            x = tf.nn.relu(x @ weights)
        return x @ top[-1]

    indices = tf.constant(np.random.default_rng(4).integers(0, rows, (batch, tables)), tf.int32)
    return Model(w.made, forward, [w.data(batch, 13), indices], w.data(batch, 1))


def vgg(batch=8, size=32):
    """A chain of convolutions: nothing can run side by side."""
    w = _Weights(5)
    channels = (3, 32, 32, 64, 64, 128, 128)
    kernels = [w(3, 3, a, b) for a, b in itertools.pairwise(channels)]
    head = w(channels[-1], 1)

    def forward(inputs, place):
        x = inputs[0]
        for i, kernel in enumerate(kernels):
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
            if i % 2:
                x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        return tf.reduce_mean(x, [1, 2]) @ head

    return Model(w.made, forward, [w.data(batch, size, size, 3)], w.data(batch, 1), has_branches=False)


MODELS = {
    "two-tower MLP": two_towers,
    "multi-branch CNN": inception,
    "encoder-decoder transformer": transformer,
    "DLRM-like recommender": dlrm,
    "VGG-like chain": vgg,
}

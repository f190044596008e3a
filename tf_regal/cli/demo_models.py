"""The two programs of `tf-regal demo`. TensorFlow is imported where they are made: after `startup.load_tensorflow()`."""

import numpy as np

BATCH, STEPS, IMAGE = 8, 8, 32
_CELLS, _SIDE, _WIDTH = 3, 48, 32


class Training:
    """An Inception-like Keras model: four branches of different depth over the same image."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self._images = rng.random((BATCH * STEPS, IMAGE, IMAGE, 3), np.float32)
        self._labels = rng.integers(0, 10, BATCH * STEPS)
        self._weights = self._make().get_weights()

    def _make(self):
        import tensorflow as tf

        layers = tf.keras.layers

        def convolution(x, width, size):
            return layers.Conv2D(width, size, padding="same", activation="relu")(x)

        image = tf.keras.Input((IMAGE, IMAGE, 3))
        branches = []
        # The branches meet at the image, which needs no gradient. Where they meet at a layer's output, TensorFlow adds
        # up their gradients in an order that it leaves to chance: it would not repeat its own results.
        for depth in (1, 2, 3, 4):
            x = convolution(image, 16, 1)
            for _ in range(depth):
                x = convolution(x, 16, 3)
            branches.append(layers.MaxPooling2D(2)(x))
        x = convolution(layers.Concatenate()(branches), 32, 3)
        return tf.keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))

    def fit(self):
        """Trains a new copy from the same weights. Returns (losses, weights)."""
        import tensorflow as tf

        model = self._make()
        model.set_weights(self._weights)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(1e-2), loss, jit_compile=False)
        losses = []
        record = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(logs["loss"]))
        model.fit(self._images, self._labels, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[record])
        return losses, model.get_weights()


class Cells:
    """A stack of NASNet-like cells: five pairs of branches over the two cells before, concatenated and squeezed."""

    def __init__(self):
        import tensorflow as tf

        self._rng = np.random.default_rng(0)
        self.stem = self._weight(3, 3, 3, _WIDTH)
        self.cells = [
            {
                "entries": [self._weight(1, 1, _WIDTH, _WIDTH) for _ in range(2)],
                "separable": [
                    [(self._weight(k, k, _WIDTH, 1), self._weight(1, 1, _WIDTH, _WIDTH)) for _ in range(2)]
                    for k in (3, 5, 5, 3, 3)
                ],
                "squeeze": self._weight(1, 1, 5 * _WIDTH, _WIDTH),
            }
            for _ in range(_CELLS)
        ]
        self.image = tf.constant(self._rng.random((1, _SIDE, _SIDE, 3), np.float32))

    def _weight(self, *shape):
        import tensorflow as tf

        return tf.Variable(self._rng.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32))

    def __call__(self, image):
        """float32 [batch, side, side, 3] -> float32 [batch, width]."""
        import tensorflow as tf

        x = before = tf.nn.conv2d(image, self.stem, 1, "SAME")
        for cell in self.cells:
            a, b = (
                tf.nn.conv2d(tf.nn.relu(source), w, 1, "SAME")
                for source, w in zip((x, before), cell["entries"], strict=True)
            )
            first, second, third, fourth, fifth = cell["separable"]
            pairs = [
                _separable(a, first) + a,
                _separable(b, second) + _separable(a, third),
                _pool(a) + b,
                _pool(b) + a,
                _separable(b, fourth) + _separable(b, fifth),
            ]
            before, x = x, tf.nn.conv2d(tf.concat(pairs, -1), cell["squeeze"], 1, "SAME")
        return tf.reduce_mean(x, [1, 2])


def _separable(x, weights):
    import tensorflow as tf

    for depthwise, pointwise in weights:
        x = tf.nn.depthwise_conv2d(tf.nn.relu(x), depthwise, [1, 1, 1, 1], "SAME")
        x = tf.nn.conv2d(x, pointwise, 1, "SAME")
    return x


def _pool(x):
    import tensorflow as tf

    return tf.nn.avg_pool2d(x, 3, 1, "SAME")

"""Generative adversarial networks: one step updates generators and discriminators."""

import tensorflow as tf

from benchmarks.zoo import steps
from benchmarks.zoo.registry import Input, Model, images

layers = tf.keras.layers


def _real(logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(logits), logits=logits))


def _fake(logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros_like(logits), logits=logits))


def _values(*networks):
    return [v.value for network in networks for v in network.trainable_variables]


class DCGAN(tf.Module):
    """Inference: noise → image."""

    def __init__(self, noise=100, width=64):
        super().__init__()
        z = tf.keras.Input((noise,))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(4 * 4 * 8 * width, use_bias=False)(z)))
        x = layers.Reshape((4, 4, 8 * width))(x)
        for w in (4 * width, 2 * width, width):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2DTranspose(w, 4, 2, padding="same", use_bias=False)(x)))
        self.generator = tf.keras.Model(z, layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh")(x))
        x = image = tf.keras.Input((64, 64, 3))
        for i, w in enumerate((width, 2 * width, 4 * width, 8 * width)):
            x = layers.Conv2D(w, 4, 2, padding="same", use_bias=not i)(x)
            x = layers.LeakyReLU(negative_slope=0.2)(layers.BatchNormalization()(x) if i else x)
        self.discriminator = tf.keras.Model(image, layers.Dense(1)(layers.Flatten()(x)))
        self._pairs = [(v, steps.make_adam("fused", v)) for v in (_values(self.generator), _values(self.discriminator))]

    def __call__(self, z, training=False):
        return self.generator(z, training=training)

    def training_step(self, z, real):
        with tf.GradientTape(persistent=True) as tape:
            made = self.generator(z, training=True)
            on_made, on_real = self.discriminator(made, training=True), self.discriminator(real, training=True)
            losses = [_real(on_made), _real(on_real) + _fake(on_made)]
        for loss, (variables, adam) in zip(losses, self._pairs, strict=True):
            adam.apply(tape.gradient(loss, variables))
        return losses


class InstanceNorm(layers.Layer):
    """Each image and channel for itself (Ulyanov et al., 2016)."""

    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], initializer="ones", name="scale")
        self.offset = self.add_weight(shape=shape[-1:], initializer="zeros", name="offset")

    def call(self, x):
        mean, variance = tf.nn.moments(x, (1, 2), keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.offset, self.scale, 1e-5)


def _block(x, width, size, stride, kind=layers.Conv2D, norm=True):
    x = kind(width, size, stride, padding="same")(x)
    return layers.ReLU()(InstanceNorm()(x) if norm else x)


def _translator(size, width, blocks):
    image = tf.keras.Input((size, size, 3))
    x = _block(_block(image, width, 7, 1), 2 * width, 3, 2)
    for _ in range(blocks):
        x = x + InstanceNorm()(layers.Conv2D(2 * width, 3, padding="same")(_block(x, 2 * width, 3, 1)))
    x = _block(x, width, 3, 2, layers.Conv2DTranspose)
    return tf.keras.Model(image, layers.Conv2D(3, 7, padding="same", activation="tanh")(x))


def _critic(size, width):
    image = tf.keras.Input((size, size, 3))
    x = _block(image, width, 4, 2, norm=False)
    x = _block(x, 2 * width, 4, 2)
    return tf.keras.Model(image, layers.Conv2D(1, 4, padding="same")(x))


class CycleGAN(tf.Module):
    """Inference: an image of each of two kinds → one of the other. Least-squares losses, cycles weigh 10."""

    def __init__(self, size=128, width=32, blocks=2):
        super().__init__()
        self.there, self.back = _translator(size, width, blocks), _translator(size, width, blocks)
        self.critics = [_critic(size, 2 * width) for _ in range(2)]
        values = [_values(self.there, self.back), _values(*self.critics)]
        self._pairs = [(v, steps.make_adam("fused", v)) for v in values]

    def __call__(self, x, y, training=False):
        return self.there(x, training=training), self.back(y, training=training)

    def training_step(self, x, y):
        with tf.GradientTape(persistent=True) as tape:
            made_y, made_x = self.there(x, training=True), self.back(y, training=True)
            cycles = tf.reduce_mean(tf.abs(self.back(made_y, training=True) - x)) + tf.reduce_mean(tf.abs(self.there(made_x, training=True) - y))
            on_made = [critic(image, training=True) for critic, image in zip(self.critics, (made_x, made_y), strict=True)]
            on_real = [critic(image, training=True) for critic, image in zip(self.critics, (x, y), strict=True)]
            make = 10.0 * cycles + tf.add_n([tf.reduce_mean(tf.square(s - 1)) for s in on_made])
            judge = tf.add_n([tf.reduce_mean(tf.square(s)) for s in on_made] + [tf.reduce_mean(tf.square(s - 1)) for s in on_real])
        for loss, (variables, adam) in zip((make, judge), self._pairs, strict=True):
            adam.apply(tape.gradient(loss, variables))
        return make, judge


MODELS = {
    "gan": (
        Model("dcgan", DCGAN, (Input((100,)),), "width 64, 64 × 64; both networks in one step", "Radford et al., ICLR 2016", images(64), training=(32, 128)),
        Model("cyclegan", CycleGAN, images(128) * 2, "2 residual blocks, width 32, 128 × 128; four networks in one step", "Zhu et al., ICCV 2017",
              training=(1, 8), inference=(1, 8)),
    ),
}

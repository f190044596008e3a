"""What a model of the zoo is declared by."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor of a batch: shape without the batch dimension, and dtype. `batched` False: the shape is the whole shape."""

    shape: tuple
    dtype: tf.DType = tf.float32
    batched: bool = True

    def spec(self, batch):
        return tf.TensorSpec((batch, *self.shape) if self.batched else self.shape, self.dtype)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of the zoo.

    Attributes:
        name: of letters, digits and "-"; unique.
        build: () → what is called with the inputs and `training=`: a Keras model, a tf.Module. For a step of its own (a GAN's) the object has a method
            `training_step(*inputs)` that applies its gradients.
        inputs, targets: the tensors of a batch, `Input`s.
        loss: (outputs, *targets) → scalar; None where the object has a `training_step`.
        config: the configuration in words: size, depth, what differs from the publication.
        source: the publication.
        inference, training: batch sizes.
        adam: "fused" (one ResourceApplyAdam per variable, as in tf.compat.v1 and tf_keras' legacy optimizer) or "keras" (Keras 3's, of element-wise ops).
        legacy_keras: tf.keras is tf_keras in its process (Spektral does not work with Keras 3).
    """

    name: str
    build: Callable
    inputs: tuple
    config: str
    source: str
    targets: tuple = ()
    loss: Callable | None = None
    inference: tuple = (1, 32)
    training: tuple = (16, 64)
    adam: str = "fused"
    legacy_keras: bool = False

    def batches(self, mode):
        return self.inference if mode == "inference" else self.training


def images(size, channels=3):
    return (Input((size, size, channels)),)


def tokens(length):
    return Input((length,), tf.int32)


LABEL = (Input((), tf.int32),)


def class_loss(logits, labels):
    """Mean cross-entropy of integer labels; logits [..., classes], labels [...]."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def square_loss(outputs, targets):
    return tf.reduce_mean(tf.math.squared_difference(outputs, targets))


def click_loss(logits, clicks):
    """Mean binary cross-entropy; logits and clicks [batch, 1]."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicks, logits=logits))

"""A declared model → ConcreteFunctions of inference and of a training step."""

import tensorflow as tf

LEARNING_RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


class FusedAdam:
    """Adam (Kingma and Ba, 2015) by TensorFlow's own kernel, one op per variable, as tf.compat.v1.train.AdamOptimizer applies it.

    The gradient of an embedding table is made dense, as Keras 3 does: the number of different rows would be known to a run only.
    """

    def __init__(self, variables):
        self.step = tf.Variable(0, dtype=tf.int64, name="step")
        self.slots = [(tf.Variable(tf.zeros(v.shape, v.dtype), name="m"), tf.Variable(tf.zeros(v.shape, v.dtype), name="v")) for v in variables]
        self.variables = variables

    def apply(self, gradients):
        count = tf.cast(self.step.assign_add(1), tf.float32)
        beta_1_power, beta_2_power = tf.pow(BETA_1, count), tf.pow(BETA_2, count)
        for variable, (m, v), gradient in zip(self.variables, self.slots, gradients, strict=True):
            if gradient is None:
                continue
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=m.handle, v=v.handle, beta1_power=beta_1_power, beta2_power=beta_2_power, lr=LEARNING_RATE,
                beta1=BETA_1, beta2=BETA_2, epsilon=EPSILON, grad=tf.convert_to_tensor(gradient),
            )


class _KerasAdam:
    def __init__(self, variables):
        self._optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)
        self._variables = variables
        self._optimizer.build(variables)

    def apply(self, gradients):
        self._optimizer.apply_gradients(zip(gradients, self._variables, strict=True))


def make_adam(kind, variables):
    """kind: see `registry.Model.adam`. variables: of Keras or of TensorFlow."""
    if kind == "keras":
        return _KerasAdam(variables)
    return FusedAdam([getattr(v, "value", v) if not isinstance(v, tf.Variable) else v for v in variables])


def concrete(model, mode, batch):
    """The ConcreteFunction of a `registry.Model` in a mode ("inference", "training") at a batch size."""
    network = model.build()
    inputs = [i.spec(batch) for i in model.inputs]
    if isinstance(network, tf.keras.Model) and not network.built:
        network(*_packed(network, [tf.zeros(i.spec(1).shape, i.dtype) for i in model.inputs]))
    if mode == "inference":
        return tf.function(lambda *x: network(*_packed(network, x), training=False), autograph=False).get_concrete_function(*inputs)
    targets = [i.spec(batch) for i in model.targets]
    if hasattr(network, "training_step"):
        return tf.function(network.training_step, autograph=False).get_concrete_function(*inputs, *targets)
    variables = list(network.trainable_variables)
    adam = make_adam(model.adam, variables)

    def step(*batch_tensors):
        x, y = batch_tensors[: len(inputs)], batch_tensors[len(inputs) :]
        with tf.GradientTape() as tape:
            loss = model.loss(network(*_packed(network, x), training=True), *y)
        adam.apply(tape.gradient(loss, [getattr(v, "value", v) if not isinstance(v, tf.Variable) else v for v in variables]))
        return loss

    return tf.function(step, autograph=False).get_concrete_function(*inputs, *targets)


def _packed(network, x):
    """A Keras model takes several inputs as one list."""
    return [list(x)] if isinstance(network, tf.keras.Model) and len(x) > 1 else list(x)

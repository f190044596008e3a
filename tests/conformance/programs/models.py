"""Keras 3: sequential, functional and subclassed models with a callback, several in one program, custom steps, recurrent layers."""

import numpy as np
import tensorflow as tf

from .registry import Instance, program

keras = tf.keras
INPUTS = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
TARGETS = np.random.default_rng(2).standard_normal((40, 2)).astype(np.float32)


def trained(make, inputs=INPUTS, targets=TARGETS, jit_compile=False, **compile_args):
    """Instance that fits and predicts; `make` gives a model."""
    keras.utils.set_random_seed(3)
    model = make()
    model.compile("adam", "mse", jit_compile=jit_compile, **compile_args)

    seen = []
    callbacks = [keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append((batch, logs["loss"])))]

    def step(i):
        # The last batch is smaller.
        history = model.fit(inputs, targets, batch_size=16, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
        return history.history["loss"], tf.constant(model.predict(inputs[:4], verbose=0))

    return Instance(step=step, state=lambda: [list(seen), *(w.astype(np.float64) for w in model.get_weights())], model=model)


def dense(n, activation=None):
    return keras.layers.Dense(n, activation)


def sequential():
    return keras.Sequential([keras.Input((8,)), dense(16, "relu"), dense(16, "tanh"), dense(2)])


@program("Keras 3: sequential", stateless=False, heavy=True)
def keras_sequential():
    return trained(sequential)


@program("Keras 3: functional with branches", stateless=False, heavy=True)
def keras_functional():
    def make():
        image = keras.Input((8,))
        branches = [dense(16, "relu")(dense(16, "tanh")(image)) for _ in range(3)]
        return keras.Model(image, dense(2)(keras.layers.Dropout(0.2, seed=1)(keras.layers.Concatenate()(branches))))

    return trained(make)


@program("Keras 3: subclassed with a custom train_step", stateless=False, heavy=True)
def keras_subclassed():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = dense(16, "relu"), dense(2)

        def call(self, x):
            return self.second(self.first(x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"loss": loss}

    return trained(Custom)


@program("Keras 3: steps_per_execution", stateless=False, heavy=True)
def keras_several_steps():
    return trained(sequential, steps_per_execution=2)


@program("Keras 3: mixed precision", stateless=False, heavy=True)
def keras_mixed_precision():
    def make():
        policy = "mixed_float16"
        return keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu", dtype=policy), keras.layers.Dense(2, dtype="float32")])

    return trained(make)


@program("Keras 3: jit_compile=True", stateless=False, heavy=True)
def keras_xla():
    # The function around the compiled step is planned; the step is one op in it.
    return trained(sequential, jit_compile=True)


@program("Keras 3: two models", stateless=False, heavy=True)
def keras_two_models():
    first, second = trained(sequential), trained(sequential)
    return Instance(step=lambda i: (first.step(i), second.step(i)), state=lambda: [first.state(), second.state()])


@program("Keras 3: LSTM and GRU", stateless=False, heavy=True)
def keras_recurrent():
    def make():
        return keras.Sequential([keras.Input((4, 2)), keras.layers.LSTM(6, return_sequences=True), keras.layers.GRU(5), dense(2)])

    return trained(make, inputs=INPUTS.reshape(40, 4, 2))

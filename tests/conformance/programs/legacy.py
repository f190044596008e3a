"""tf_keras, the legacy Keras."""

import numpy as np
import tensorflow as tf

from .models import INPUTS, TARGETS
from .registry import Instance, program


@program("tf_keras: functional", stateless=False, heavy=True)
def legacy_functional():
    import tf_keras as keras

    keras.utils.set_random_seed(3)
    image = keras.Input((8,))
    branches = [keras.layers.Dense(16, "relu")(keras.layers.Dense(16, "tanh")(image)) for _ in range(3)]
    model = keras.Model(image, keras.layers.Dense(2)(keras.layers.Concatenate()(branches)))
    model.compile("sgd", "mse")

    def step(i):
        history = model.fit(INPUTS, TARGETS, batch_size=16, epochs=1, shuffle=False, verbose=0)
        return history.history["loss"], tf.constant(model.predict(INPUTS[:4], verbose=0))

    return Instance(step=step, state=lambda: [w.astype(np.float64) for w in model.get_weights()], model=model)

"""Models that were planned can be copied and pickled, and the copies work."""

import copy
import pickle

from .hooked import to_numpy


def applies(program):
    return program.name in ("tf.Module with a training step", "Keras 3: sequential", "Keras 3: functional with branches", "tf_keras: functional")


def test_copies(kind, plain, planned, cell):
    import numpy as np
    import tensorflow as tf

    def act(instance):
        instance.step(0)
        is_keras = hasattr(instance.model, "predict")
        copies = [copy.deepcopy(instance.model)]
        if is_keras:
            copies.append(pickle.loads(pickle.dumps(instance.model)))
        inputs = np.ones((4, 8), np.float32)
        return [to_numpy(tf.constant(c.predict(inputs, verbose=0)) if is_keras else c.serve(tf.constant(inputs))) for c in copies]

    assert planned(act) == plain(act)
    cell()

"""tf.config.run_functions_eagerly(True): nothing is planned, results are those of eager TensorFlow."""

import pytest
import tensorflow as tf

from .hooked import to_numpy


def applies(program):
    # Keras and strategies refuse or change what they do when functions run eagerly.
    # tf.vectorized_map runs a function of its own as a graph all the same.
    return program.planned and not program.name.startswith(("Keras", "tf_keras", "Mirrored", "central", "map_fn")) and not program.heavy


@pytest.fixture(autouse=True)
def eagerly():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_eagerly(kind, plain, planned, seen, cell):
    def act(instance):
        return [to_numpy(instance.step(i)) for i in range(2)], to_numpy(instance.state())

    assert planned(act) == plain(act)
    assert [r for r in seen() if r.status in ("planned", "failed")] == []
    cell(planned=False)

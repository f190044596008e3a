"""Same outputs, to the bit, call after call; and the same structure."""

import tensorflow as tf

from .hooked import to_numpy


def test_outputs(kind, plain, planned, cell):
    def act(instance):
        results = [instance.step(i) for i in range(2 if kind.heavy else 5)]
        return results, [to_numpy(r) for r in results]

    (want, want_values), (got, got_values) = plain(act), planned(act)
    for a, b in zip(want, got, strict=True):
        tf.nest.assert_same_structure(a, b, expand_composites=True)
    assert got_values == want_values
    cell()

"""Same gradients by tapes outside the function, first and second order, to the bit; and what the tape does to plain calls in between."""

import numpy as np

from .hooked import to_numpy
from .programs import PROGRAMS


def applies(program):
    return program.planned and not program.heavy and program.name in WITH_GRADIENTS


# An Instance is not made while tests are collected.
WITH_GRADIENTS = {
    "plain function", "custom_gradient", "recompute_grad", "map_fn, scan, vectorized_map", "while loop with TensorArrays", "conds and cases",
    "called functions that are not inlined", "ragged inputs and outputs", "sparse inputs and outputs", "input_signature with unknown dimensions",
    "pinned devices", "called from an eager loop, under tapes and without",
}


# TensorFlow does not repeat these to the bit itself: what several iterations add to one gradient is added in the order in which it comes.
NOT_REPEATED = {"while loop with TensorArrays", "map_fn, scan, vectorized_map"}


def test_gradients(kind, plain, planned, cell, seen):
    def act(instance):
        assert instance.gradient is not None
        found = []
        for i in range(3):
            found.append(to_numpy(instance.gradient(i)))
            if instance.second is not None:
                found.append(to_numpy(instance.second(i)))
            found.append(to_numpy(instance.step(i)))
        return found

    want, got = plain(act), planned(act)
    if kind.name in NOT_REPEATED:
        for a, b in zip(want, got, strict=True):
            for (_, _, x), (_, _, y) in zip(a, b, strict=True):
                x, y = (np.frombuffer(data, np.float32) for data in (x, y))
                np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5 * np.abs(x).max())
    else:
        assert got == want
    assert any("(forward)" in r.function and r.status == "planned" for r in seen())
    assert any("(backward)" in r.function and r.status == "planned" for r in seen())
    cell()


def test_the_list_is_whole():
    for program in PROGRAMS.values():
        if program.planned and not program.heavy:
            assert (program.make().gradient is not None) == (program.name in WITH_GRADIENTS), program.name

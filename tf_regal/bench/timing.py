"""Repeated measurements: medians with their spread."""

import dataclasses
import time

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sample:
    """median, low and high (smallest and largest) of `repeats` measurements, in whatever unit they are."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, values):
        return cls(float(np.median(values)), float(min(values)), float(max(values)), len(values))


def seconds(function):
    """How long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def interleaved(functions, repeats):
    """{name: function that returns a measurement} → {name: list of float, one per round}.

    One round after the other, in turning order: a machine whose speed drifts must favour none.
    """
    names, found = list(functions), {name: [] for name in functions}
    for repeat in range(repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(functions[name]())
    return found


def ratio(values, others):
    """Sample of the ratios of measurements of the same rounds."""
    return Sample.of([a / b for a, b in zip(values, others, strict=True)])


def peak_and_seconds(tf, device, call):
    """(peak in bytes above what was in use before, seconds) of one call, whose results are waited for.

    device: a name that `tf.config.experimental.get_memory_info` knows, such as "CPU:0" (where oneDNN is on) or "GPU:0".
    """
    tf.config.experimental.reset_memory_stats(device)
    before = tf.config.experimental.get_memory_info(device)["current"]
    began = time.perf_counter()
    result = call()
    tf.nest.map_structure(lambda t: t.numpy(), result)
    took = time.perf_counter() - began
    del result
    return tf.config.experimental.get_memory_info(device)["peak"] - before, took

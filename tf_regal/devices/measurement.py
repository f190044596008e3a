"""How fast devices and the links between processes really are: a few kernels and transfers, timed by TensorFlow functions that run there."""

import dataclasses
import hashlib
import json
import statistics
import time

from absl import logging

from tf_regal import errors, storage
from tf_regal.devices.spec import Link

_VERSION = 1  # of what is measured and how
_REPEATS = 7
_MATRIX = 512
_SMALL, _LARGE = 4, 1 << 20  # float32 elements
_BYTES = 4
_FEW, _MANY = 2, 10  # ops in a chain: the difference of two chains is free of what a call costs
_TINY_OPS = 200
_SIGNIFICANT = 3  # digits: more would only be noise, and make every plan file another


@dataclasses.dataclass(frozen=True)
class Speed:
    """flops: FLOP/s of a matrix product. bandwidth: bytes/s of an element-wise product. launch_overhead_ns: of an op that does nearly nothing."""

    flops: float
    bandwidth: float
    launch_overhead_ns: int


def cached(key, measure, again=False):
    """measure() → JSON value, kept under `key` (a JSON value) in the user's cache; measured again if `again`."""
    directory = storage.cache_directory()
    digest = hashlib.sha256(json.dumps([_VERSION, key], sort_keys=True).encode()).hexdigest()[:32]
    path = directory / f"devices-{digest}.json"
    if path.exists() and not again:
        try:
            return storage.read_checked_json(path)
        except errors.PlanFileError as error:
            logging.warning("tf_regal: the measured speeds of the devices are measured again: %s", error)
    value = measure()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        storage.write_checked_json(path, value)
    except OSError as error:
        logging.warning("tf_regal: the measured speeds of the devices could not be kept in %s: %s", directory, error)
    return value


def speed(tf, device):
    """The `Speed` of a device (full name)."""
    matrix = _values(tf, device, [_MATRIX, _MATRIX])
    product = _per_op(tf, device, lambda x: x @ matrix, [_MATRIX, _MATRIX], _FEW, _MANY)
    factors = _values(tf, device, [4 * _LARGE])
    element_wise = _per_op(tf, device, lambda x: x * factors, [4 * _LARGE], _FEW, _MANY)
    few = _values(tf, device, [_SMALL])
    tiny = _per_op(tf, device, lambda x: x * few, [_SMALL], _FEW, _TINY_OPS)
    return Speed(
        flops=_rounded(2 * _MATRIX**3 / max(product - tiny, 1e-9)),
        bandwidth=_rounded(3 * 4 * _LARGE * _BYTES / max(element_wise - tiny, 1e-9)),
        launch_overhead_ns=int(_rounded(tiny * 1e9)),
    )


def link(tf, source, target):
    """The `Link` between two devices, from transfers back and forth: both directions together."""
    small = _transfer(tf, source, target, _SMALL, _MANY)
    large = _transfer(tf, source, target, _LARGE, _FEW)
    return Link(int(_rounded(small * 1e9)), _rounded(_LARGE * _BYTES / max(large - small, 1e-9)))


def _values(tf, device, shape):
    with tf.device(device):
        return tf.fill(shape, 1.0001)


def _per_op(tf, device, op, shape, few, many):
    """Seconds that one `op` takes in a chain of them."""
    start = _values(tf, device, shape)
    times = [_seconds(_chain(tf, [device], op, n), start) for n in (few, many)]
    return max(times[1] - times[0], 0.0) / (many - few)


def _transfer(tf, source, target, elements, hops):
    """Seconds of one transfer: a chain of ops that goes back and forth, less the same chain on one device."""
    start = _values(tf, source, [elements])
    # As many ops on the source at the end in both: its result is read by this process.
    # TensorFlow would take chains of other cheap ops together in one, on one device.
    there_and_back = _seconds(_chain(tf, [target, source], tf.nn.leaky_relu, 2 * hops), start)
    here = _seconds(_chain(tf, [source], tf.nn.leaky_relu, 2 * hops), start)
    return max(there_and_back - here, 0.0) / (2 * hops)


def _chain(tf, devices, op, length):
    @tf.function(autograph=False)
    def run(x):
        for i in range(length):
            with tf.device(devices[i % len(devices)]):
                x = op(x)
        with tf.device(devices[-1]):
            return tf.reduce_sum(x[:1])

    return run


def _seconds(function, argument):
    """Of a call whose result is waited for: the median of several, after one that is not counted."""
    function(argument).numpy()
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        function(argument).numpy()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _rounded(value):
    return float(f"{value:.{_SIGNIFICANT}g}")

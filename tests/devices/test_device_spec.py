"""DeviceSpec and Link: what they take, and what they say when they do not."""

import dataclasses
import math

import numpy as np
import pytest

from tf_regal.devices import DeviceSpec, Link
from tf_regal.errors import InvalidArgumentError, TopologyError

GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"


def spec(**changes):
    return DeviceSpec(**({"name": GPU0, "model": "X", "kind": "GPU", "flops": 1e12, "bandwidth": 1e9} | changes))


def test_defaults():
    device = spec()
    assert (device.lanes, device.memory, device.launch_overhead_ns) == (1, None, 0)


def test_numbers_become_plain_python():
    device = spec(flops=np.float32(2), bandwidth=3, lanes=np.int64(4), memory=5e3, launch_overhead_ns=np.int32(6))
    kinds = [type(getattr(device, field)) for field in ("flops", "bandwidth", "lanes", "memory", "launch_overhead_ns")]
    assert kinds == [float, float, int, int, int]
    assert device == spec(flops=2.0, bandwidth=3.0, lanes=4, memory=5000, launch_overhead_ns=6)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec().flops = 1.0


def test_worker_names_are_valid():
    assert spec(name="/job:worker/replica:0/task:12/device:GPU:3").name.endswith("task:12/device:GPU:3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "NPU"}, r"^kind='NPU' is not a device kind: give one of CPU, GPU, TPU"),
        ({"kind": ["GPU"]}, r"^kind=\['GPU'\]"),
        ({"name": "GPU:0"}, r"^name='GPU:0' is not a full TensorFlow device name: write it like '/job:localhost"),
        ({"name": None}, r"^name=None is not a full TensorFlow device name"),
        ({"kind": "CPU"}, r"is of type 'GPU' and kind='CPU': make them equal, for instance name='/job.*CPU:0'"),
        ({"model": " "}, r"^model=' ' must be a str that is not empty"),
        ({"flops": 0}, r"^flops=0 is out of range: give FLOP/s, a number > 0 and finite"),
        ({"flops": math.nan}, r"^flops=nan is out of range"),
        ({"flops": math.inf}, r"^flops=inf is out of range"),
        ({"flops": "1e12"}, r"^flops='1e12' is not a number: give FLOP/s"),
        ({"flops": True}, r"^flops=True is not a number"),
        ({"bandwidth": -1.0}, r"^bandwidth=-1.0 is out of range: give bytes/s"),
        ({"lanes": 0}, r"^lanes=0 is out of range: give the number of ops that run at once"),
        ({"lanes": 2**31}, r"^lanes=2147483648 is out of range: give at most 2\*\*31 - 1"),
        ({"lanes": 1.5}, r"^lanes=1.5 is not a whole number"),
        ({"memory": 0}, r"^memory=0 is out of range: give bytes \(None: unlimited\), 1 to"),
        ({"memory": "16GB"}, r"^memory='16GB' is not a whole number: give bytes"),
        ({"memory": True}, r"^memory=True is not a whole number"),
        ({"memory": 2**63}, r"^memory=9223372036854775808 is out of range"),
        ({"memory": math.inf}, r"^memory=inf is not a whole number"),
        ({"launch_overhead_ns": -1}, r"^launch_overhead_ns=-1 is out of range: give ns, 0 to"),
    ],
)
def test_errors(changes, message):
    with pytest.raises(TopologyError, match=message):
        spec(**changes)


def test_errors_are_value_errors_and_short():
    with pytest.raises(InvalidArgumentError, match=r"^model=") as caught:
        spec(model=["x" * 10_000] * 100)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 1500


def test_links_may_be_free():
    assert Link(latency_ns=0, bandwidth=math.inf).bandwidth == math.inf


@pytest.mark.parametrize(
    ("latency_ns", "bandwidth", "message"),
    [
        (-1, 1e9, r"^latency_ns=-1 is out of range: give ns"),
        (0.5, 1e9, r"^latency_ns=0.5 is not a whole number"),
        (0, 0, r"^bandwidth=0 is out of range: give bytes/s, a number > 0 \(math.inf: free\)"),
        (0, None, r"^bandwidth=None is not a number"),
        (0, math.nan, r"^bandwidth=nan is out of range"),
    ],
)
def test_link_errors(latency_ns, bandwidth, message):
    with pytest.raises(TopologyError, match=message):
        Link(latency_ns, bandwidth)

"""Topology: construction, arrays, copies."""

import dataclasses
import math
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from tf_regal.devices import DeviceSpec, Link, Topology
from tf_regal.errors import TopologyError


def device(index, **changes):
    fields = {"model": "X", "kind": "GPU", "flops": 1e12, "bandwidth": 1e9}
    return DeviceSpec(name=f"/job:localhost/replica:0/task:0/device:GPU:{index}", **(fields | changes))


def pair(**changes):
    fields = {
        "name": "pair",
        "devices": [device(0), device(1)],
        "latency_ns": [[0, 5], [7, 0]],
        "bandwidth": [[1, 2e9], [4e9, 1]],
    }
    return Topology(**(fields | changes))


def test_importing_does_not_import_tensorflow():
    code = "import sys, tf_regal.devices as d; d.Topology.parse('4xTPUv4'); sys.exit('tensorflow' in sys.modules)"
    root = pathlib.Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_properties():
    topology = pair()
    assert topology.n_devices == 2
    assert topology.names == tuple(f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in (0, 1))
    assert topology.kinds == ("GPU", "GPU")
    assert topology.link(0, 1) == Link(5, 2e9)
    assert topology.link(1, 0) == Link(7, 4e9)
    assert topology.blocking_transfers is False


def test_the_diagonal_is_free_whatever_was_given():
    topology = pair(latency_ns=[[9, 5], [7, 9]])
    assert topology == pair()
    assert topology.link(1, 1) == Link(0, math.inf)


def test_equal_topologies_have_equal_hashes():
    assert hash(pair()) == hash(pair(latency_ns=np.array([[0, 5], [7, 0]]), bandwidth=np.array([[1, 2e9], [4e9, 1]])))
    assert pair() != pair(blocking_transfers=True)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair().name = "other"


def test_arrays():
    arrays = pair(devices=[device(0, lanes=3, memory=100), device(1)]).arrays()
    assert set(arrays) == {"lanes", "capacity", "latency", "ns_per_byte"}
    assert [arrays[key].dtype for key in ("lanes", "capacity", "latency", "ns_per_byte")] == [
        np.int32,
        np.int64,
        np.int64,
        np.float64,
    ]
    np.testing.assert_array_equal(arrays["lanes"], [3, 1])
    np.testing.assert_array_equal(arrays["capacity"], [100, np.iinfo(np.int64).max])
    np.testing.assert_array_equal(arrays["latency"], [[0, 5], [7, 0]])
    np.testing.assert_array_equal(arrays["ns_per_byte"], [[0, 0.5], [0.25, 0]])


def test_arrays_of_free_links():
    np.testing.assert_array_equal(Topology.parse("paper").arrays()["ns_per_byte"], np.zeros((2, 2)))


def test_from_links():
    topology = Topology.from_links("made", [device(0), device(1)], lambda i, j: Link(10 * i + j, 1e9))
    assert topology.latency_ns == ((0, 1), (10, 0))


def test_with_memory():
    topology = pair()
    limited = topology.with_memory(2**30)
    assert [entry.memory for entry in limited.devices] == [2**30] * 2
    assert limited.with_memory(None) == topology
    assert topology.devices[0].memory is None


@pytest.mark.parametrize("memory", [0, -1, 1.5, "1GB"])
def test_with_memory_errors(memory):
    with pytest.raises(TopologyError, match=rf"^memory={re.escape(repr(memory))}"):
        pair().with_memory(memory)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, r"^name='' must be a str"),
        ({"devices": []}, r"^devices has 0 entries: give 1 to 64 devices"),
        ({"devices": [device(i) for i in range(65)]}, r"^devices has 65 entries: give 1 to 64 devices"),
        ({"devices": device(0)}, r"^devices=DeviceSpec\(.*must be a sequence of DeviceSpec"),
        ({"devices": 3}, r"^devices=3 must be a sequence of DeviceSpec"),
        ({"devices": [device(0), "GPU:1"]}, r"^devices\[1\]='GPU:1' is not a DeviceSpec"),
        (
            {"devices": [device(4), device(4)]},
            r"^devices\[1\].name='.*GPU:4' is also the name of devices\[0\]: give every",
        ),
        (
            {"devices": [device(0), device(1, flops=2e12)]},
            r"^devices\[1\].flops=2000000000000.0, but devices\[0\] of the same model 'X' has 1000000000000.0: give",
        ),
        (
            {"devices": [device(0), device(1, bandwidth=2e9)]},
            r"^devices\[1\].bandwidth=2000000000.0, but devices\[0\] of",
        ),
        ({"devices": [device(0), device(1, launch_overhead_ns=1)]}, r"^devices\[1\].launch_overhead_ns=1, but"),
        ({"latency_ns": [[0, 1]]}, r"^latency_ns has 1 rows: 2 devices need 2 x 2 entries \(row: source"),
        ({"latency_ns": [[0, 1], [0, 1, 2]]}, r"^latency_ns\[1\] has 3 entries: 2 devices need 2 x 2"),
        ({"latency_ns": [[0, 1], 5]}, r"^latency_ns\[1\] has the value 5: 2 devices need"),
        ({"latency_ns": 5}, r"^latency_ns=5 is not a matrix: 2 devices need"),
        ({"latency_ns": np.array(5)}, r"^latency_ns=array\(5\) is not a matrix"),
        ({"latency_ns": [[0, -1], [0, 0]]}, r"^latency_ns\[0\]\[1\]=-1 is out of range: give ns"),
        ({"latency_ns": [[0, 0.5], [0, 0]]}, r"^latency_ns\[0\]\[1\]=0.5 is not a whole number"),
        ({"bandwidth": [[1, 1], [0, 1]]}, r"^bandwidth\[1\]\[0\]=0 is out of range: give bytes/s, a number > 0"),
        ({"bandwidth": [[1]]}, r"^bandwidth has 1 rows"),
        ({"bandwidth": [[1, None], [1, 1]]}, r"^bandwidth\[0\]\[1\]=None is not a number"),
        ({"blocking_transfers": "no"}, r"^blocking_transfers='no' must be True or False"),
    ],
)
def test_errors(changes, message):
    with pytest.raises(TopologyError, match=message):
        pair(**changes)

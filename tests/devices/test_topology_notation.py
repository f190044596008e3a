"""Topology.parse: every form that it takes, and a message for what it does not take."""

import math
import pathlib

import pytest

from tf_regal.devices import Topology, device_model, device_models, link_model
from tf_regal.errors import TopologyError

TASK = "/job:localhost/replica:0/task:0/device:"


def test_topology_is_returned_as_it_is():
    topology = Topology.parse("2xT4")
    assert Topology.parse(topology) is topology


@pytest.mark.parametrize("model", [entry.model for entry in device_models()])
def test_every_model_can_be_named(model):
    topology = Topology.parse(f"3x{model}")
    entry = device_model(model)
    assert topology.name == f"3x{model}"
    assert [device.model for device in topology.devices] == [model] * 3
    assert topology.names == tuple(f"{TASK}{entry.kind}:{index}" for index in range(3))
    assert topology.link(0, 2) == link_model(entry.peer_link).link


@pytest.mark.parametrize(
    "spec", ["2xA100-40GB", "2xa100", " 2 X A100 ", "02xA100-40gb", "1xA100+1xA100-40GB", "A100+A100"]
)
def test_same_devices_written_differently(spec):
    expected = Topology.parse("2xA100-40GB")
    topology = Topology.parse(spec)
    assert (topology.devices, topology.latency_ns, topology.bandwidth) == (
        expected.devices,
        expected.latency_ns,
        expected.bandwidth,
    )


def test_a_link_holds_for_all_devices():
    topology = Topology.parse("2xA100-40GB+1xCPU@pcie5")
    assert {topology.link(i, j) for i in range(3) for j in range(3) if i != j} == {link_model("PCIe5").link}
    assert Topology.parse("2xA100@Free").link(0, 1).bandwidth == math.inf


def test_mix():
    topology = Topology.parse("1xCPU+2xT4+1xL4")
    assert topology.names == (f"{TASK}CPU:0", f"{TASK}GPU:0", f"{TASK}GPU:1", f"{TASK}GPU:2")
    assert [device.model for device in topology.devices] == ["CPU", "T4", "T4", "L4"]
    # Different models: the slower of the two host links, both ways.
    assert topology.link(0, 1) == topology.link(1, 0) == link_model("PCIe3").link
    assert topology.link(0, 3) == link_model("PCIe4").link
    assert topology.link(2, 3) == link_model("PCIe3").link


def test_paper():
    topology = Topology.parse("Paper")
    a100 = device_model("A100-40GB")
    assert topology.name == "paper"
    assert topology.kinds == ("GPU", "GPU")
    assert topology.latency_ns == ((0, 0), (0, 0))
    assert topology.bandwidth == ((math.inf,) * 2,) * 2
    for device in topology.devices:
        assert (device.memory, device.launch_overhead_ns, device.lanes) == (16 * 2**30, 0, 1)
        assert (device.flops, device.bandwidth) == (a100.flops, a100.bandwidth)


def test_two_cpus_are_logical_devices_of_one_host():
    topology = Topology.parse("2xCPU")
    assert topology.names == (f"{TASK}CPU:0", f"{TASK}CPU:1")
    assert [device.lanes for device in topology.devices] == [1, 1]
    assert topology.link(0, 1).latency_ns == 5_000
    assert topology.link(0, 1).bandwidth == topology.devices[0].bandwidth


def test_most_devices():
    assert Topology.parse("64xTPUv4").n_devices == 64
    assert Topology.parse("32xT4+32xL4").names[-1] == f"{TASK}GPU:63"


def test_paths(tmp_path):
    topology = Topology.parse("2xT4")
    path = tmp_path / "Two Cards.JSON"
    topology.save(path)
    assert Topology.parse(path) == topology
    assert Topology.parse(str(path)) == topology


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", r"^topology='': '' is not of the form COUNTxMODEL; valid are \"2xA100-40GB\""),
        ("2*T4", r"^topology='2\*T4': '2\*T4' is not of the form COUNTxMODEL; valid are"),
        ("-1xT4", r"^topology='-1xT4': '-1xT4' is not of the form"),
        ("1.5xT4", r"'1.5xT4' is not of the form"),
        ("2xT4+", r"^topology='2xT4\+': '' is not of the form"),
        ("\u0662xT4", r"is not of the form COUNTxMODEL"),
        ("0xT4", r"^topology='0xT4': the count '0' is out of range: give 1 to 64 devices"),
        ("65xT4", r"the count '65' is out of range: give 1 to 64 devices"),
        ("9" * 6000 + "xT4", r"the count '99999999999999999999' is out of range"),
        ("40xT4+40xL4", r"^topology='40xT4\+40xL4': that is 80 devices: give 1 to 64"),
        (
            "2xA10O",
            r"^topology='2xA10O': device model 'A10O' is not in the catalogue: V100-16GB, .*did you mean 'A100'",
        ),
        ("2xTPU4", r"did you mean 'TPUv4'.*; or describe the devices in a .json file \(Topology.save\)"),
        ("2xRTX4090", r"device model 'RTX4090' is not in the catalogue: [^;]*; or describe the devices"),
        ("papr", r"did you mean 'paper'"),
        ("lokal", r"did you mean 'local'"),
        ("2xT4@PCI4", r"^topology='2xT4@PCI4': link 'PCI4' is not in the catalogue: Free, .*did you mean 'PCIe4'"),
        ("2xT4@", r"link '' is not in the catalogue"),
        ("2xT4@PCIe3@PCIe4", r"one link at most, at the end, holds for all devices; valid are"),
        ("1xCPU@PCIe3+2xT4", r"link 'PCIe3\+2xT4' is not in the catalogue"),
        ("paper@PCIe3", r"^topology='paper@PCIe3': 'paper' has links of its own: leave '@PCIe3' out"),
        ("some/path", r"^topology='some/path' looks like a path, but does not end in .json"),
        (pathlib.Path("topology.yaml"), r"^topology=PosixPath\('topology.yaml'\) is a path that does not end in .json"),
        ("nowhere.json", r"^topology='nowhere.json' cannot be read \(No such file or directory\): give the path of"),
        (None, r"^topology=None is of type NoneType: valid are \"2xA100-40GB\" \(COUNTxMODEL\)"),
        (2, r"^topology=2 is of type int: valid are"),
        (b"2xT4", r"^topology=b'2xT4' is of type bytes: valid are"),
        (["2xT4"], r"^topology=\['2xT4'\] is of type list: valid are"),
    ],
)
def test_errors(spec, message):
    with pytest.raises(TopologyError, match=message):
        Topology.parse(spec)

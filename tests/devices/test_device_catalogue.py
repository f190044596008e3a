"""The catalogue: names, aliases, figures that fit together, and a source for each."""

import re

import pytest

from tf_regal.devices import Link, Topology, device_model, device_models, link_model, link_models
from tf_regal.errors import TopologyError

MODELS = [entry.model for entry in device_models()]
LINKS = [entry.name for entry in link_models()]


def test_what_can_be_named():
    assert set(MODELS) == {
        "V100-16GB", "V100-32GB", "A100-40GB", "A100-80GB", "H100-80GB", "L4", "T4",
        "TPUv2", "TPUv3", "TPUv4", "TPUv5e", "TPUv5p", "CPU",
    }  # fmt: skip
    assert {"NVLink2", "NVLink3", "NVLink4", "PCIe3", "PCIe4", "PCIe5", "ICIv4", "Ethernet10G", "Ethernet100G"} <= set(
        LINKS
    )
    assert len({name.lower() for name in MODELS}) == len(MODELS)
    assert len({name.lower() for name in LINKS}) == len(LINKS)


@pytest.mark.parametrize("alias", ["A100", "a100", "a100-40gb", "A100-40GB"])
def test_letter_case_and_aliases(alias):
    assert device_model(alias).model == "A100-40GB"
    assert device_model("V100").model == "V100-16GB"
    assert device_model("h100").model == "H100-80GB"
    assert link_model("pcie4") is link_model("PCIe4")


@pytest.mark.parametrize("entry", device_models(), ids=MODELS)
def test_devices_are_valid_and_have_a_source(entry):
    kind = "CPU" if entry.model == "CPU" else "TPU" if entry.model.startswith("TPU") else "GPU"
    device = entry.spec(f"/job:localhost/replica:0/task:0/device:{kind}:7")
    assert (device.kind, device.model, device.lanes) == (kind, entry.model, 1)
    assert re.search(r"\b20\d\d\b", entry.source)
    assert 1e12 < device.flops < 1e15
    assert 1e11 < device.bandwidth < 1e13
    assert device.memory is None or 2**30 < device.memory < 2**37
    assert link_model(entry.peer_link).link.bandwidth < device.bandwidth + 1
    assert link_model(entry.host_link).name.startswith("PCIe")


@pytest.mark.parametrize("entry", link_models(), ids=LINKS)
def test_links_are_valid_and_have_a_source(entry):
    assert isinstance(entry.link, Link)
    assert entry.source


def test_figures_that_everyone_knows():
    assert device_model("A100-40GB").flops == 156e12
    assert device_model("A100-80GB").bandwidth == 2039e9
    assert device_model("V100-16GB").flops == 15.7e12
    assert device_model("T4").bandwidth == 320e9
    assert link_model("NVLink3").link.bandwidth == 300e9
    assert link_model("PCIe4").link.bandwidth == pytest.approx(16e9 * 16 / 8 * 128 / 130, rel=1e-3)
    assert link_model("Ethernet10G").link.bandwidth == 1.25e9


def test_models_with_other_figures_differ_in_the_topology():
    small, large = Topology.parse("1xA100-40GB+1xA100-80GB").devices
    assert large.memory == 2 * small.memory
    assert large.flops == small.flops


def test_unknown_device_model():
    with pytest.raises(
        TopologyError, match=r"device model 'A1000' is not in the catalogue: V100-16GB, .*did you mean.*'A100'"
    ):
        device_model("A1000")


def test_unknown_link():
    with pytest.raises(TopologyError, match=r"link 'nvlink' is not in the catalogue: Free, .*did you mean 'NVLink"):
        link_model("nvlink")

"""`tf-regal devices`: what is here, what can be named, and one topology."""

import re

from tf_regal import devices


def test_what_is_here_and_the_catalogue(run):
    found = run("devices", "--json").json
    assert devices.Topology.from_json(found["here"]) == devices.Topology.detect()
    assert [entry["model"] for entry in found["catalogue"]["devices"]] == [m.model for m in devices.device_models()]
    assert [entry["name"] for entry in found["catalogue"]["links"]] == [m.name for m in devices.link_models()]
    assert all(entry["source"] for kind in found["catalogue"].values() for entry in kind)
    a100 = next(entry for entry in found["catalogue"]["devices"] if entry["model"] == "A100-40GB")
    assert (a100["flops"], a100["bandwidth"], a100["memory"]) == (156e12, 1555e9, 40 * 2**30)


def test_text_has_units(run):
    result = run("devices")
    assert result.code == 0
    assert re.search(
        r"^  A100-40GB +GPU +156\.0 TFLOP/s +1\.555 TB/s +40 GiB +5000 ns +NVLink3 +PCIe4$", result.out, re.MULTILINE
    )
    assert re.search(r"^  CPU +CPU .* unlimited ", result.out, re.MULTILINE)
    assert re.search(r"^  Free +0 ns +free$", result.out, re.MULTILINE)
    assert re.search(r"^  CPU:0 ", result.out, re.MULTILINE)


def test_one_topology(run):
    result = run("devices", "1xCPU+2xT4")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[1:4]] == ["CPU:0", "GPU:0", "GPU:1"]
    assert "between any two" in result.out
    found = run("devices", "1xCPU+2xT4", "--json").json
    assert devices.Topology.from_json(found) == devices.Topology.parse("1xCPU+2xT4")


def test_links_that_differ_are_listed(run, tmp_path):
    one = devices.Topology.parse("2xT4")
    slow_back = devices.Topology(
        "pair", one.devices, [[0, 1000], [2000, 0]], [[1, 1e9], [2e9, 1]], blocking_transfers=True
    )
    slow_back.save(tmp_path / "pair.json")
    text = run("devices", tmp_path / "pair.json").out
    assert re.search(r"GPU:0 -> GPU:1 +1\.000 us +1\.000 GB/s", text)
    assert re.search(r"GPU:1 -> GPU:0 +2\.000 us +2\.000 GB/s", text)
    assert "occupies both its devices" in text


def test_a_memory_limit(run):
    found = run("devices", "2xT4", "--memory-limit", "1.5GiB", "--json").json
    assert [device["memory"] for device in found["devices"]] == [3 * 2**29] * 2


def test_one_device_has_no_links(run):
    assert "link" not in run("devices", "1xT4").out
    assert "free" in run("devices", "paper").out

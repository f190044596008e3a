"""Measured speeds: what is timed, kept and used."""

import pytest

from tf_regal import errors
from tf_regal.devices import Topology, detection, measurement

# Importing tensorflow is left to the functions, as in test_device_detection.py.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TF_REGAL_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_cpu_is_measured_once(cache, monkeypatch):
    plain = Topology.detect(measure=False)
    first = Topology.detect(measure=True)
    assert [d.name for d in first.devices] == [d.name for d in plain.devices]
    for device in first.devices:
        assert device.model.endswith(", measured")
        assert 1e8 < device.flops < 1e13 and 1e8 < device.bandwidth < 1e13
        assert 0 <= device.launch_overhead_ns < 1_000_000
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(measurement, "speed", None)  # nothing is timed again
    assert Topology.detect(measure=True) == first
    with pytest.raises(TypeError):
        Topology.detect(measure="again")


def test_a_damaged_file_is_measured_again(cache):
    Topology.detect(measure=True)
    (path,) = cache.iterdir()
    path.write_text("{")
    Topology.detect(measure=True)
    assert path.stat().st_size > 10


def test_devices_by_name():
    here = Topology.detect()
    first = here.names[0]
    assert Topology.parse(first).names == (first,)
    assert Topology.parse("/device:CPU:0").names == (first,)
    assert Topology.parse("/job:localhost").names == here.names
    with pytest.raises(errors.TopologyError, match=r"topology='/job:worker' names no device .* it sees /job:localhost"):
        Topology.parse("/job:worker")


@pytest.mark.parametrize("measure", ["yes", 1, 0, []])
def test_bad_measure(measure):
    with pytest.raises(errors.TopologyError, match="measure="):
        Topology.detect(measure=measure)


def test_this_process_answers():
    assert detection.answers(detection.local_process())
    assert not detection.answers("/job:nowhere/replica:0/task:3")

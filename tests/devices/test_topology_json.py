"""Topologies as JSON: nothing is lost, and files that people wrote by hand are answered with what to mend."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_regal.devices import DeviceSpec, Topology
from tf_regal.errors import TopologyError

SPECS = ["2xA100-40GB", "1xCPU+2xT4", "paper", "TPUv5p", "3xL4@Ethernet10G"]


@pytest.mark.parametrize("spec", SPECS)
def test_round_trip(spec, tmp_path):
    topology = Topology.parse(spec)
    text = json.dumps(topology.to_json(), allow_nan=False)
    assert Topology.from_json(json.loads(text)) == topology
    topology.save(tmp_path / "t.json")
    assert Topology.load(tmp_path / "t.json") == topology
    assert Topology.load(str(tmp_path / "t.json")).name == topology.name


@st.composite
def topologies(draw):
    count = draw(st.integers(1, 4))
    positive = st.floats(1e-300, 1e300, allow_nan=False)
    devices = [
        DeviceSpec(
            name=f"/job:worker/replica:0/task:{index}/device:CPU:0",
            model=f"{draw(st.text())} {index}",
            kind="CPU",
            flops=draw(positive),
            bandwidth=draw(positive),
            lanes=draw(st.integers(1, 2**31 - 1)),
            memory=draw(st.none() | st.integers(1, 2**63 - 1)),
            launch_overhead_ns=draw(st.integers(0, 2**40)),
        )
        for index in range(count)
    ]

    def square(entries):
        return draw(st.lists(st.lists(entries, min_size=count, max_size=count), min_size=count, max_size=count))

    latency_ns, bandwidth = square(st.integers(0, 2**63 - 1)), square(positive | st.just(math.inf))
    return Topology("any", devices, latency_ns, bandwidth, draw(st.booleans()))


@settings(deadline=None)
@given(topologies())
def test_round_trip_of_any_topology(topology):
    assert Topology.from_json(json.loads(json.dumps(topology.to_json(), allow_nan=False))) == topology


def test_saved_text_is_what_to_json_gives(tmp_path):
    topology = Topology.parse("1xCPU+2xT4")
    topology.save(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert json.loads(text) == topology.to_json()
    assert sum('"name": "/job' in line for line in text.splitlines()) == 3, "one device a line"


def test_document():
    document = Topology.parse("2xT4").to_json()
    assert list(document) == ["schema", "name", "blocking_transfers", "devices", "links"]
    assert document["schema"] == 1
    assert document["links"]["bandwidth"][0][0] is None


def test_written_by_hand_with_defaults():
    device = {
        "name": "/job:localhost/replica:0/task:0/device:GPU:0",
        "model": "mine",
        "kind": "GPU",
        "flops": 1e12,
        "bandwidth": 5e11,
    }
    links = {"latency_ns": [[5e3]], "bandwidth": [[1e9]]}
    topology = Topology.from_json({"schema": 1, "name": "mine", "devices": [device], "links": links})
    assert (topology.devices[0].lanes, topology.devices[0].memory, topology.blocking_transfers) == (1, None, False)


def broken(change):
    document = json.loads(json.dumps(Topology.parse("2xT4").to_json()))
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=2), r"schema=2: this version reads schema 1"),
        (lambda d: d.update(schema="1"), r"schema='1': this version reads schema 1"),
        (lambda d: d.pop("schema"), r"the topology lacks the key 'schema': needed are schema, name, devices, links"),
        (lambda d: d.pop("links"), r"the topology lacks the key 'links'.*writes a file to start from"),
        (
            lambda d: d.update(device=[]),
            r"the topology has the unknown key 'device': known are schema, .*did you mean 'devices'",
        ),
        (lambda d: d.update(devices={}), r"devices=\{\} is not a list of objects"),
        (lambda d: d.update(devices=[]), r"devices has 0 entries: give 1 to 64 devices"),
        (lambda d: d.update(devices=["T4", "T4"]), r"devices\[0\] is 'T4', not an object"),
        (lambda d: d.update(name=7), r"name=7 must be a str"),
        (lambda d: d.update(blocking_transfers=1), r"blocking_transfers=1 must be True or False"),
        (lambda d: d["devices"][1].pop("flops"), r"devices\[1\] lacks the key 'flops': needed are name, model, kind"),
        (lambda d: d["devices"][1].update(flop=1), r"devices\[1\] has the unknown key 'flop'.*did you mean 'flops'"),
        (lambda d: d["devices"][1].update(flops=-1), r"devices\[1\]\.flops=-1 is out of range: give FLOP/s"),
        (lambda d: d["devices"][1].update(bandwidth=None), r"devices\[1\]\.bandwidth=None is not a number"),
        (lambda d: d["devices"][1].update(memory=-5), r"devices\[1\]\.memory=-5 is out of range"),
        (lambda d: d["devices"][1].update(kind="XPU"), r"devices\[1\]\.kind='XPU' is not a device kind"),
        (lambda d: d["devices"][1].update(name="GPU:1"), r"devices\[1\]\.name='GPU:1' is not a full TensorFlow"),
        (lambda d: d["devices"].pop(), r"links.latency_ns has 2 rows: 1 device needs 1 x 1 entries"),
        (lambda d: d["devices"].append(d["devices"][0]), r"devices\[2\].name=.* is also the name of devices\[0\]"),
        (lambda d: d.update(links=[]), r"links is \[\], not an object"),
        (lambda d: d["links"].pop("bandwidth"), r"links lacks the key 'bandwidth': needed are latency_ns, bandwidth"),
        (lambda d: d["links"].update(latency=1), r"links has the unknown key 'latency'.*did you mean 'latency_ns'"),
        (lambda d: d["links"].update(bandwidth=None), r"links.bandwidth=None is not a matrix"),
        (lambda d: d["links"]["bandwidth"][1].pop(), r"links.bandwidth\[1\] has 1 entries: 2 devices need 2 x 2"),
        (lambda d: d["links"]["bandwidth"].pop(), r"links.bandwidth has 1 rows: 2 devices need 2 x 2"),
        (lambda d: d["links"]["latency_ns"][0].__setitem__(1, -3), r"links.latency_ns\[0\]\[1\]=-3 is out of range"),
        (lambda d: d["links"]["latency_ns"][0].__setitem__(1, None), r"links.latency_ns\[0\]\[1\]=None is not a whole"),
    ],
)
def test_errors(change, message, tmp_path):
    document = broken(change)
    with pytest.raises(TopologyError, match=rf"^topology=\{{.*: (?:{message})"):
        Topology.from_json(document)
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(TopologyError, match=rf"^topology='.*broken\.json': (?:{message})"):
        Topology.parse(str(path))


@pytest.mark.parametrize("document", [[], "2xT4", None, 5])
def test_not_an_object(document):
    with pytest.raises(TopologyError, match=r"the topology is .*, not an object: Topology.parse"):
        Topology.from_json(document)


def test_malformed_json_names_the_line(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{\n  "schema": 1,\n  "name": oops\n}\n', encoding="utf-8")
    with pytest.raises(TopologyError, match=r"^topology='.*t\.json' is not JSON: line 3, column 11: .*mend that line"):
        Topology.load(path)


def test_empty_and_binary_and_deep_files(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b"")
    with pytest.raises(TopologyError, match=r"is not JSON: line 1, column 1"):
        Topology.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TopologyError, match=r"is not UTF-8 text"):
        Topology.load(path)
    path.write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(TopologyError, match=r"is nested too deeply"):
        Topology.load(path)


def test_folder_in_place_of_a_file(tmp_path):
    folder = tmp_path / "folder.json"
    folder.mkdir()
    with pytest.raises(TopologyError, match=r"folder\.json' cannot be read \(Is a directory\)"):
        Topology.parse(folder)


def test_save_where_there_is_no_folder(tmp_path):
    with pytest.raises(
        TopologyError, match=r"^path='.*t\.json' cannot be written \(No such file or directory\): give a"
    ):
        Topology.parse("2xT4").save(tmp_path / "missing" / "t.json")

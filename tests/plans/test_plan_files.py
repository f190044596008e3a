"""Plans on disk: nothing is lost, and no damage goes unseen."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest

import tf_regal
from tf_regal import errors
from tf_regal.plans import Plan

from .models_for_plans import plan_of

VARIANTS = [
    {},
    {"objective": "peak_memory"},
    {"method": "topological", "order": "full"},
    {"order": "none"},
    {"topology": "2xA100-40GB", "batch_size": 4},
]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_every_field_comes_back(tmp_path, settings):
    plan = plan_of(**settings)
    plan.save(tmp_path / "p.json")
    again = tf_regal.load_plan(tmp_path / "p.json")
    for field in dataclasses.fields(plan):
        if field.name == "details":
            assert json.dumps(again.details.to_json()) == json.dumps(plan.details.to_json())
            continue
        a, b = getattr(plan, field.name), getattr(again, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert a.shape == b.shape, field.name
            np.testing.assert_array_equal(a, b, field.name)
        else:
            assert a == b, field.name
            assert type(a) is type(b), field.name
    assert again.placement == plan.placement
    assert again.order == plan.order
    assert again.control_edges == plan.control_edges
    assert json.dumps(again.to_json()) == json.dumps(plan.to_json())


def test_str_and_pathlike_paths(tmp_path):
    plan = plan_of()
    plan.save(str(tmp_path / "a.json"))
    plan.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert tf_regal.load_plan(str(tmp_path / "a.json")).fingerprint == plan.fingerprint


def test_saving_again_replaces(tmp_path):
    plan_of(order="none").save(tmp_path / "p.json")
    plan_of().save(tmp_path / "p.json")
    assert tf_regal.load_plan(tmp_path / "p.json").order_mode == "needed"
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_any_changed_byte_is_seen(tmp_path):
    path = tmp_path / "p.json"
    plan_of().save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    positions = {int(i) for i in rng.integers(0, len(content.rstrip()), 300)} | {0, 1, 15, len(content.rstrip()) - 1}
    for position in positions:
        changed = bytearray(content)
        changed[position] ^= 1 + int(rng.integers(0, 100))
        path.write_bytes(changed)
        try:
            same = tf_regal.load_plan(path)
        except errors.PlanFileError:
            continue
        # JSON may say the same in other bytes (upper-case hex of an escape): then nothing may have changed.
        assert same.to_json() == plan_of().to_json(), position


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_file(tmp_path, share):
    path = tmp_path / "p.json"
    plan_of().save(path)
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(errors.PlanFileError, match=r"path='.*p\.json' cannot be read as JSON .*truncated.*Plan again"):
        tf_regal.load_plan(path)


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfe\x00", b"{", b""])
def test_not_json(tmp_path, content):
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(errors.PlanFileError, match="cannot be read as JSON"):
        tf_regal.load_plan(tmp_path / "p.json")


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '{"data": {}}'])
def test_json_of_something_else(tmp_path, content):
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(errors.PlanFileError, match=r"is JSON but no tf-regal file \(it has no 'sha256' and 'data'\)"):
        tf_regal.load_plan(tmp_path / "p.json")


def test_no_such_file_and_directory(tmp_path):
    with pytest.raises(errors.PlanFileError, match=r"there is no such file\. Make one with `tf-regal plan"):
        tf_regal.load_plan(tmp_path / "none.json")
    with pytest.raises(errors.PlanFileError, match="cannot be read"):
        tf_regal.load_plan(tmp_path)


def test_directory_to_save_in_is_missing(tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match=r"path=.*the directory '.*nowhere' does not exist\. Create it first"):
        plan_of().save(tmp_path / "nowhere" / "p.json")


def signed(tmp_path, change):
    """A plan file whose data was changed and whose checksum fits."""
    data = json.loads(json.dumps(plan_of().to_json()))
    change(data)
    text = json.dumps(data, separators=(",", ":"))
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "data": data}))
    return path


DAMAGE = {
    "schema": (lambda d: d.update(schema=99), r"schema 99; this version reads 1"),
    "no schema": (lambda d: d.pop("schema"), r"schema None"),
    "kind": (lambda d: d.update(kind="tf_regal.OpGraph"), "not a tf-regal plan"),
    "missing": (lambda d: d.pop("device"), r"damaged: KeyError\('device'\)"),
    "wrong type": (lambda d: d.update(predicted=3), "damaged"),
    "short column": (lambda d: d["start_ns"].pop(), "different lengths"),
    "device too high": (lambda d: d["device"].__setitem__(0, 2), "devices or ops that it does not have"),
    "device negative": (lambda d: d["device"].__setitem__(0, -1), "devices or ops that it does not have"),
    "op twice": (lambda d: d["start_order"].__setitem__(0, d["start_order"][1]), "devices or ops that it does not have"),
    "edge": (lambda d: d["edges"].append([0, 10_000]), "an edge names an op that it does not have"),
    "edge of three": (lambda d: d.update(edges=[[0, 1, 2]]), "damaged"),
    "text for numbers": (lambda d: d.update(device=["a"] * len(d["device"])), "damaged"),
    "list for a plan": (lambda d: (d.clear(), d.update(x=1)), "not a tf-regal plan"),
    "topology": (lambda d: d["topology"].update(devices=[]), "damaged"),
    "search": (lambda d: d["search"].update(other=1), "damaged"),
    "unknown objective": (lambda d: d.update(objective="speed"), "damaged"),
    "op names twice": (lambda d: d["ops"].__setitem__(0, d["ops"][1]), "damaged"),
    "transfer of no op": (lambda d: d.update(transfers=[[10_000, 0, 1, 0, 1, 8]]), "damaged"),
    "transfer to no device": (lambda d: d.update(transfers=[[0, 0, 7, 0, 1, 8]]), "damaged"),
    "memory of too few devices": (lambda d: d["memory"].pop(), "damaged"),
    "huge device": (lambda d: d["device"].__setitem__(0, 2**40), "damaged"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_wrong_content_with_a_fitting_checksum(tmp_path, what):
    change, text = DAMAGE[what]
    path = signed(tmp_path, change)
    with pytest.raises(errors.PlanFileError, match=text):
        tf_regal.load_plan(path)


def test_not_a_dict():
    for data in (None, [], "plan", 3):
        with pytest.raises(errors.PlanFileError, match="not a tf-regal plan"):
            Plan.from_json(data)


def test_renamed():
    plan = plan_of()
    names = [f"n{i}" for i in range(len(plan.ops))]
    renamed = plan.renamed(names)
    assert list(renamed.placement) == names
    assert list(renamed.placement.values()) == list(plan.placement.values())
    assert plan.placement.keys() == set(plan.ops)
    with pytest.raises(errors.PlanMismatchError, match=r"the plan is for \d+ ops; the graph has 1\. Plan this graph again"):
        plan.renamed(["a"])

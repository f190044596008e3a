"""Policies on disk: a whole one is taken, anything else is refused with what is wrong, and planning goes on without where nobody named it."""

# bazel: manual (trains a policy, which needs TensorFlow and Spektral)
import json
import logging
import shutil

import pytest

import tf_regal
from tf_regal import errors
from tf_regal.bench import graphs
from tf_regal.policy import cards, inference
from tf_regal.settings import Settings


@pytest.fixture
def copy(trained, tmp_path):
    shutil.copytree(trained.policy, tmp_path / "policy")
    return tmp_path / "policy"


def change(path, **fields):
    card = json.loads((path / cards.CARD).read_text())
    (path / cards.CARD).write_text(json.dumps(card | fields))


def planned(policy, **settings):
    return tf_regal.plan(graphs.layered(60), topology="2xA100-40GB", policy=policy, evaluations=100, cache_dir=False, **settings)


def test_a_whole_one(copy):
    card = cards.read(copy, "runtime")
    assert card["training"]["algorithm"] == "pgpe"
    assert card["results"]["steps"] == 4
    assert "saved_model.pb" in card["files"]
    assert planned(copy).search.policy == str(copy)


def damage_file(path):
    (path / "saved_model.pb").write_bytes(b"nonsense")


def lose_file(path):
    (path / "variables" / "variables.index").unlink()


def damage_card(path):
    (path / cards.CARD).write_text("{")


def list_for_card(path):
    (path / cards.CARD).write_text("[]")


def lose_card(path):
    (path / cards.CARD).unlink()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (damage_file, "is damaged: saved_model.pb has changed"),
        (lose_file, "is damaged: variables/variables.index is missing"),
        (damage_card, "card.json is damaged"),
        (list_for_card, "card.json is damaged .it holds a list"),
        (lose_card, "has no card.json"),
        (lambda p: change(p, feature_version=99), "has feature_version 99; this version of tf-regal needs"),
        (lambda p: change(p, format=0), "has format 0"),
        (lambda p: change(p, choices=[16, [1.0]]), "has choices"),
        (lambda p: change(p, objective="peak_memory"), "is for the objective 'peak_memory', not for 'runtime'"),
        (lambda p: change(p, files={}), "names no SavedModel"),
        (shutil.rmtree, "is not a directory"),
    ],
)
def test_one_that_was_named_and_cannot_be_used_is_an_error(copy, harm, message):
    harm(copy)
    with pytest.raises(errors.PolicyError, match=message):
        planned(copy)


def test_a_saved_model_that_is_no_policy(copy, tmp_path):
    import tensorflow as tf

    tf.saved_model.save(tf.Module(), str(tmp_path / "other"))
    card = json.loads((copy / cards.CARD).read_text())
    fields = {k: v for k, v in card.items() if k not in ("files", "format", "feature_version", "choices")}
    cards.write(tmp_path / "other", fields)
    with pytest.raises(errors.PolicyError, match="cannot be loaded"):
        planned(tmp_path / "other")


def test_auto_without_the_shipped_policy_is_one_warning_and_uniform(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(cards, "shipped", lambda objective: tmp_path / objective)
    monkeypatch.setattr(inference, "_warned", set())
    with caplog.at_level(logging.WARNING, "absl"):
        plans = [planned("auto", method="brkga") for _ in range(2)]
    assert [plan.search.policy for plan in plans] == [None, None]
    assert [record.getMessage() for record in caplog.records if "policy" in record.getMessage()] == [caplog.records[0].getMessage()]
    assert "the search draws uniformly" in caplog.records[0].getMessage()


def test_methods_that_draw_nothing_use_no_policy(copy):
    assert planned(copy, method="heft").search.policy is None


def test_enable_refuses_one_that_cannot_be_used(copy):
    damage_file(copy)
    with pytest.raises(errors.PolicyError, match="has changed"):
        tf_regal.enable(policy=copy)
    assert not tf_regal.is_enabled()


def test_auto_is_for_searches_that_gain_from_it():
    assert planned("auto", method="brkga").search.policy == "runtime"
    assert planned("auto", method="brkga", objective="peak_memory").search.policy == "peak_memory"
    assert planned("auto").search.policy is None


def test_no_policy():
    assert planned(None).search.policy is None


@pytest.mark.parametrize("policy", [3, "", b"auto", True])
def test_bad_settings(policy):
    with pytest.raises(errors.InvalidArgumentError, match=r"policy=.* is not valid; expected 'auto', the directory of a policy, or None"):
        planned(policy)


def test_the_cache_knows_policies_apart(copy, trained):
    def key(policy):
        return Settings(policy=policy, method="brkga").key()["policy"]

    before = key(copy)
    assert before == key(str(copy)) == key(trained.policy)  # the same policy elsewhere is the same
    change(copy, results={})
    assert len({before, key(copy), key(None), key("auto")}) == 4

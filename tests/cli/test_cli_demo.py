"""`tf-regal demo` in processes of its own: it sets TensorFlow up."""

import sys

import pytest


@pytest.mark.slow
def test_it_says_why_it_needs_a_new_process(process):
    code = "import sys, tensorflow as tf; tf.constant(0); from tf_regal.cli import main; sys.exit(main(['demo']))"
    result = process(program=(sys.executable, "-c", code))
    assert (result.code, result.out) == (1, "")
    assert "run `tf-regal demo` in a new one" in result.err.splitlines()[-1]


@pytest.mark.slow
def test_json(process):
    result = process("demo", "--json")
    assert result.code == 0, result.err
    training, inference = result.json["training"], result.json["inference"]
    for found in (training, inference):
        assert found["status"] == "planned"
        assert found["bitwise_equal"] is True
        applied = found["applied"]
        assert applied["ops_on_planned_device"] > 0.95 * applied["ops_planned"] > 0
        assert applied["control_edges"] == applied["control_edges_planned"]
    # On CPUs a plan for speed may need none.
    assert inference["applied"]["control_edges"] > 0
    assert training["tensorflow_repeats_itself"] is True
    assert all(count > 10 for count in training["ops"].values())
    assert len(training["ops"]) == 2
    assert training["predicted"]["makespan_s"] < 0.8 * training["default"]["makespan_s"]
    predicted = {which: max(inference[which]["peak_bytes"].values()) for which in ("default", "predicted")}
    assert predicted["predicted"] < 0.85 * predicted["default"]
    measured = inference["measured_peak_bytes"]
    assert len(measured["default"]) == len(measured["planned"]) == inference["calls"]
    # What is predicted is what happens: the planned peak, and below the default's.
    assert measured["planned"][0] == pytest.approx(predicted["predicted"], rel=0.15)
    assert measured["planned"][-1] < measured["default"][0]


@pytest.mark.slow
def test_text(process):
    result = process("demo")
    assert result.code == 0, result.err
    for text in (
        "predicted time per step",
        "predicted peak memory",
        "bitwise equal to the default's: yes",
        "applied  ",
    ):
        assert text in result.out
    assert result.out.splitlines()[-1].startswith("Your own model:     tf-regal plan ")
    assert result.err.splitlines() == [
        "demo: an inference within less memory ...",
        "demo: a Keras training step on two devices ...",
    ]

"""The one file of private TensorFlow names: all of them are there, and what happens where one is not or the version is another."""

import logging

import pytest
import tensorflow as tf
from tf_setup import SPREAD, clean_hook, seen

import tf_regal
from tf_regal import _tf_private as tfp
from tf_regal import errors

__all__ = ["clean_hook", "seen"]


def test_everything_is_there():
    tfp.check()
    assert ".".join(tf.__version__.split(".")[:2]) in tfp.SUPPORTED_VERSIONS


@pytest.mark.parametrize(
    ("owner", "name"),
    [(tfp.transform, "CONCRETE_FUNCTION_CALLBACKS"), (tfp.atomic_function, "from_function_def"), (tfp.polymorphic_function.Function, "_clone"),
     (tfp.concrete_function.ConcreteFunction, "_select_forward_and_backward_functions"), (tfp.concrete_function, "_TapeGradientFunctions")],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_a_name_that_is_missing(monkeypatch, owner, name):
    monkeypatch.delattr(owner, name)
    with pytest.raises(errors.UnsupportedVersionError, match=name):
        tfp.check()


def test_an_unsupported_version_is_one_warning_and_an_inactive_hook(monkeypatch, caplog, seen):
    monkeypatch.setattr(tf, "__version__", "2.99.0")
    monkeypatch.setattr(logging.getLogger("absl"), "propagate", True)
    with caplog.at_level(logging.WARNING, logger="absl"), tf_regal.enable(**{**SPREAD, "on_error": "warn"}):
        assert not tf_regal.is_enabled()
        for _ in range(2):
            assert float(tf.function(lambda x: tf.sin(x) + 1.0)(tf.constant(0.0))) == 1.0
    warnings = [record.getMessage() for record in caplog.records if "tf_regal" in record.getMessage()]
    assert len(warnings) == 1 and "2.99.0" in warnings[0] and "2.21" in warnings[0]
    assert seen() == []


def test_an_unsupported_version_is_an_error_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(tf, "__version__", "2.99.0")
    with pytest.raises(errors.UnsupportedVersionError, match=r"2\.99\.0.*2\.19, 2\.20, 2\.21"):
        tf_regal.enable(**SPREAD)


def test_graphs_are_made_without_running_anything():
    v = tf.Variable(0.0)
    concrete = tf.function(lambda x: v.assign_add(tf.reduce_sum(x))).get_concrete_function(tf.ones([3]))
    graphs = tfp.instantiate(concrete._inference_function, [tf.ones([3]), *concrete.captured_inputs])
    assert v.numpy() == 0.0
    assert any(node.op == "AssignAddVariableOp" for g in graphs for node in g.post_optimization_graph.node)

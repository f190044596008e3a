"""`tf_regal.apply` on a GraphDef: what the results do not need stays, and the result can be imported beside the original."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tf_setup import SPREAD

import tf_regal

v1 = tf.compat.v1


def planned(graph_def, inputs, outputs, **settings):
    plan = tf_regal.plan(graph_def, inputs=inputs, outputs=outputs, **{**SPREAD, **settings})
    return tf_regal.apply(plan, graph_def, inputs=inputs, outputs=outputs)


def counting():
    """A variable with its initializer and a saver, a result that updates it, and a summary of something else."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None], name="x")
        total = v1.get_variable("total", initializer=3.0, use_resource=True)
        update = total.assign_add(tf.reduce_sum(x), read_value=False)
        with tf.control_dependencies([update]):
            tf.identity(total.read_value() * 2.0, name="doubled")
        summary = v1.summary.scalar("mean", tf.reduce_mean(x))
        total.initializer  # noqa: B018
        saver = v1.train.Saver([total]).as_saver_def()
    return graph.as_graph_def(), total.initializer.name, saver, summary.name


def test_initializers_savers_and_summaries_stay(tmp_path):
    graph_def, init, saver, summary = counting()
    result = planned(graph_def, ["x"], ["doubled"])
    names = [node.name for node in result.node]
    assert len(set(names)) == len(names)
    assert {node.name for node in graph_def.node} - set(names) <= {n.name for n in graph_def.node if n.op in ("Const", "Identity", "NoOp", "ReadVariableOp")}
    with v1.Session(graph=tf.Graph()) as session:
        tf.import_graph_def(result, name="")
        session.run(init)
        assert session.run("doubled:0", {"x:0": [1.0, 2.0]}) == 12.0
        session.run(saver.save_tensor_name, {saver.filename_tensor_name: str(tmp_path / "c")})
        assert session.run("doubled:0", {"x:0": [1.0, 0.0]}) == 14.0
        session.run(saver.restore_op_name, {saver.filename_tensor_name: str(tmp_path / "c")})
        assert session.run("doubled:0", {"x:0": [0.0, 0.0]}) == 12.0
        assert v1.Summary.FromString(session.run(summary, {"x:0": [1.0, 3.0]})).value[0].simple_value == 2.0


def test_what_grappler_took_away_is_there_for_what_was_not_planned():
    """Of a normalisation in three parts only the first output is a result; another node, which is none, needs its mean."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [2, 4, 4, 3], name="x")
        folded = tf.constant([1.0, 2.0, 3.0]) * 2.0
        y, mean, _ = v1.nn.fused_batch_norm(x, folded, folded + 1.0, name="bn")
        tf.nn.relu(y, name="y")
        tf.add(mean, folded, name="other")
    graph_def = graph.as_graph_def()
    result = planned(graph_def, ["x"], ["y"])
    value = np.random.default_rng(0).standard_normal((2, 4, 4, 3)).astype(np.float32)

    def run(definition):
        with v1.Session(graph=tf.Graph()) as session:
            tf.import_graph_def(definition, name="")
            return session.run(["y:0", "other:0"], {"x:0": value})

    for got, want in zip(run(result), run(graph_def), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_loop_is_imported_beside_the_original():
    """Grappler rewrites the loop's body under its name; this process knows the original already."""

    @tf.function(input_signature=[tf.TensorSpec([3, 3], tf.float32)])
    def loop(x):
        for _ in tf.range(4):
            x = tf.tanh(x @ x + 0.5 * (x @ x))
        return x

    value = tf.constant(np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32))
    want = loop(value)
    for lower in (False, True):
        frozen = convert_variables_to_constants_v2(loop.get_concrete_function(), lower_control_flow=lower)
        inputs, outputs = [t.name for t in frozen.inputs], [t.name for t in frozen.outputs]
        result = planned(frozen.graph.as_graph_def(), inputs, outputs)
        imported = v1.wrap_function(lambda d=result: tf.import_graph_def(d, name=""), [])
        run = imported.prune([imported.graph.as_graph_element(n) for n in inputs], [imported.graph.as_graph_element(n) for n in outputs])
        np.testing.assert_allclose(tf.function(lambda x, run=run: run(x))(value)[0], want, rtol=1e-5)

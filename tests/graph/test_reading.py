"""What is in the OpGraph of a function: what will run, with shapes, state, views, groups and devices."""

import numpy as np
import pytest
import tensorflow as tf

from tf_regal import errors
from tf_regal.graph import OpGraph, models

SPEC = tf.TensorSpec([16, 16])
KB = 16 * 16 * 4


def graph_of(python_function, *specs, **options):
    concrete = tf.function(python_function).get_concrete_function(*(specs or (SPEC,)))
    return models.read(concrete, default_device="/job:localhost/replica:0/task:0/device:CPU:0", **options).graph


def ops_of(graph, kind):
    return [i for i, t in enumerate(graph.types) if t == kind]


def outputs_of(graph, op):
    return np.flatnonzero(graph.producer == op).tolist()


def test_dead_ops_are_gone():
    def f(x):
        tf.exp(x) @ tf.cos(x)
        return tf.sin(x) @ x

    graph = graph_of(f)
    assert set(graph.types) == {"_Arg", "Sin", "MatMul", "_Retval"} | ({"Identity"} & set(graph.types))


def test_duplicates_are_merged():
    graph = graph_of(lambda x: tf.tanh(x) @ x + tf.sin(tf.tanh(x)) @ tf.tanh(x))
    assert graph.types.count("Tanh") == 1


def test_constants_are_folded():
    graph = graph_of(lambda x: x @ (tf.sin(tf.ones([16, 16])) + 3.0))
    assert set(graph.types) & {"Sin", "Fill", "AddV2"} == set()


def test_called_functions_are_inlined():
    innermost = tf.function(lambda x: tf.sin(x) @ x)
    inner = tf.function(lambda x: tf.tanh(innermost(x)) + innermost(x + 1))
    graph = graph_of(lambda x: inner(x) @ inner(x * 2))
    assert graph.types.count("Sin") == 4
    assert not {"PartitionedCall", "StatefulPartitionedCall"} & set(graph.types)


def test_sizes_are_those_of_the_shapes():
    graph = graph_of(lambda x, y: tf.cast(tf.tanh(x[:5] @ y), tf.float64), tf.TensorSpec([16, 16]), tf.TensorSpec([16, 3]))
    (op,) = ops_of(graph, "Cast")
    assert graph.size[outputs_of(graph, op)].tolist() == [5 * 3 * 8]
    (op,) = ops_of(graph, "MatMul")
    assert graph.size[outputs_of(graph, op)].tolist() == [5 * 3 * 4]


def test_shapes_behind_variables_are_known():
    w, b = tf.Variable(tf.ones([16, 50])), tf.Variable(tf.ones([50]))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w + b) ** 2)
        gw, gb = tape.gradient(loss, [w, b])
        w.assign_sub(gw)
        b.assign_sub(gb)
        return loss

    graph = graph_of(step)
    for op in ops_of(graph, "MatMul"):
        assert graph.size[outputs_of(graph, op)].tolist() in ([16 * 50 * 4],)
    persistent = sorted(graph.persistent[graph.persistent > 0].tolist())
    assert 16 * 50 * 4 in persistent and 50 * 4 in persistent and KB in persistent
    assert graph.bindings == []


def test_variables_are_paid_for_once():
    w = tf.Variable(tf.ones([100, 100]))
    inner = tf.function(lambda x: x @ w)

    def f(x):
        w.assign_add(tf.sin(w))
        return inner(inner(x)) + w.read_value()[:16]

    graph = graph_of(f, tf.TensorSpec([16, 100]))
    assert int((graph.persistent == 100 * 100 * 4).sum()) == 1


def test_everything_that_touches_a_variable_is_in_one_group():
    v, w = tf.Variable(tf.ones([16, 16])), tf.Variable(tf.ones([16, 16]))

    def f(x):
        y = x @ v.read_value()
        v.assign_add(y)
        w.assign_sub(tf.sin(y))
        v.assign(v.read_value() * 2.0)
        return w.read_value()

    graph = graph_of(f)
    groups = []
    for arg in ops_of(graph, "_Arg"):
        tensors = outputs_of(graph, arg)
        users = [op for op in range(graph.n_ops) if set(graph.inputs(op).tolist()) & set(tensors)]
        if any(graph.types[u] in ("ReadVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp") for u in users):
            assert {graph.group[u] for u in users} == {graph.group[arg]}
            groups.append(graph.group[arg])
    assert len(groups) == 2
    assert groups[0] != groups[1]
    (matmul,) = ops_of(graph, "MatMul")
    assert graph.group[matmul] not in groups


def test_unknown_batch_is_bound_and_said():
    spec = tf.TensorSpec([None, 16])
    body = lambda x: tf.sin(x) @ tf.ones([16, 4])  # noqa: E731
    default, asked = graph_of(body, spec), graph_of(body, spec, batch_size=7)
    for graph, batch in ((default, 32), (asked, 7)):
        (op,) = ops_of(graph, "MatMul")
        assert graph.size[outputs_of(graph, op)].tolist() == [batch * 4 * 4]
        assert len(graph.bindings) == 1
        assert f"dimension 0 = {batch}" in graph.bindings[0]
        assert "argument x" in graph.bindings[0]
    assert "default" in default.bindings[0] and "batch_size=" in default.bindings[0]
    assert "(batch_size)" in asked.bindings[0]


def test_other_unknown_dimensions_and_ranks():
    graph = graph_of(lambda x: tf.sin(x) + 1, tf.TensorSpec([2, None]))
    assert any("dimension 1 = 1" in b for b in graph.bindings)
    graph = graph_of(lambda x: tf.sin(x) + 1, tf.TensorSpec(None))
    assert any("unknown rank" in b for b in graph.bindings)


def test_dimensions_that_only_a_run_tells():
    graph = graph_of(lambda x: tf.sin(tf.boolean_mask(x, x[:, 0] > 0)) @ x)
    assert any("only a run can tell" in b for b in graph.bindings)
    (op,) = ops_of(graph, "Sin")
    assert graph.size[outputs_of(graph, op)].tolist() == [32 * 16 * 4]


def test_known_shapes_need_no_binding():
    assert graph_of(lambda x: tf.sin(x) @ x).bindings == []


def test_views_share_their_input():
    graph = graph_of(lambda x: tf.sin(tf.expand_dims(tf.reshape(tf.tanh(x), [-1]), 0)) + 1)
    (tanh,) = ops_of(graph, "Tanh")
    for kind in ("Reshape", "ExpandDims"):
        for op in ops_of(graph, kind):
            (tensor,) = outputs_of(graph, op)
            assert graph.view[tensor] in graph.inputs(op)
    chain = [t for op in ops_of(graph, "Reshape") for t in outputs_of(graph, op)]
    assert chain
    assert graph.producer[graph.view[chain[0]]] == tanh
    assert graph.view[outputs_of(graph, tanh)[0]] == -1


def test_element_wise_ops_may_take_their_input_over():
    graph = graph_of(lambda x: tf.tanh(tf.sin(x @ x)) @ x)
    (sin,), (tanh,) = ops_of(graph, "Sin"), ops_of(graph, "Tanh")
    for op in (sin, tanh):
        (tensor,) = outputs_of(graph, op)
        reuse = graph.reuse_idx[graph.reuse_ptr[tensor]:graph.reuse_ptr[tensor + 1]].tolist()
        assert reuse == graph.inputs(op).tolist()
    for op in ops_of(graph, "MatMul"):
        (tensor,) = outputs_of(graph, op)
        assert graph.reuse_ptr[tensor] == graph.reuse_ptr[tensor + 1]


def test_results_live_to_the_end_and_constants_for_ever():
    graph = graph_of(lambda x: tf.sin(x) @ tf.constant(np.random.default_rng(0).random((16, 16), np.float32)))
    (matmul,), (sin,) = ops_of(graph, "MatMul"), ops_of(graph, "Sin")
    lifetime = {graph.producer[t]: graph.lifetime[t] for t in range(graph.n_tensors)}
    assert lifetime[sin] == 0
    assert lifetime[ops_of(graph, "Const")[0]] == lifetime[ops_of(graph, "_Arg")[0]] == 2
    assert graph.persistent[ops_of(graph, "Const")[0]] == KB
    result = [t for op in ops_of(graph, "_Retval") for t in graph.inputs(op)]
    assert [graph.lifetime[t] for t in result] == [1]
    del matmul


def test_requested_devices_are_kept():
    @tf.function
    def inner(x):
        with tf.device("/CPU:1"):
            return tf.sin(x, name="deep")

    def f(x):
        with tf.device("/device:CPU:1"):
            y = tf.tanh(x @ x, name="shallow")
        return inner(y) + y

    graph = graph_of(f)
    by_type = dict(zip(graph.types, graph.devices, strict=True))
    for kind in ("Tanh", "Sin", "MatMul"):
        assert by_type[kind].upper().endswith("CPU:1"), (kind, by_type[kind])
    assert by_type["AddV2"] == ""


def test_kinds():
    graph = graph_of(lambda x: (tf.strings.upper(tf.strings.as_string(x)), tf.sin(x) @ x))
    kinds = dict(zip(graph.types, graph.kinds, strict=True))
    assert kinds["StringUpper"] == ["CPU"]  # as kernels.get_registered_kernels_for_op("StringUpper") says
    assert kinds["AsString"] == ["CPU"]
    assert kinds["MatMul"] == ["CPU", "GPU", "TPU"]
    assert kinds["Sin"] == ["CPU", "GPU", "TPU"]


def test_an_op_of_a_type_that_only_the_cpu_has():
    body = lambda x, n: (tf.sin(x) @ x, tf.sets.size(tf.sparse.from_dense(n)))  # noqa: E731
    graph = graph_of(body, SPEC, tf.TensorSpec([4, 4], tf.int32))
    kinds = dict(zip(graph.types, graph.kinds, strict=True))
    assert kinds["SetSize"] == ["CPU"]
    assert "GPU" in kinds["MatMul"]


def test_json_round_trip(tmp_path):
    import json

    graph = graph_of(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: x @ x) @ x, tf.TensorSpec([None, None]))
    graph.durations["A"] = np.arange(graph.n_ops)
    graph.save(tmp_path / "g.json")
    again = OpGraph.from_json(json.loads((tmp_path / "g.json").read_text()))
    assert again.to_json() == graph.to_json()
    assert again.durations["A"].tolist() == list(range(graph.n_ops))
    for name in ("group", "view", "lifetime", "orderable"):
        assert getattr(again, name).dtype == getattr(graph, name).dtype


@pytest.mark.parametrize(
    ("change", "text"),
    [({"kind": "x"}, "not an exported OpGraph"), ({"schema": 99}, "schema 99 is not supported"), ({"group": None}, "damaged"),
     ({"names": []}, "entries for 0 ops")],
)
def test_bad_json(change, text):
    data = {**graph_of(lambda x: tf.sin(x) @ x).to_json(), **change}
    with pytest.raises(errors.GraphError, match=text):
        OpGraph.from_json(data)


def test_missing_key_in_json():
    data = graph_of(lambda x: tf.sin(x) @ x).to_json()
    del data["producer"]
    with pytest.raises(errors.GraphError, match=r"damaged: KeyError\('producer'\)"):
        OpGraph.from_json(data)

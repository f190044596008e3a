"""Models in files: GraphDef, frozen GraphDef, SavedModel, CostGraphDef, exported OpGraph."""

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0

import tf_regal
from tf_regal import errors
from tf_regal.graph import models

COSTS = """
node { name: "_SOURCE" id: 0 }
node { name: "a" device: "/CPU:0" id: 1 compute_cost: 10 temporary_memory_size: 3 control_input: 0
       output_info { size: 100 alias_input_port: -1 } }
node { name: "b" id: 2 compute_cost: 20 input_info { preceding_node: 1 preceding_port: 0 }
       output_info { size: 50 alias_input_port: -1 } output_info { size: 60 alias_input_port: -1 } }
node { name: "c" id: 3 compute_cost: 30 input_info { preceding_node: 1 preceding_port: 0 } control_input: 2
       output_info { size: 100 alias_input_port: 0 shape { dim { size: 25 } } } }
node { name: "d" id: 7 compute_cost: 40 is_final: true
       input_info { preceding_node: 2 preceding_port: 1 }
       input_info { preceding_node: 3 preceding_port: 0 } input_info { preceding_node: 3 preceding_port: 0 }
       output_info { size: 8 alias_input_port: -1 } }
"""


def graph_def():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "x")
        y = tf.compat.v1.placeholder(tf.float32, [4, 4], "y")
        a, b = tf.split(tf.tanh(x @ y, name="h"), 2, axis=1, name="parts")
        tf.add(a, b, name="sum")
        tf.reduce_mean(tf.sin(x @ y), name="mean")
    return graph.as_graph_def()


def run(definition, x, y, outputs=("sum:0", "mean:0")):
    fn = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    pruned = fn.prune(["x:0", "y:0"], list(outputs))
    return pruned(tf.constant(x), tf.constant(y))


def test_cost_graph(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text(COSTS)
    graph = models.read(str(path)).graph
    assert graph.names == ["a", "b", "c", "d"]
    assert graph.durations["*"].tolist() == [10, 20, 30, 40]
    assert graph.scratch["*"].tolist() == [3, 0, 0, 0]
    assert graph.producer.tolist() == [0, 1, 1, 2, 3]
    assert graph.size.tolist() == [100, 50, 60, 100, 8]
    assert graph.view.tolist() == [-1, -1, -1, 0, -1]
    assert [graph.inputs(i).tolist() for i in range(4)] == [[], [0], [0], [2, 3]]
    assert [graph.control_inputs(i).tolist() for i in range(4)] == [[], [], [1], []]
    assert graph.lifetime.tolist() == [0, 0, 0, 0, 1]


def test_cost_graph_is_planned_and_cannot_be_applied(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text(COSTS)
    plan = tf_regal.plan(str(path), topology="paper", evaluations=200, cache_dir=False)
    assert plan.bounds.makespan_s == pytest.approx(100e-9)  # a, b, c, d wait for each other
    assert plan.predicted.makespan_s == pytest.approx(100e-9)
    assert set(plan.placement) == {"a", "b", "c", "d"}
    with pytest.raises(errors.GraphError, match="holds costs and edges only"):
        tf_regal.apply(plan, str(path))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [("preceding_node: 2 preceding_port: 1", "preceding_node: 2 preceding_port: 5", r"node 'd' takes port 5 of node 2, which is not there"),
     ("control_input: 2", "control_input: 9", r"node 'c' waits for node 9, which is not there"),
     ("node {", "nod {", "neither a GraphDef nor a CostGraphDef")],
)
def test_broken_cost_graph(tmp_path, old, new, text):
    path = tmp_path / "g.pbtxt"
    path.write_text(COSTS.replace(old, new))
    with pytest.raises(errors.GraphError, match=text):
        models.read(str(path))


def test_cost_graph_with_a_cycle_is_refused(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text(COSTS.replace("control_input: 2", "control_input: 7"))
    with pytest.raises(errors.TfRegalError, match="cycle"):
        tf_regal.plan(str(path), topology="paper", evaluations=10, cache_dir=False)


def test_negative_cost_is_refused(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text(COSTS.replace("compute_cost: 20", "compute_cost: -20").replace("size: 50", "size: -50"))
    with pytest.raises(errors.TfRegalError, match=r"b|negative|cost|size"):
        tf_regal.plan(str(path), topology="paper", evaluations=10, cache_dir=False)


@pytest.mark.parametrize("text", [True, False])
def test_graph_def_file(tmp_path, text):
    tf.io.write_graph(graph_def(), str(tmp_path), "g.pbtxt" if text else "g.pb", as_text=text)
    read = models.read(str(tmp_path / ("g.pbtxt" if text else "g.pb")), default_device=CPU0, batch_size=6)
    assert read.kind == "graph_def"
    graph = read.graph
    assert graph.types.count("_Arg") == graph.types.count("_Retval") == 2
    (tanh,) = [i for i, t in enumerate(graph.types) if t == "Tanh"]
    assert graph.size[graph.producer == tanh].tolist() == [6 * 4 * 4]
    assert graph.types.count("MatMul") == 1  # written twice, merged
    assert any("dimension 0 = 6" in b for b in graph.bindings)


def test_graph_def_planned_and_applied():
    rng = np.random.default_rng(0)
    x, y = rng.random((6, 4), np.float32), rng.random((4, 4), np.float32)
    plan = tf_regal.plan(graph_def(), topology="2xCPU", method="topological", order="full", cache_dir=False)
    planned = tf_regal.apply(plan, graph_def())
    assert isinstance(planned, type(graph_def()))
    devices = {node.name: node.device for node in planned.node}
    names = plan.topology.names
    for op, device in plan.placement.items():
        if devices.get(op):
            assert devices[op] == device
    assert len({d for d in devices.values() if d}) == len(names) == 2
    for want, got in zip(run(graph_def(), x, y), run(planned, x, y), strict=True):
        np.testing.assert_allclose(want, got, rtol=1e-6)
    nodes = {node.name: node for node in planned.node}
    for before, after in plan.control_edges:
        assert f"^{before}" in nodes[after].input


def test_ends_of_a_graph_def_can_be_named():
    whole = models.read(graph_def()).graph
    part = models.read(graph_def(), inputs=["x", "y:0"], outputs=["mean"]).graph
    assert whole.n_ops > part.n_ops
    assert "Tanh" not in part.types
    with pytest.raises(errors.GraphError, match=r"outputs names 'men', which is not in the graph"):
        models.read(graph_def(), outputs=["men"])
    with pytest.raises(errors.GraphError, match=r"inputs names 'z', which is not in the graph"):
        models.read(graph_def(), inputs=["z:0"])


def test_second_output_of_a_node_as_result():
    definition = graph_def()
    graph = models.read(definition, outputs=["parts:1", "parts:0"]).graph
    assert graph.types.count("_Retval") == 2


@pytest.mark.parametrize("outputs", [["parts:1", "parts"], ["h", "h"]])
def test_applied_graph_def_gives_results_under_their_names(outputs):
    rng = np.random.default_rng(0)
    x, y = rng.random((6, 4), np.float32), rng.random((4, 4), np.float32)
    plan = tf_regal.plan(graph_def(), outputs=outputs, topology="2xCPU", method="topological", order="full", cache_dir=False)
    planned = tf_regal.apply(plan, graph_def(), outputs=outputs)
    names = [name if ":" in name else f"{name}:0" for name in dict.fromkeys(outputs)]
    for want, got in zip(run(graph_def(), x, y, names), run(planned, x, y, names), strict=True):
        np.testing.assert_allclose(want, got, rtol=1e-6)


def test_port_that_a_node_does_not_have():
    with pytest.raises(errors.GraphError, match="parts"):
        models.read(graph_def(), outputs=["parts:7"])


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.reshape(tf.range(32.0), [4, 8]) / 32, name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])
    def one(self, x):
        h = tf.tanh(x @ self.w)
        return {"h": tf.sin(h), "s": tf.reduce_sum(h, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])
    def two(self, x):
        self.w.assign_add(tf.ones_like(self.w))
        return x @ self.w


@pytest.fixture
def saved(tmp_path):
    net = Net()
    path = str(tmp_path / "saved")
    tf.saved_model.save(net, path, signatures={"serving_default": net.one, "two": net.two})
    return net, path


def test_saved_model(saved):
    _, path = saved
    graph = models.read(path, default_device=CPU0, batch_size=3).graph
    (matmul,) = [i for i, t in enumerate(graph.types) if t == "MatMul"]
    assert graph.size[graph.producer == matmul].tolist() == [3 * 8 * 4]
    assert 4 * 8 * 4 in graph.persistent.tolist()
    other = models.read(path, signature="two", default_device=CPU0).graph
    assert "AssignAddVariableOp" in other.types


def test_planned_saved_model_runs_and_keeps_the_rest(saved, tmp_path):
    net, path = saved
    out = str(tmp_path / "deep" / "planned")
    plan = tf_regal.plan(path, topology="2xCPU", method="topological", order="full", batch_size=5, cache_dir=False)
    assert tf_regal.apply(plan, path, output=out, batch_size=5) == out
    loaded = tf.saved_model.load(out)
    x = tf.reshape(tf.range(20.0), [5, 4]) / 20
    for _ in range(2):
        got, want = loaded.signatures["serving_default"](x=x), net.one(x)
        for key in want:
            np.testing.assert_allclose(got[key], want[key], rtol=1e-6)
    assert sorted(loaded.signatures) == ["serving_default", "two"]
    np.testing.assert_allclose(loaded.signatures["two"](x=x)["output_0"], net.two(x), rtol=1e-6)
    np.testing.assert_allclose(loaded.w if hasattr(loaded, "w") else net.w, net.w)


def test_planned_saved_model_is_not_written_over(saved, tmp_path):
    _, path = saved
    plan = tf_regal.plan(path, topology="2xCPU", evaluations=10, cache_dir=False)
    with pytest.raises(errors.InvalidArgumentError, match=r"output=.* exists already"):
        tf_regal.apply(plan, path, output=str(tmp_path))
    with pytest.raises(errors.InvalidArgumentError, match="output=None"):
        tf_regal.apply(plan, path)


def test_signature_with_state(saved, tmp_path):
    net, path = saved
    out = str(tmp_path / "planned")
    plan = tf_regal.plan(path, signature="two", topology="2xCPU", method="topological", order="full", cache_dir=False)
    tf_regal.apply(plan, path, signature="two", output=out)
    loaded = tf.saved_model.load(out)
    x = tf.ones([2, 4])
    for _ in range(3):
        np.testing.assert_allclose(loaded.signatures["two"](x=x)["output_0"], net.two(x), rtol=1e-6)

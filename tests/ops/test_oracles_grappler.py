"""The makespan against TensorFlow's own simulator: Grappler's virtual cluster schedules the same placed graphs with the same costs.

Its virtual devices run one op at a time, the op that became ready first comes first, and transfers cost nothing: the fifo discipline with free links.
It keeps the costs in ns and reports them cut to whole microseconds; ours are the reported ones, so that its step is longer by less than 1 µs per op.
"""

import numpy as np
import pytest

from tf_regal import ops

from .cases import Graph

pytestmark = pytest.mark.slow  # they import TensorFlow, which must not be loaded into a sanitized process either

SIZE = 192


def towers(tf, on):
    """Four towers of different depths, two on each device, that end in a sum."""
    with on(0):
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[SIZE, SIZE])
    ends = []
    for tower in range(4):
        with on(tower % 2):
            y = x
            for _ in range(3 + tower):
                y = tf.nn.relu(tf.linalg.matmul(y, y))
            ends.append(y)
    with on(0):
        return tf.add_n(ends)


def training_step(tf, on):
    """Two dense layers on each device, a loss, and the gradients by the weights, each on its layer's device."""
    with on(0):
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[64, SIZE])
    weights = []
    for layer in range(4):
        with on(layer // 2):
            weights.append(tf.raw_ops.Placeholder(dtype=tf.float32, shape=[SIZE, SIZE]))
            x = tf.nn.tanh(tf.linalg.matmul(x, weights[-1]))
    with on(1):
        loss = tf.reduce_sum(x * x)
    slopes = tf.gradients(loss, weights)
    with on(0):
        return tf.add_n([w - 0.1 * slope for w, slope in zip(weights, slopes, strict=True)])


def inception_block(tf, on):
    """Convolutions of three sizes and a pooling side by side, joined, twice."""
    with on(0):
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[2, 16, 16, 32])
    for _ in range(2):
        branches = []
        for branch, kernel in enumerate((1, 3, 5)):
            with on(branch % 2):
                weights = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[kernel, kernel, 32, 16])
                branches.append(tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME")))
        with on(1):
            branches.append(tf.nn.max_pool2d(x, 3, 1, "SAME")[..., :16])
        with on(0):
            x = tf.concat(branches, -1)[..., :32]
    return x


def attention(tf, on):
    """Two heads of attention, one on each device, and the projection of both."""
    with on(0):
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[128, 64])
    heads = []
    for head in range(2):
        with on(head):
            q, k, v = (tf.linalg.matmul(x, tf.raw_ops.Placeholder(dtype=tf.float32, shape=[64, 32])) for _ in range(3))
            heads.append(tf.linalg.matmul(tf.nn.softmax(tf.linalg.matmul(q, k, transpose_b=True)), v))
    with on(1):
        return tf.linalg.matmul(tf.concat(heads, -1), tf.raw_ops.Placeholder(dtype=tf.float32, shape=[64, 64])) + x


GRAPHS = [towers, training_step, inception_block, attention]


def measured(build, n_devices):
    """(graph_def, {node: ns}, step in ns) of Grappler on n_devices virtual V100s."""
    import tensorflow as tf

    from tf_regal import _tf_private as tfp
    from tf_regal.devices import Topology, device_properties

    devices = [device_properties(spec, slowdown=1000) for spec in Topology.parse(f"{n_devices}xV100-16GB").devices]
    for device in devices:
        device.properties.ClearField("memory_size")
    graph = tf.Graph()
    with graph.as_default():
        result = build(tf, lambda place: tf.device(devices[place % n_devices].name))
    item = tfp.meta_graph_pb2.MetaGraphDef(graph_def=graph.as_graph_def())
    for node in item.graph_def.node:  # constants of shapes and the like
        node.device = node.device or devices[0].name
    item.collection_def["train_op"].node_list.value.append(result.op.name)
    cluster = tfp.grappler_cluster.Cluster(devices=devices)
    try:
        performances, seconds, _ = cluster.MeasureCosts(tfp.grappler_item.Item(item))
    finally:
        cluster.Shutdown()
    return item.graph_def, {p.node: int(p.compute_cost) for p in performances}, seconds * 1e9


@pytest.mark.parametrize("n_devices", [1, 2])
@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_step_time(build, n_devices):
    graph_def, costs, expected = measured(build, n_devices)
    nodes = [node for node in graph_def.node if node.name in costs]  # the others do not lead to the result
    index = {node.name: i for i, node in enumerate(nodes)}
    graph, tensors = Graph(devices=n_devices), {}
    for node in nodes:
        graph.op(costs[node.name])
    for node in nodes:
        for text in node.input:
            name, _, port = text.lstrip("^").partition(":")
            assert not text.startswith("^")
            key = name, port or "0"
            if key not in tensors:
                tensors[key] = graph.tensor(index[name], 0)
            if tensors[key] not in graph.ops[index[node.name]]["inputs"]:
                graph.ops[index[node.name]]["inputs"].append(tensors[key])
    device = np.array([int(node.device.rpartition(":")[2]) for node in nodes], np.int32)
    run = ops.Simulator(graph.problem()).run(device, np.zeros(len(nodes), np.float32), discipline="fifo")
    assert len(nodes) > 10 and set(device) == set(range(n_devices))
    assert run.makespan > 0 and run.makespan - 1000 <= expected <= run.makespan + 1000 * len(nodes)
    if n_devices == 1:
        assert run.makespan == sum(costs.values())
    else:
        assert run.makespan < 0.95 * sum(costs.values())  # else the placement would not have been put to the test

"""device_properties: Grappler's cost model must see the speed that the catalogue gives."""

import pytest
import tensorflow as tf

from tf_regal import _tf_private
from tf_regal.devices import DeviceSpec, Topology, device_models, device_properties
from tf_regal.errors import TopologyError

SIZE = 8192
ENTRIES = device_models()
IDS = [entry.model for entry in ENTRIES]


@pytest.fixture(scope="module")
def measure():
    """measure(properties) -> (FLOP/s, bytes/s) that Grappler's cost model works with on such a device."""

    def time_of(op, properties, field):
        graph = tf.Graph()
        with graph.as_default():
            inputs = [tf.compat.v1.placeholder(tf.float32, [SIZE, SIZE]) for _ in range(2)]
            tf.identity(op(*inputs, name="op"), name="out")
            definition = graph.as_graph_def()
            for node in definition.node:
                node.device = properties.name
            meta = tf.compat.v1.train.export_meta_graph(graph=graph, graph_def=definition)
        meta.collection_def["train_op"].node_list.value.append("out")
        cluster = _tf_private.grappler_cluster.Cluster(devices=[properties])
        costs, _, _ = cluster.MeasureCosts(_tf_private.grappler_item.Item(meta))
        (cost,) = [cost for cost in costs if cost.node == "op"]
        return getattr(cost, field) * 1e-9

    def run(properties):
        flops = 2 * SIZE**3 / time_of(tf.matmul, properties, "compute_time")
        bandwidth = 3 * 4 * SIZE**2 / time_of(tf.add, properties, "memory_time")
        return flops, bandwidth

    return run


def spec_of(entry):
    return entry.spec(f"/job:localhost/replica:0/task:0/device:{entry.kind}:0")


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_grappler_sees_the_speed_of_the_catalogue(entry, measure):
    flops, bandwidth = measure(device_properties(spec_of(entry)))
    # MeasureCosts cuts to whole microseconds: the fastest device adds the matrices in 240 of them.
    assert flops == pytest.approx(entry.flops, rel=0.002)
    assert bandwidth == pytest.approx(entry.bandwidth, rel=0.005)


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_slowdown(entry, measure):
    flops, bandwidth = measure(device_properties(spec_of(entry), slowdown=1000))
    assert flops * 1000 == pytest.approx(entry.flops, rel=0.01)
    assert bandwidth * 1000 == pytest.approx(entry.bandwidth, rel=0.001)


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_estimated_performance(entry):
    properties = device_properties(spec_of(entry))
    cluster = _tf_private.grappler_cluster.Cluster(devices=[properties])
    assert cluster.EstimatePerformance(properties) * 1e9 == pytest.approx(entry.flops, rel=0.001)


def test_worker_and_logical_devices_keep_their_names():
    names = ["/job:worker/replica:0/task:1/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:3"]
    specs = [DeviceSpec(name=name, model="slow", kind="CPU", flops=5e9, bandwidth=1e9) for name in names]
    cluster = _tf_private.grappler_cluster.Cluster(devices=[device_properties(spec) for spec in specs])
    assert sorted(device.name for device in cluster.ListDevices()) == sorted(names)


def test_memory():
    limited, unlimited = Topology.parse("T4").devices[0], Topology.parse("T4").with_memory(None).devices[0]
    assert device_properties(limited).properties.memory_size == limited.memory
    assert device_properties(unlimited).properties.memory_size == 0


@pytest.mark.parametrize(("flops", "bandwidth"), [(1.0, 1.0), (1e300, 1e300)])
def test_extreme_figures_stay_within_the_protocol_buffer(flops, bandwidth):
    spec = DeviceSpec("/job:localhost/replica:0/task:0/device:GPU:0", "odd", "GPU", flops, bandwidth)
    properties = device_properties(spec, slowdown=1000).properties
    assert 1 <= properties.frequency < 2**63
    assert 1 <= properties.bandwidth < 2**63


def test_errors():
    with pytest.raises(TopologyError, match=r"^spec='2xT4' must be a DeviceSpec, such as Topology.parse"):
        device_properties("2xT4")
    with pytest.raises(TopologyError, match=r"^slowdown=0 is out of range: give a factor, 1 to"):
        device_properties(Topology.parse("T4").devices[0], slowdown=0)
    with pytest.raises(TopologyError, match=r"^slowdown=0.5 is not a whole number"):
        device_properties(Topology.parse("T4").devices[0], slowdown=0.5)

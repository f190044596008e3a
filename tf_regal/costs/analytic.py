"""Analytic costs: TensorFlow's own cost model (Grappler's, a roofline over operations and bytes) on a virtual cluster."""

import numpy as np

from tf_regal import _tf_private as tfp
from tf_regal.costs import scratch
from tf_regal.devices import grappler
from tf_regal.graph import semantics

# Grappler reports whole microseconds. A device described as this much slower gives costs exact to the nanosecond.
_SLOWDOWN = 1000

LOOP_TRIPS = 10
"""How often a contracted loop is taken to run its body: nothing in the graph says it."""


def add_costs(capture, topology):
    """Fills `capture.graph.durations` and `.scratch` for every device model of the topology that is not there yet.

    Durations are in ns: Grappler's estimate plus the device's launch overhead; nothing for ops that launch nothing.
    """
    graph = capture.graph
    for spec in topology.devices:
        if spec.model in graph.durations:
            continue
        costs = _grappler_costs(capture.shapes.meta_graph, spec)
        duration = np.zeros(graph.n_ops, np.int64)
        for op, members in enumerate(graph.members):
            total = sum(costs.get(name, 0) for name in members)
            if graph.types[op] == "Region":
                total = total * LOOP_TRIPS + len(members) * spec.launch_overhead_ns
            elif graph.types[op] in semantics.FREE:
                total = 0
            else:
                total += spec.launch_overhead_ns
            duration[op] = total
        graph.durations[spec.model] = duration
        graph.scratch[spec.model] = scratch.estimate(capture, spec)


def _grappler_costs(meta_graph, spec):
    """{node name: ns} on one device of this model."""
    placed = tfp.meta_graph_pb2.MetaGraphDef()
    placed.CopyFrom(meta_graph)
    device = grappler.device_properties(spec, slowdown=_SLOWDOWN)
    # Without a limit, since everything is put on this one device; under a name that Grappler does not look for on this machine.
    device.properties.ClearField("memory_size")
    device.name = "/job:localhost/replica:0/task:0/device:VIRTUAL:0"
    for node in placed.graph_def.node:
        node.device = device.name
    cluster = tfp.grappler_cluster.Cluster(devices=[device])
    try:
        performances, _, _ = cluster.MeasureCosts(tfp.grappler_item.Item(placed))
    finally:
        cluster.Shutdown()
    return {p.node: int(p.compute_cost) // _SLOWDOWN for p in performances}

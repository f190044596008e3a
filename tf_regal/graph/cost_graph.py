"""CostGraphDef (tensorflow/core/framework/cost_graph.proto) → OpGraph: the format of the REGAL paper's data set."""

import hashlib

import numpy as np

from tf_regal import errors
from tf_regal import problem as problem_lib
from tf_regal.graph import opgraph

ANY_MODEL = "*"
"""Device model of costs that hold for every device: the file has one figure per op."""

_SOURCE = "_SOURCE"


def to_op_graph(cost_graph, origin="the CostGraphDef"):
    """Compute costs are taken as ns (the proto leaves the unit open), sizes as bytes; `_SOURCE` is dropped; aliases become views.

    Raises GraphError where a node refers to one that is not there.
    """
    nodes = [node for node in cost_graph.node if node.name != _SOURCE]
    if not nodes:
        raise errors.GraphError(f"{origin} holds no node: there is nothing to plan")
    dropped = {node.id for node in cost_graph.node if node.name == _SOURCE}
    index = {node.id: i for i, node in enumerate(nodes)}
    if len(index) < len(nodes):
        raise errors.GraphError(f"{origin}: {len(nodes) - len(index)} nodes have an id that another has, too; every node needs an id of its own")
    tensor_of, producer, size = {}, [], []
    for i, node in enumerate(nodes):
        for port, output in enumerate(node.output_info):
            tensor_of[node.id, port] = len(producer)
            producer.append(i)
            size.append(output.size)
    view = np.full(len(producer), -1, np.int32)
    inputs, control = [], []
    for node in nodes:
        given = []
        for source in node.input_info:
            key = (source.preceding_node, source.preceding_port)
            if key not in tensor_of:
                raise errors.GraphError(f"{origin}: node {node.name!r} takes port {key[1]} of node {key[0]}, which is not there")
            given.append(tensor_of[key])
        for port, output in enumerate(node.output_info):
            # The default of the proto's field is 0, so an alias is one only where the port is said to be an input.
            if output.HasField("shape") and 0 <= output.alias_input_port < len(given):
                view[tensor_of[node.id, port]] = given[output.alias_input_port]
        inputs.append(list(dict.fromkeys(given)))
        sources = [s for s in node.control_input if s not in dropped]
        missing = [s for s in sources if s not in index]
        if missing:
            raise errors.GraphError(f"{origin}: node {node.name!r} waits for node {missing[0]}, which is not there")
        control.append(list(dict.fromkeys(index[s] for s in sources)))
    n, m = len(nodes), len(producer)
    final = {i for i, node in enumerate(nodes) if node.is_final}
    lifetime = np.array([problem_lib.LIFETIME_OUTPUT if p in final else problem_lib.LIFETIME_NORMAL for p in producer], np.uint8)
    input_ptr, input_idx = problem_lib.csr(inputs)
    control_ptr, control_idx = problem_lib.csr(control)
    digest = hashlib.sha256()
    for column in (producer, size, view.tolist(), input_ptr.tolist(), input_idx.tolist(), control_ptr.tolist(), control_idx.tolist(),
                   [node.compute_cost for node in nodes], lifetime.tolist()):
        digest.update(repr(column).encode())
    return opgraph.OpGraph(
        names=[node.name or f"node_{node.id}" for node in nodes], types=["Cost"] * n, devices=[""] * n, kinds=[["CPU", "GPU", "TPU"]] * n,
        members=[[node.name] for node in nodes], group=np.arange(n), persistent=np.zeros(n), orderable=np.ones(n, bool),
        producer=np.array(producer, np.int32), size=np.array(size, np.int64), view=view, lifetime=lifetime,
        reuse_ptr=np.zeros(m + 1), reuse_idx=np.zeros(0), input_ptr=input_ptr, input_idx=input_idx, control_ptr=control_ptr,
        control_idx=control_idx, fingerprint=digest.hexdigest(),
        durations={ANY_MODEL: np.array([node.compute_cost for node in nodes], np.int64)},
        scratch={ANY_MODEL: np.array([node.temporary_memory_size for node in nodes], np.int64)},
        notes=["costs are the file's own, the same on every device"],
    )

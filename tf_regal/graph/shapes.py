"""Shapes of everything in a `Runnable`: Grappler's inference, with the arguments' shapes bound."""

import dataclasses

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.graph import runnable as runnable_lib

DEFAULT_BATCH = 32
"""What an unknown first dimension is bound to where nothing better is known."""

_STRING_BYTES = 24  # sizeof(tstring): the characters are on the heap and not known


@dataclasses.dataclass
class Shapes:
    """outputs: {node name: list of (dtype enum, tuple or None)} by port; bindings: what was assumed, as text.
    meta_graph: the graph in the form that Grappler's cost model takes (arguments are sources with known shapes)."""

    outputs: dict
    bindings: list
    meta_graph: object


def infer(runnable, batch_size=None):
    """Args: batch_size: value for unknown first dimensions (default: DEFAULT_BATCH, and said so)."""
    bindings = []
    graph_def = tfp.graph_pb2.GraphDef()
    graph_def.CopyFrom(runnable.graph_def)
    # Without a producer version shape functions behave as for graphs of 2016 and give up on placeholders.
    graph_def.versions.producer = max(graph_def.versions.producer, tf.version.GRAPH_DEF_VERSION)
    for node in graph_def.node:
        if node.op == "_Arg":
            index = node.attr["index"].i
            shape = _bind(runnable.arg_shapes[index], f"argument {node.name}", batch_size, bindings)
            runnable_lib.make_source(node, node.attr["T"].type, shape, runnable.arg_handles[index])
        elif node.op == "_Retval":
            dtype = node.attr["T"].type
            node.ClearField("attr")
            node.op = "Identity"
            node.attr["T"].type = dtype
        elif node.op.startswith("IteratorGetNext"):
            for port, shape in enumerate(node.attr["output_shapes"].list.shape):
                bound = _bind(runnable_lib.shape_tuple(shape), f"{node.name}:{port}", batch_size, bindings)
                shape.CopyFrom(tf.TensorShape(bound).as_proto())
    meta_graph = tfp.meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
    consumed = {source.lstrip("^").split(":")[0] for node in graph_def.node for source in node.input}
    meta_graph.collection_def["train_op"].node_list.value.extend(n.name for n in graph_def.node if n.name not in consumed)
    try:
        properties = tfp.grappler_item.Item(meta_graph).GetOpProperties()
    except Exception as error:
        raise errors.GraphError(f"shapes could not be inferred: {error}. Check that every op of the graph is known here.") from error
    outputs, n_assumed = {}, 0
    for node in graph_def.node:
        known = properties.get(node.name)
        if known is None:
            known = []
        ports = []
        for port, dtype in enumerate(runnable_lib.node_output_types(node)):
            shape = None
            if port < len(known) and not known[port].shape.unknown_rank:
                shape = tuple(d.size for d in known[port].shape.dim)
            if dtype not in (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum) and (shape is None or any(d < 0 for d in shape)):
                n_assumed += 1
                shape = _assume(shape, batch_size)
            ports.append((dtype, shape))
        outputs[node.name] = ports
    if n_assumed:
        bindings.append(
            f"{n_assumed} tensors inside the graph have dimensions that only a run can tell; unknown first dimensions were taken as "
            f"{batch_size or DEFAULT_BATCH}, others as 1"
        )
    return Shapes(outputs, bindings, meta_graph)


def tensor_bytes(dtype, shape):
    """Bytes of a tensor; 0 where only the handle is known (resources, variants)."""
    if shape is None or dtype in (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum):
        return 0
    elements = 1
    for dimension in shape:
        elements *= max(dimension, 0)
    dtype = tf.dtypes.as_dtype(dtype).base_dtype
    return elements * (_STRING_BYTES if dtype == tf.string else dtype.size)


def text(dtype, shape):
    """A tensor in words, "float32[32, 10]"."""
    name = tf.dtypes.as_dtype(dtype).base_dtype.name
    return name if shape is None else f"{name}[{', '.join(str(dimension) for dimension in shape)}]"


def _bind(shape, what, batch_size, bindings):
    if shape is None:
        bindings.append(f"{what} has an unknown rank: taken as a scalar")
        return ()
    bound = []
    for axis, dimension in enumerate(shape):
        if dimension is not None and dimension >= 0:
            bound.append(dimension)
            continue
        value = (batch_size or DEFAULT_BATCH) if axis == 0 else 1
        source = "batch_size" if batch_size and axis == 0 else "a default; pass batch_size=… to change it" if axis == 0 else "a default"
        bindings.append(f"{what}: dimension {axis} = {value} ({source})")
        bound.append(value)
    return tuple(bound)


def _assume(shape, batch_size):
    if shape is None:
        return ()
    return tuple(d if d >= 0 else ((batch_size or DEFAULT_BATCH) if axis == 0 else 1) for axis, d in enumerate(shape))

"""Anything that can be planned → `Capture` (with TensorFlow's nodes) or `OpGraph` (without)."""

import dataclasses
import itertools
import os
import re

import tensorflow as tf
from google.protobuf import text_format

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.graph import builder, cost_graph, opgraph, task_graphs
from tf_regal.graph import runnable as runnable_lib

_UNKNOWN_OP = re.compile(r"Op type not registered '([^']*)'")
DEFAULT_SIGNATURE = "serving_default"
KINDS = (
    "a SavedModel directory, a GraphDef (.pb or .pbtxt), a CostGraphDef (.pbtxt), an exported OpGraph (.json or .json.xz), "
    "a DNN-partitioning or DAGBench task graph (.json), "
    "a tf.function, a ConcreteFunction, a GraphDef or an OpGraph"
)


@dataclasses.dataclass
class Model:
    """What was read. kind: "saved_model", "graph_def", "function" or "op_graph"; capture: None for "op_graph"; graph: OpGraph;
    concrete: the ConcreteFunction for the first and third; graph_def: the original for "graph_def"."""

    kind: str
    graph: opgraph.OpGraph
    capture: builder.Capture | None = None
    concrete: object = None
    graph_def: object = None


def read(model, *, inputs=None, outputs=None, signature=DEFAULT_SIGNATURE, batch_size=None, default_device="", move_variables=False):
    """Reads `model` (see KINDS). inputs, outputs: tensor names, for a GraphDef; signature: for a SavedModel; move_variables: see `builder.capture`.

    Raises GraphError where it is none of these, cannot be read, or has nothing to plan.
    """
    if isinstance(model, opgraph.OpGraph):
        return Model("op_graph", model)
    if isinstance(model, (str, os.PathLike)):
        return _read_path(os.fspath(model), inputs, outputs, signature, batch_size, default_device)
    if isinstance(model, tfp.graph_pb2.GraphDef):
        return _read_graph_def(model, inputs, outputs, batch_size, default_device)
    concrete = concrete_function(model)
    capture = builder.capture(runnable_lib.from_concrete(concrete), batch_size, default_device, move_variables)
    return Model("function", capture.graph, capture, concrete)


def concrete_function(model):
    """The ConcreteFunction of a tf.function (its only trace, or that of its input_signature), or `model` itself."""
    if isinstance(model, tfp.concrete_function.ConcreteFunction):
        return model
    if isinstance(model, tfp.polymorphic_function.Function):
        traced = model._list_all_concrete_functions()
        if len(traced) == 1:
            return traced[0]
        if model.input_signature is not None:
            return model.get_concrete_function()
        raise errors.GraphError(
            f"model={model!r} has been traced {len(traced)} times; which trace is meant? Pass model.get_concrete_function(…) for one kind of arguments."
        )
    raise errors.GraphError(f"model={model!r} cannot be planned; expected {KINDS}")


def _read_path(path, inputs, outputs, signature, batch_size, default_device):
    if not os.path.exists(path):
        raise errors.GraphError(f"model={path!r}: there is no such file or directory. Give {KINDS}.")
    if os.path.isdir(path):
        concrete = load_signature(path, signature)
        capture = builder.capture(runnable_lib.from_concrete(concrete), batch_size, default_device)
        return Model("saved_model", capture.graph, capture, concrete)
    if path.endswith((".json", ".json.xz")):
        return Model("op_graph", _read_json(path))
    graph = _read_proto(path)
    if isinstance(graph, tfp.cost_graph_pb2.CostGraphDef):
        return Model("op_graph", cost_graph.to_op_graph(graph, path))
    return _read_graph_def(graph, inputs, outputs, batch_size, default_device)


def load_signature(path, signature=DEFAULT_SIGNATURE):
    """The signature's ConcreteFunction of a SavedModel directory. Raises GraphError where either is missing."""
    if not tf.saved_model.contains_saved_model(path):
        raise errors.GraphError(f"model={path!r} is a directory without a SavedModel (no saved_model.pb or .pbtxt). Give {KINDS}.")
    try:
        loaded = tf.saved_model.load(path)
    except Exception as error:
        raise errors.GraphError(f"model={path!r} could not be loaded: {error}. Check that it loads with tf.saved_model.load.") from error
    if signature not in loaded.signatures:
        names = ", ".join(map(repr, loaded.signatures)) or "none"
        raise errors.GraphError(f"signature={signature!r} is not in {path!r}; it has {names}. Choose one with signature=… (--signature).")
    concrete = loaded.signatures[signature]
    concrete._tf_regal_source = loaded  # the variables belong to the object
    return concrete


def _read_json(path):
    try:
        return task_graphs.load(path)
    except errors.GraphError as error:
        raise errors.GraphError(f"model={path!r}: {error} Or give {KINDS}.") from error


def _read_proto(path):
    with open(path, "rb") as file:
        content = file.read()
    if path.endswith(".pbtxt"):
        text = content.decode("utf-8", errors="replace")
        problems = []
        for kind in (tfp.graph_pb2.GraphDef, tfp.cost_graph_pb2.CostGraphDef):
            try:
                graph = text_format.Parse(text, kind())
                if graph.node:
                    return graph
                problems.append(f"{kind.__name__}: no node")
            except text_format.ParseError as error:
                problems.append(f"{kind.__name__}: {error}")
        raise errors.GraphError(f"model={path!r} is neither a GraphDef nor a CostGraphDef in text form ({'; '.join(problems)}). Give {KINDS}.")
    try:
        graph_def = tfp.graph_pb2.GraphDef.FromString(content)
    except Exception as error:
        raise errors.GraphError(f"model={path!r} is no GraphDef: {error}. Give {KINDS}.") from error
    if not graph_def.node:
        raise errors.GraphError(f"model={path!r} holds no graph: it is empty or no GraphDef. Give {KINDS}.")
    return graph_def


def _read_graph_def(graph_def, inputs, outputs, batch_size, default_device):
    _check_graph_def(graph_def)
    inputs, outputs = default_ends(graph_def, inputs, outputs)
    capture = builder.capture(runnable_lib.optimize(graph_def, inputs, outputs), batch_size, default_device)
    return Model("graph_def", capture.graph, capture, graph_def=graph_def)


def _check_graph_def(graph_def):
    """Grappler, which comes next, ends the process where an input, an attribute or an op is missing; importing says what is wrong."""
    for node in itertools.chain(graph_def.node, *(function.node_def for function in graph_def.library.function)):
        # Importing ends the process, too, where a shape depends on such a constant.
        if node.op == "Const" and node.attr["dtype"].type != node.attr["value"].tensor.dtype:
            said, held = (tf.dtypes.as_dtype(number).name if number else "nothing" for number in (node.attr["dtype"].type, node.attr["value"].tensor.dtype))
            raise errors.GraphError(f"model: the GraphDef is damaged: constant {node.name!r} says that it is {said} and holds {held}. Write the file again.")
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(graph_def, name="")
    except Exception as error:
        unknown = _UNKNOWN_OP.search(str(error))
        names = [node.name for node in graph_def.node if unknown and node.op == unknown[1]]
        if names:
            reason = f"op type {unknown[1]!r} of node {names[0]!r} is not registered in this process. Import the library that defines it."
        else:
            reason = f"{error} Check that tf.import_graph_def takes it."
        raise errors.GraphError(f"model: the GraphDef cannot be imported: {reason}") from error


def default_ends(graph_def, inputs, outputs):
    """Input and output tensor names of a GraphDef: those given, else its placeholders, and what nothing consumes."""
    if inputs is None:
        inputs = [node.name for node in graph_def.node if node.op == "Placeholder"]
    if outputs is None:
        consumed = {text.lstrip("^").split(":")[0] for node in graph_def.node for text in node.input}
        outputs = [node.name for node in graph_def.node if node.name not in consumed and node.op not in ("NoOp", "Placeholder", "Const")]
        outputs = [name for name in outputs if _has_output(graph_def, name)]
    if not outputs:
        raise errors.GraphError("outputs: the GraphDef has no tensor that nothing consumes; name its results with outputs=[…] (--outputs)")
    return list(inputs), list(outputs)


def _has_output(graph_def, name):
    node = next(n for n in graph_def.node if n.name == name)
    return bool(runnable_lib.node_output_types(node))

"""Plan → SavedModel: the signature's function in the file gets the planned body; variables, assets and everything else are copied."""

import os
import shutil
import tempfile

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.rewrite import functiondef, graphdef

_LOCAL = "/job:localhost/replica:0/task:0"


def write(source, signature, read, plan, output):
    """Writes the SavedModel `source` to the new directory `output`, with the plan on `signature`.

    The result loads without tf_regal, and on fewer devices too: device names are partial and TensorFlow places softly. Raises
    InvalidArgumentError where `output` exists, GraphError where the file's function is not the one that was planned.
    """
    if os.path.exists(output):
        raise errors.InvalidArgumentError(f"output={output!r} exists already; choose a new directory, or remove it first")
    proto = tfp.loader_impl.parse_saved_model(source)
    meta_graph = proto.meta_graphs[0]
    function = _function_of(meta_graph, signature, source)
    planned = graphdef.planned_graph_def(read.capture, plan)
    for node in planned.node:
        # Whoever serves it may call its job otherwise.
        node.device = node.device.removeprefix(_LOCAL)
    body = functiondef.planned_function_def(planned, function, name=function.signature.name)
    function.CopyFrom(body)
    known = {f.signature.name for f in meta_graph.graph_def.library.function}
    meta_graph.graph_def.library.function.extend(f for f in planned.library.function if f.signature.name not in known)
    parent = os.path.dirname(os.path.abspath(output))
    os.makedirs(parent, exist_ok=True)
    temporary = tempfile.mkdtemp(dir=parent, prefix=".tf_regal_")
    try:
        copy = os.path.join(temporary, "model")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb"))
        with open(os.path.join(copy, "saved_model.pb"), "wb") as file:
            file.write(proto.SerializeToString(deterministic=True))
        os.rename(copy, output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _function_of(meta_graph, signature, source):
    """The FunctionDef in the file that the signature calls."""
    outputs = meta_graph.signature_def[signature].outputs
    library = {f.signature.name: f for f in meta_graph.graph_def.library.function}
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    for info in outputs.values():
        node = nodes.get(info.name.split(":")[0])
        while node is not None and node.op == "Identity":
            node = nodes.get(node.input[0].split(":")[0])
        if node is not None and node.op in ("PartitionedCall", "StatefulPartitionedCall") and node.attr["f"].func.name in library:
            return library[node.attr["f"].func.name]
    raise errors.GraphError(
        f"signature={signature!r} of {source!r} does not call a function (a TensorFlow 1 SavedModel?). Load it and save it again with TensorFlow 2."
    )

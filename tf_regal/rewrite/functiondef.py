"""GraphDef with `_Arg` and `_Retval` nodes → FunctionDef with the signature of the traced function."""

import uuid

from tf_regal import _tf_private as tfp
from tf_regal import errors


def planned_function_def(graph_def, signature_of, name=None):
    """Makes a FunctionDef that TensorFlow can register and call in place of another one.

    Args:
        graph_def: `rewrite.planned_graph_def`'s result.
        signature_of: FunctionDef of the traced function: its arguments, results and attributes are kept.
        name: default: the traced function's name with a suffix of its own.

    Every node without a consumer becomes a control output: TensorFlow prunes what neither a result nor a control output needs.
    """
    function = tfp.function_pb2.FunctionDef()
    function.signature.CopyFrom(signature_of.signature)
    function.signature.ClearField("control_output")
    function.signature.name = name or f"{signature_of.signature.name}_tf_regal_{uuid.uuid4().hex[:12]}"
    for key, value in signature_of.attr.items():
        function.attr[key].CopyFrom(value)
    for index, attributes in signature_of.arg_attr.items():
        function.arg_attr[index].CopyFrom(attributes)
    arguments, ports = {}, {}
    for node in graph_def.node:
        if node.op == "_Arg":
            arguments[node.name] = function.signature.input_arg[node.attr["index"].i].name
        elif node.op != "_Retval":
            ports[node.name] = _output_ports(node)

    def reference(text):
        """Input in a GraphDef ("node:1") → in a FunctionDef ("node:output_name:0"); None for a control edge from an argument."""
        source, _, port = text.lstrip("^").partition(":")
        if text.startswith("^"):
            return None if source in arguments else text
        if source in arguments:
            return arguments[source]
        output, index = ports[source][int(port or 0)]
        return f"{source}:{output}:{index}"

    consumed = set()
    for node in graph_def.node:
        consumed.update(text.lstrip("^").partition(":")[0] for text in node.input)
        if node.op == "_Arg":
            continue
        if node.op == "_Retval":
            result = function.signature.output_arg[node.attr["index"].i].name
            function.ret[result] = reference(node.input[0])
            continue
        copy = function.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(r for r in map(reference, node.input) if r is not None)
    if len(function.ret) != len(function.signature.output_arg):
        raise errors.GraphError(f"the graph has {len(function.ret)} results; the function's signature has {len(function.signature.output_arg)}")
    for name in sorted(set(ports) - consumed):
        function.control_ret[name] = name
        function.signature.control_output.append(name)
    return function


def _output_ports(node):
    """Per output port of a node: (name of the OpDef's output, index within it)."""
    op_def = tfp.op_def_registry.get(node.op)
    if op_def is None:
        raise errors.GraphError(f"op type {node.op!r} of node {node.name!r} is not registered in this process. Import the library that defines it.")
    result = []
    for arg in op_def.output_arg:
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        else:
            count = 1
        result.extend((arg.name, i) for i in range(count))
    return result

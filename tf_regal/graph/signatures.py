"""What a node does, as bytes: for the fingerprint of a graph and for telling ops that must take equally long.

Names do not enter: they change from process to process.
"""

import hashlib

IGNORED_ATTRIBUTES = frozenset(("shared_name", "container", "cont_name", "debug_name", "node_name", "frame_name", "_class"))
_MAX_DEPTH = 8  # of functions that call functions


def of_ops(capture):
    """Per op of the graph a hex digest of its type, attributes, and the dtypes and shapes of its inputs and outputs; nodes of a region all together."""
    library = {f.signature.name: f for f in capture.runnable.graph_def.library.function}
    nodes = {node.name: node for node in capture.runnable.graph_def.node}
    return [_digest([nodes[name] for name in members], capture.shapes.outputs, library) for members in capture.graph.members]


def _digest(members, outputs, library):
    digest = hashlib.sha256()
    for node in members:
        digest.update(node.op.encode())
        for key in sorted(node.attr):
            # The value of a constant does not decide what it costs; nor does anything that a name or a counter is part of.
            if not key.startswith("_") and key not in IGNORED_ATTRIBUTES and not (node.op == "Const" and key == "value"):
                digest.update(key.encode() + attribute_content(node.attr[key], library))
        digest.update(repr([_tensor(text, outputs) for text in node.input if not text.startswith("^")]).encode())
        digest.update(repr(outputs[node.name]).encode())
    return digest.hexdigest()[:24]


def _tensor(text, outputs):
    name, _, port = text.partition(":")
    ports, port = outputs[name], int(port or 0)
    return ports[port] if port < len(ports) else None


def attribute_content(attr, library, depth=0):
    """Bytes that stand for an attribute. A function's name holds a counter: its body stands for it."""
    kind = attr.WhichOneof("value")
    if kind == "func":
        return _function_content(attr.func.name, library, depth)
    if kind == "list" and attr.list.func:
        return b"".join(_function_content(f.name, library, depth) for f in attr.list.func)
    return attr.SerializeToString(deterministic=True)


def _function_content(name, library, depth):
    function = library.get(name)
    if function is None or depth > _MAX_DEPTH:
        return name.encode()
    position = {node.name: i for i, node in enumerate(function.node_def)}
    position.update({arg.name: -1 - i for i, arg in enumerate(function.signature.input_arg)})
    content = []
    for node in function.node_def:
        inputs = [(position.get(text.lstrip("^").partition(":")[0]), text.partition(":")[2], text[:1] == "^") for text in node.input]
        content.append(f"{node.op} {inputs}".encode())
        content += [
            key.encode() + attribute_content(node.attr[key], library, depth + 1)
            for key in sorted(node.attr)
            if not key.startswith("_") and key not in IGNORED_ATTRIBUTES
        ]
    return b"\0".join(content)

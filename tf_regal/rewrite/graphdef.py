"""Plan → GraphDef: devices and control edges are put on the nodes of a `Runnable`; results come back to where they were."""

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.graph import semantics

_RETURN = "/tf_regal_return"


def planned_graph_def(capture, plan):
    """A copy of the captured graph with the plan on it (`_Arg` and `_Retval` nodes kept).

    Every op gets its planned device; a node of a contracted loop or branch keeps its own. Control edges are added between ops as the plan
    says. A result that is made on another device than TensorFlow would give it on is brought back by an Identity.

    Raises PlanMismatchError where the plan was made for another graph.
    """
    graph = capture.graph
    check_fits(graph, plan)
    planned = tfp.graph_pb2.GraphDef()
    planned.CopyFrom(capture.runnable.graph_def)
    nodes = {node.name: node for node in planned.node}
    devices = plan.topology.names
    retval_device = {}
    for op, members in enumerate(graph.members):
        if graph.types[op] == "Region":
            continue
        node = nodes[members[0]]
        if node.op == "_Retval":
            retval_device[node.name] = devices[plan.device[op]]
        elif node.op != "_Arg":
            node.device = devices[plan.device[op]]
            # Colocation is decided: the groups were kept together, and what they were named after may be gone.
            if "_class" in node.attr:
                del node.attr["_class"]
    for before, after in plan.edges.tolist():
        nodes[graph.names[after]].input.append("^" + graph.names[before])
    _return_results(planned, nodes, retval_device)
    return planned


def check_fits(graph, plan):
    """Raises PlanMismatchError unless the plan was made for this content."""
    if plan.fingerprint != graph.fingerprint:
        raise errors.PlanMismatchError(
            f"the plan was made for another graph: its fingerprint is {plan.fingerprint[:12]}…, this graph's is {graph.fingerprint[:12]}…. "
            f"Plan this model again with `tf-regal plan`."
        )
    if plan.ops != graph.names:
        raise errors.PlanMismatchError("the plan names other ops than the graph (same content, other names): use plan.renamed(graph.names)")


def check_devices(plan, available):
    """Raises PlanMismatchError where the plan uses a device that is not in `available` (full names)."""
    used = {plan.topology.names[q] for q in set(plan.device.tolist())}
    missing = sorted(used - set(available))
    if missing:
        raise errors.PlanMismatchError(
            f"the plan names devices that are not here: {', '.join(missing)}. Here are: {', '.join(available)}. "
            f"Plan for this machine with topology='local', or make the devices visible first."
        )


def _return_results(graph_def, nodes, retval_device):
    for name, device in retval_device.items():
        retval = nodes[name]
        source = nodes[_source(retval.input[0])]
        if source.op == "_Arg" or not source.device or source.device == device:
            continue
        back = graph_def.node.add(op="Identity", name=f"{name}{_RETURN}", device=device)
        back.input.append(retval.input[0])
        back.attr["T"].CopyFrom(retval.attr["T"])
        retval.input[0] = back.name


def applied_graph_def(capture, plan, original):
    """The plan as a GraphDef that can be imported and run like `original`: its placeholders, and the planned nodes under their names.

    What the results do not need (initializers, a saver, a training op) was not planned and stays as it was.
    """
    planned = planned_graph_def(capture, plan)
    nodes = {node.name: node for node in original.node}
    result = tfp.graph_pb2.GraphDef(versions=original.versions)
    # Grappler rewrites called functions under their names. A process that has the original ones already would refuse others of the same name.
    result.library.CopyFrom(original.library)
    known = {function.signature.name for function in original.library.function}
    result.library.function.extend(f for f in planned.library.function if f.signature.name not in known)
    for node in planned.node:
        if node.op == "_Retval" or node.name.endswith(_RETURN):
            continue
        copy = result.node.add()
        if node.op == "_Arg":
            copy.CopyFrom(nodes[node.name])
        else:
            copy.CopyFrom(node)
            # Data first, then control: importers insist on it.
            data = [text for text in node.input if not text.startswith("^")]
            control = [text for text in node.input if text.startswith("^")]
            del copy.input[:]
            copy.input.extend(data + control)
    _add_unplanned(result, nodes, [_source(node.input[0]) for node in capture.runnable.graph_def.node if node.op == "_Retval"])
    return result


def _add_unplanned(result, original, wanted):
    """Adds what no node of `wanted` depends on, and what that in turn needs and the planned graph does not have.

    The planned graph does not have a value where Grappler took it away, or where order edges make it wait for a placeholder that it did not need before.
    A node with a side effect, or of another value each time, is never copied: it would run twice.
    """
    planned = {node.name: node for node in result.node}
    needed = _reachable(wanted, lambda name: _sources(original[name]))
    waits = _new_waits(planned, original)
    copied = {}  # name in the original → in the result

    def available(text):
        name, _, port = text.lstrip("^").partition(":")
        if name not in planned or (name in waits and not _runs_once(original[name])):
            return False
        # Under a node's name Grappler may put another op, of which only the first output is the same.
        return planned[name].op == original[name].op or port in ("", "0")

    stack = [name for name in original if name not in needed and name not in planned]
    while stack:
        name = stack.pop()
        if name not in copied:
            copied[name] = f"{name}/unplanned" if name in planned else name
            stack.extend(_source(text) for text in original[name].input if not available(text))
    for name in (name for name in original if name in copied):
        copy = result.node.add()
        copy.CopyFrom(original[name])
        copy.name = copied[name]
        del copy.input[:]
        for text in original[name].input:
            source = _source(text)
            copy.input.append(text if available(text) else text.replace(source, copied[source], 1))
    _drop_lost_colocations(result)


def _new_waits(planned, original):
    """Names of planned nodes that depend on a placeholder on which they did not depend before."""
    found = set()
    after, before = _consumers(planned), _consumers(original)
    for name, node in original.items():
        if node.op == "Placeholder" and name in planned:
            found |= _reachable([name], after.__getitem__) - _reachable([name], before.__getitem__)
    return found


def _runs_once(node):
    op_def = tfp.op_def_registry.get(node.op)
    return op_def is None or (op_def.is_stateful and node.op not in semantics.VARIABLE_READS)


def _drop_lost_colocations(graph_def):
    """Takes out colocations with nodes that are gone: importers refuse them."""
    there = {node.name for node in graph_def.node}
    for node in graph_def.node:
        if "_class" in node.attr:
            kept = [text for text in node.attr["_class"].list.s if text.decode(errors="replace").removeprefix("loc:@") in there]
            del node.attr["_class"].list.s[:]
            node.attr["_class"].list.s.extend(kept)
            if not kept:
                del node.attr["_class"]


def _sources(node):
    return [_source(text) for text in node.input]


def _consumers(nodes):
    """{name: names of the nodes that have it as an input}."""
    found = {name: [] for name in nodes}
    for name, node in nodes.items():
        for source in _sources(node):
            found[source].append(name)
    return found


def _reachable(starts, following):
    """Names that can be reached from `starts`, those included. following: name → names."""
    found, stack = set(), list(starts)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(following(name))
    return found


def _source(text):
    """The name of the node in one of a node's inputs."""
    return text.lstrip("^").partition(":")[0]

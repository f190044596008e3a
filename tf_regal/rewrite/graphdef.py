"""Plan → GraphDef: devices and control edges are put on the nodes of a `Runnable`; results come back to where they were."""

from tf_regal import _tf_private as tfp
from tf_regal import errors


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
        source = nodes[retval.input[0].split(":")[0].lstrip("^")]
        if source.op == "_Arg" or not source.device or source.device == device:
            continue
        back = graph_def.node.add(op="Identity", name=f"{name}/tf_regal_return", device=device)
        back.input.append(retval.input[0])
        back.attr["T"].CopyFrom(retval.attr["T"])
        retval.input[0] = back.name


def applied_graph_def(capture, plan, original):
    """The plan as a GraphDef that can be imported and run like `original`: its placeholders, and the planned nodes under their names."""
    planned = planned_graph_def(capture, plan)
    placeholders = {node.name: node for node in original.node}
    result = tfp.graph_pb2.GraphDef(versions=original.versions)
    result.library.CopyFrom(planned.library)
    for node in planned.node:
        if node.op == "_Retval" or node.name.endswith("/tf_regal_return"):
            continue
        copy = result.node.add()
        if node.op == "_Arg":
            copy.CopyFrom(placeholders[node.name])
        else:
            copy.CopyFrom(node)
            # Data first, then control: importers insist on it.
            data = [text for text in node.input if not text.startswith("^")]
            control = [text for text in node.input if text.startswith("^")]
            del copy.input[:]
            copy.input.extend(data + control)
    return result

"""What was really applied: read from the partition graphs that TensorFlow made of the planned function."""

from tf_regal.plans.report import Applied

_MISSING_SHOWN = 20


def read_back(capture, plan, function_graphs):
    """Compares a plan with the graphs of a run (`_tf_private.instantiate`) → Applied.

    A planned op counts as found where a partition graph holds a node of its name on the planned device; a constant also where TensorFlow
    merged it with an equal one there. A control edge counts where the partition of the waiting op holds it. Arguments, results and
    contracted regions have no planned node of their own.
    """
    graph = capture.graph
    devices = plan.topology.names
    placed, controls, constants = {}, {}, set()
    for collected in _of_this_function(graph, function_graphs):
        for partition in collected.partition_graphs:
            for node in partition.node:
                placed[node.name] = node.device
                if node.op == "Const":
                    constants.add((node.device, node.attr["value"].SerializeToString(deterministic=True)))
                controls[node.name] = {text[1:] for text in node.input if text.startswith("^")}
    planned = [op for op in range(graph.n_ops) if graph.types[op] not in ("_Arg", "_Retval", "Region")]
    nodes = {node.name: node for node in capture.runnable.graph_def.node}
    found, missing = 0, []
    for op in planned:
        name, device = graph.names[op], devices[plan.device[op]]
        if name in placed:
            found += placed[name] == device
        elif (device, nodes[name].attr["value"].SerializeToString(deterministic=True)) in constants and nodes[name].op == "Const":
            found += 1
        else:
            missing.append(name)
    edges = sum(graph.names[a] in controls.get(graph.names[b], ()) for a, b in plan.edges.tolist())
    return Applied(found, len(planned), edges, len(plan.edges), tuple(missing[:_MISSING_SHOWN]))


def _of_this_function(graph, function_graphs):
    """The collected function that shares most names with the plan: others may have been instantiated in the same call."""
    names = set(graph.names)

    def shared(collected):
        return sum(node.name in names for partition in collected.partition_graphs for node in partition.node)

    best = max(function_graphs, key=shared, default=None)
    return [best] if best is not None and shared(best) else []

"""What was really applied: read from the partition graphs that TensorFlow made of the planned function."""

from tf_regal.plans.report import Applied

_MISSING_SHOWN = 20
_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")


def read_back(capture, plan, function_graphs):
    """Compares a plan with the graphs of a run (`_tf_private.instantiate`) → Applied.

    A planned op counts as found where a partition graph holds a node of its name on the planned device; a constant also where TensorFlow
    merged it with an equal one there. A control edge counts where the partition of the waiting op holds it; between devices, where the op waits for
    something received whose sender waits for the other op. Arguments, results and contracted regions have no planned node of their own.
    """
    graph = capture.graph
    devices = plan.topology.names
    placed, constants, all_nodes = {}, set(), {}
    for collected in _of_this_function(graph, function_graphs):
        for partition in collected.partition_graphs:
            for node in partition.node:
                placed[node.name] = node.device
                if node.op == "Const":
                    constants.add((node.device, node.attr["value"].SerializeToString(deterministic=True)))
                all_nodes[node.name] = node
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
    sent = {_key(node): node for node in all_nodes.values() if node.op in _SENDS}
    edges = sum(graph.names[a] in _waited_for(graph.names[b], all_nodes, sent) for a, b in plan.edges.tolist())
    return Applied(found, len(planned), edges, len(plan.edges), tuple(missing[:_MISSING_SHOWN]))


def _waited_for(name, nodes, sent):
    """Names of the ops that a node has control edges from. sent: {key of a transfer: the node that sends}."""
    found = set()
    for control in _controls(nodes.get(name)):
        found.add(control)
        received = _first_input(nodes, nodes.get(control))
        if received is not None and received.op in _RECEIVES and _key(received) in sent:
            found |= _controls(_first_input(nodes, sent[_key(received)]))
    return found


def _controls(node):
    return {text[1:] for text in node.input if text.startswith("^")} if node is not None else set()


def _first_input(nodes, node):
    """The node that makes the first input of one; None where there is none."""
    return nodes.get(node.input[0].lstrip("^").partition(":")[0]) if node is not None and node.input else None


def _key(node):
    """What a sending and a receiving node of one transfer have in common."""
    return node.attr["tensor_name"].s, node.attr["recv_device"].s


def _of_this_function(graph, function_graphs):
    """The collected function that shares most names with the plan: others may have been instantiated in the same call."""
    names = set(graph.names)

    def shared(collected):
        return sum(node.name in names for partition in collected.partition_graphs for node in partition.node)

    best = max(function_graphs, key=shared, default=None)
    return [best] if best is not None and shared(best) else []

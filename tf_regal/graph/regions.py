"""Lowered loops and branches: their nodes are contracted into one opaque op each.

Inside a loop a node may not get edges from outside, and a node in the branch that is not taken is dead and kills what
depends on it. So neither is ordered from outside; a region runs as one op, where TensorFlow put it.
"""

from tf_regal.graph import semantics

_DEEPER = frozenset(("Enter", "RefEnter", "Switch", "RefSwitch", "_SwitchN"))
_EXITS = frozenset(("Exit", "RefExit"))
_MERGES = frozenset(("Merge", "RefMerge"))


def find_regions(types, predecessors):
    """Groups of nodes that belong to one loop or branch.

    Args:
        types: op type per node.
        predecessors: per node a list of node indices (data and control).

    Returns:
        list of sorted lists of node indices; disjoint; empty where there is no lowered control flow.
    """
    if not any(semantics.is_control_flow(t) for t in types):
        return []
    depth, leaving = _depths(types, predecessors)
    inside = [d > 0 or semantics.is_control_flow(t) for d, t in zip(depth, types, strict=True)]
    parent = list(range(len(types)))

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for node, sources in enumerate(predecessors):
        if inside[node]:
            for source in sources:
                # What a region gives away at depth 0 does not join it to what comes next: ops between the two would lie on a cycle.
                if inside[source] and leaving[source] > 0:
                    parent[root(node)] = root(source)
    regions = {}
    for node, is_inside in enumerate(inside):
        if is_inside:
            regions.setdefault(root(node), []).append(node)
    return list(regions.values())


def _depths(types, predecessors):
    """How many loops and branches each node, and each node's outputs, are inside of; back edges (NextIteration → Merge) are left out."""
    depth, leaving = [0] * len(types), [0] * len(types)
    successors = [[] for _ in types]
    pending = [0] * len(types)
    for node, sources in enumerate(predecessors):
        for source in sources:
            if types[source] not in ("NextIteration", "RefNextIteration"):
                successors[source].append(node)
                pending[node] += 1
    loop_merges = {n for n, p in enumerate(predecessors) if any(types[s] in ("NextIteration", "RefNextIteration") for s in p)}
    queue = [n for n, count in enumerate(pending) if count == 0]
    while queue:
        node = queue.pop()
        leaving[node] = depth[node] + (types[node] in _DEEPER)
        if types[node] in _EXITS:
            leaving[node] -= 2  # undoes the loop's Enter and its Switch
        elif types[node] in _MERGES and node not in loop_merges:
            leaving[node] -= 1  # undoes the branch's Switch; a loop's Merge only joins the back edge
        for successor in successors[node]:
            depth[successor] = max(depth[successor], leaving[node])
            pending[successor] -= 1
            if pending[successor] == 0:
                queue.append(successor)
    return depth, leaving


def close_cycles(regions, predecessors):
    """Joins regions, and the nodes between them, that lie on a cycle once each region is one op.

    A branch and its gradient can share a node, and then what is computed between the two depends on the region and the region on it.

    Returns:
        list of sorted lists of node indices; disjoint.
    """
    if not regions:
        return []
    op_of = list(range(len(predecessors)))
    for region in regions:
        for node in region:
            op_of[node] = region[0]
    members = {}
    for node, op in enumerate(op_of):
        members.setdefault(op, []).append(node)
    sources = {op: sorted({op_of[s] for node in nodes for s in predecessors[node]} - {op}) for op, nodes in members.items()}
    starts = {region[0] for region in regions}
    joined = []
    for component in _strong_components(sources):
        if len(component) > 1 or component[0] in starts:
            joined.append(sorted(node for op in component for node in members[op]))
    return joined


def _strong_components(sources):
    """Tarjan's algorithm without recursion. sources: {vertex: list of vertices}."""
    index, low, on_stack, stack, result = {}, {}, set(), [], []
    for start in sources:
        if start in index:
            continue
        work = [(start, iter(sources[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            vertex, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == index[vertex]:
                    component = []
                    while not component or component[-1] != vertex:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    result.append(component)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sources[following])))
            elif following in on_stack:
                low[vertex] = min(low[vertex], index[following])
    return result

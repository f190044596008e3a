"""Control edges that are added to a Problem: an op waits for another one whose results it does not need."""

import numpy as np

NONE = np.empty((0, 2), np.int32)


def with_edges(problem, edges):
    """The problem with more control edges, int [k, 2] of (before, after)."""
    if len(edges) == 0:
        return problem
    n = problem.n_ops
    after = np.concatenate([np.repeat(np.arange(n, dtype=np.int64), np.diff(problem.control_ptr)), edges[:, 1]])
    pairs = np.unique(after * n + np.concatenate([problem.control_idx, edges[:, 0]]))
    ptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(pairs // n, minlength=n), out=ptr[1:])
    return problem.replace(control_ptr=ptr, control_idx=(pairs % n).astype(np.int32))


def join(task, order, chain):
    """Edges from each op of a chain to the next one in it.

    Left out is an edge whose first op is an ancestor of the other anyway, by the task's problem and the edges so far.

    Args:
        order: the ops, topological for the graph and the chains together.
        chain: int [ops], from 0 on; −1: in none.

    Returns:
        int32 [k, 2], (before, after).
    """
    edges, chain = task.edges, np.asarray(chain)
    n_chains = int(chain.max(initial=-1)) + 1
    latest = np.full((len(chain), n_chains), -1, np.int32)  # per op and chain the place there of the last one that is the op itself or before it
    tail, length = [-1] * n_chains, [0] * n_chains
    result = []
    for op in order:
        row = latest[op]
        for source in {edges.producer[t] for t in edges.inputs[op]} | set(edges.control[op]):
            np.maximum(row, latest[source], out=row)
        c = chain[op]
        if c < 0:
            continue
        if length[c] and row[c] < length[c] - 1:
            result.append((tail[c], op))
            np.maximum(row, latest[tail[c]], out=row)
        row[c] = length[c]
        tail[c] = op
        length[c] += 1
    return np.array(result, np.int32).reshape(-1, 2)


def without_implied(task, edges, others, order):
    """`edges` without those that the task's problem, `others` and the rest of them imply. All int32 [k, 2]; order: the ops, topological for all of it."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    before = [{task.edges.producer[t] for t in inputs} | set(control) for inputs, control in zip(task.edges.inputs, task.edges.control, strict=True)]
    for source, target in [*others.tolist(), *edges.tolist()]:
        before[target].add(source)
    kept = []
    for source, target in edges.tolist():
        # Only what lies between the two can join them.
        seen, queue = {target}, [op for op in before[target] if op != source]
        while queue and source not in seen:
            op = queue.pop()
            if op not in seen and place[op] >= place[source]:
                seen.add(op)
                queue += before[op]
        if source in seen:
            before[target].discard(source)
        else:
            kept.append((source, target))
    return np.array(kept, np.int32).reshape(-1, 2)


def hold_back(task, order, distance):
    """Edges that hold back every op of a topological order until the one `distance` places before it has ended. int32 [k, 2]."""
    if distance == 0:
        return NONE
    chain = np.empty(len(order), np.int64)
    chain[np.asarray(order)] = np.arange(len(order)) % distance
    return join(task, np.asarray(order).tolist(), chain)

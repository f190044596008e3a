"""Contraction: ops that have no choice of their own are placed together with the op that decides for them."""

import numpy as np


def contract(problem, default_device):
    """A Problem with fewer colocation groups, whose solutions are solutions of the given one too. Nothing else changes.

    An op joins the group of its only predecessor where it is that one's only successor; a free op (no duration) without inputs, such
    as a constant, that of its only successor; a free op with one predecessor that one's. Groups are joined where they may run on the same devices
    and have the same default device only.

    Args:
        default_device: int32 [ops].
    """
    p = problem
    n = p.n_ops
    consumer = np.repeat(np.arange(n), np.diff(p.input_ptr))
    after = np.repeat(np.arange(n), np.diff(p.control_ptr))
    edges = np.unique(np.stack([np.concatenate([p.producer[p.input_idx], p.control_idx]), np.concatenate([consumer, after])], axis=1), axis=0)
    if not len(edges):
        return problem
    source, target = edges.T
    n_successors, n_predecessors = np.bincount(source, minlength=n), np.bincount(target, minlength=n)
    free = (p.duration <= 0).all(axis=1)
    joined = (n_successors[source] == 1) & (n_predecessors[target] == 1)
    joined |= free[source] & (n_predecessors[source] == 0) & (n_successors[source] == 1)
    joined |= free[target] & (n_predecessors[target] == 1)

    default = np.empty(p.n_groups, np.int64)
    default[p.group] = default_device
    _, kind = np.unique(np.column_stack([p.allowed, default]), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    parent = np.arange(p.n_groups)

    def root(group):
        while parent[group] != group:
            parent[group] = group = parent[parent[group]]
        return group

    for a, b in zip(p.group[source[joined]].tolist(), p.group[target[joined]].tolist(), strict=True):
        if kind[a] == kind[b]:
            a, b = root(a), root(b)
            parent[max(a, b)] = min(a, b)
    roots = np.array([root(group) for group in range(p.n_groups)])
    _, group = np.unique(roots[p.group], return_inverse=True)
    return problem.replace(group=group.reshape(-1))

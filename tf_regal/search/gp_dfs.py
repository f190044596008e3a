"""GP+DFS: METIS places, depth-first order schedules (a baseline of the REGAL paper, arXiv 1905.02494). Needs `pymetis`."""

import itertools

import numpy as np

from tf_regal import errors
from tf_regal.search import groups, heuristics
from tf_regal.search.incumbent import Incumbent

# How much heavier than its share a part may be, in thousandths (METIS's ufactor); and what balances: work or bytes.
_IMBALANCE = (30, 10, 100, 300, 1000, 3000)
_MAX_PARTITIONS = 240
_LARGEST_SUM = 1 << 30  # METIS may be built with 32-bit numbers


def run(task, budget):
    """The best of METIS's partitions, as many as the budget has evaluations, at most 240.

    Vertices are colocation groups (weight: mean duration, or bytes held), edges the tensors between them (weight: bytes); parts are devices,
    whose shares are as their speed (lanes / mean duration) for work and as their memory for bytes. Partitions differ by what is
    balanced, by recursive bisection or k-way, by the imbalance that is allowed, and by seed. A group whose part is a device that it may not
    use goes to its default device.

    Raises:
        MissingDependencyError: `pymetis` is not installed.
    """
    try:
        import pymetis
    except ImportError as error:
        raise errors.MissingDependencyError("method 'gp_dfs'", "pymetis") from error
    problem = task.problem
    incumbent = Incumbent(task, budget)
    priority = heuristics.order_to_priority(heuristics.depth_first_order(task), problem.n_ops)
    if problem.n_devices == 1:
        incumbent.offer(np.zeros(problem.n_ops, np.int32), priority)
        return incumbent.solution()
    edges = groups.edges(problem)
    adjacency = pymetis.CSRAdjacency(adj_starts=edges.ptr.tolist(), adjacent=edges.target.tolist())
    edge_weights = _whole(edges.size, 1)
    weights = [(_whole(weight, 0), shares.tolist()) for weight, shares in groups.balances(problem)]
    if task.objective == "peak_memory":
        weights = weights[::-1]
    seen = set()
    settings = itertools.product(range(_MAX_PARTITIONS), _IMBALANCE, (True, False), weights)
    for seed, imbalance, recursive, (vertex_weights, shares) in itertools.islice(settings, _MAX_PARTITIONS):
        options = pymetis.Options(seed=(task.seed * _MAX_PARTITIONS + seed) & 0x7FFFFFFF, ufactor=imbalance)
        parts = pymetis.part_graph(
            problem.n_devices, adjacency=adjacency, vweights=vertex_weights, eweights=edge_weights, tpwgts=shares, recursive=recursive, options=options
        ).vertex_part
        device = heuristics.constrained(task, np.asarray(parts)[problem.group])
        if device.tobytes() not in seen:  # many settings end in the same partition
            seen.add(device.tobytes())
            incumbent.offer(device, priority)
            if incumbent.done:
                break
    return incumbent.solution()


def _whole(weight, least):
    """Weights as Python ints whose sum METIS can hold."""
    scale = min(1.0, _LARGEST_SUM / max(float(weight.sum()), 1.0))
    whole = np.maximum((weight * scale).astype(np.int64), least)
    return whole.tolist()

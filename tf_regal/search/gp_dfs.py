"""GP+DFS: METIS places, depth-first order schedules (a baseline of the REGAL paper, arXiv 1905.02494). Needs `pymetis`."""

import itertools

import numpy as np

from tf_regal import errors
from tf_regal.search import heuristics
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
    adjacency, edge_weights = _group_graph(problem)
    weights = _balances(problem)
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


def _group_graph(problem):
    """The undirected graph of groups: (pymetis.CSRAdjacency, edge weights int [2 × edges])."""
    import pymetis

    consumer = np.repeat(np.arange(problem.n_ops), np.diff(problem.input_ptr))
    # A tensor that several ops of a group take is sent there once.
    pairs = np.unique(np.stack([problem.input_idx, problem.group[consumer]], axis=1), axis=0)
    source, target, size = problem.group[problem.producer[pairs[:, 0]]], pairs[:, 1], problem.size[pairs[:, 0]]
    after = np.repeat(np.arange(problem.n_ops), np.diff(problem.control_ptr))
    source = np.concatenate([source, problem.group[problem.control_idx]])
    target = np.concatenate([target, problem.group[after]])
    size = np.concatenate([size, np.zeros(len(after), np.int64)])
    between = source != target
    source, target, size = source[between], target[between], size[between]
    ends = np.concatenate([np.stack([source, target], axis=1), np.stack([target, source], axis=1)])
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), weights=np.concatenate([size, size]), minlength=len(edges))
    start = np.searchsorted(edges[:, 0], np.arange(problem.n_groups + 1))
    return pymetis.CSRAdjacency(adj_starts=start.tolist(), adjacent=edges[:, 1].tolist()), _whole(weight, 1)


def _balances(problem):
    """[(vertex weights int [groups], share per device [devices])]: by work, and by bytes."""
    work, held = heuristics.balance_weights(problem)
    duration = np.where(problem.duration >= 0, problem.duration, np.nan)
    together = ~np.isnan(duration).any(axis=1)  # ops that run on every device tell how fast devices are
    mean = duration[together].mean(axis=0) if together.any() else np.ones(problem.n_devices)
    speed = problem.lanes / np.maximum(mean, 1e-9)
    result = []
    for weight, share in ((work, speed), (held, problem.capacity.astype(float))):
        total = np.bincount(problem.group, weights=weight, minlength=problem.n_groups)
        share = np.maximum(share / share.sum(), 1e-3)  # METIS takes no empty part
        result.append((_whole(total, 0), (share / share.sum()).tolist()))
    return result


def _whole(weight, least):
    """Weights as Python ints whose sum METIS can hold."""
    scale = min(1.0, _LARGEST_SUM / max(float(weight.sum()), 1.0))
    whole = np.maximum((weight * scale).astype(np.int64), least)
    return whole.tolist()

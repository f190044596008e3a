"""Random DAGs of four families, as in the synthetic part of the REGAL data set (Paliwal et al., ICLR 2020; arXiv 1905.02494).

The paper draws costs and tensor sizes from a normal distribution of mean 50 and standard deviation 10 and names no units. Here: microseconds and
megabytes (1e6 bytes), so that a tensor takes about as long over a fast link as an op runs. Costs hold for every device ("*"): the devices are equal.
"""

import hashlib

import numpy as np

from tf_regal import errors, problem
from tf_regal.graph import OpGraph

MEAN, DEVIATION = 50.0, 10.0
NS_PER_COST, BYTES_PER_SIZE = 1_000, 1_000_000
SIZES = (50, 100, 150, 200)
SEEDS = {"train": range(25), "validation": range(100, 105), "test": range(200, 210)}
"""Seeds by split; `members` takes each with every family and size."""

_DEGREE = 4  # mean, in and out together, of every family
_BLOCKS, _WITHIN = 4, 0.85  # of a block's edges, the share that stays within it
_REWIRED = 0.3
_MAX_OPS = 100_000


def _erdos_renyi(n, rng):
    """Every pair is an edge with the same probability (Erdős and Rényi, 1959)."""
    a, b = np.triu_indices(n, 1)
    chosen = rng.random(a.size) < min(1.0, _DEGREE / max(1, n - 1))
    return np.stack([a[chosen], b[chosen]], 1)


def _stochastic_block(n, rng):
    """Pairs within one of four blocks are edges far more often than pairs across (Holland et al., 1983)."""
    block = np.arange(n) * _BLOCKS // n
    a, b = np.triu_indices(n, 1)
    same = block[a] == block[b]
    inside = _DEGREE * n / 2 * _WITHIN / max(1, int(same.sum()))
    across = _DEGREE * n / 2 * (1 - _WITHIN) / max(1, int((~same).sum()))
    chosen = rng.random(a.size) < np.where(same, inside, across)
    return np.stack([a[chosen], b[chosen]], 1)


def _watts_strogatz(n, rng):
    """A ring of neighbours, of which some edges are led elsewhere (Watts and Strogatz, 1998)."""
    edges = set()
    for distance in range(1, min(_DEGREE // 2, (n - 1) // 2) + 1):
        edges.update((min(a, (a + distance) % n), max(a, (a + distance) % n)) for a in range(n))
    for a, b in sorted(edges):
        if rng.random() < _REWIRED:
            free = [c for c in range(n) if c != a and (min(a, c), max(a, c)) not in edges]
            if free:
                c = free[rng.integers(len(free))]
                edges.remove((a, b))
                edges.add((min(a, c), max(a, c)))
    return np.array(sorted(edges), np.int64).reshape(-1, 2)


def _barabasi_albert(n, rng):
    """Every op takes two of those before it, those with many edges rather (Barabási and Albert, 1999)."""
    m = _DEGREE // 2
    edges, ends = [], list(range(m))  # `ends` has an op once per edge: a draw from it is in proportion to the degree
    for op in range(m, n):
        targets = set()
        while len(targets) < m:
            targets.add(ends[rng.integers(len(ends))])
        edges += [(t, op) for t in sorted(targets)]
        ends += [*sorted(targets), *[op] * m]
    return np.array(edges, np.int64).reshape(-1, 2)


_FAMILIES = {
    "erdos_renyi": _erdos_renyi, "stochastic_block": _stochastic_block, "watts_strogatz": _watts_strogatz, "barabasi_albert": _barabasi_albert,
}
FAMILIES = tuple(_FAMILIES)


def generate(family, n, seed):
    """A random DAG as an `OpGraph`: one tensor per op, edges led along a random order (Barabási–Albert: from old to new), results where nothing consumes.

    Args:
        family: one of FAMILIES.
        n: number of ops, 3 to 100,000; the data set has about 50 to 200.
        seed: whole number, 0 or more; the same arguments give the same graph.

    Raises:
        InvalidArgumentError: an argument is not valid.
    """
    if family not in _FAMILIES:
        raise errors.InvalidArgumentError(f"family={family!r} is not known; expected one of {', '.join(map(repr, FAMILIES))}")
    if not _is_whole(n) or not 3 <= n <= _MAX_OPS:
        raise errors.InvalidArgumentError(f"n={n!r} is not valid; expected a whole number of ops from 3 to {_MAX_OPS}")
    if not _is_whole(seed) or seed < 0:
        raise errors.InvalidArgumentError(f"seed={seed!r} is not valid; expected a whole number, 0 or more")
    rng = np.random.default_rng([FAMILIES.index(family), n, seed])
    edges = _FAMILIES[family](n, rng)
    rank = np.arange(n) if family == "barabasi_albert" else rng.permutation(n)
    backwards = rank[edges[:, 0]] > rank[edges[:, 1]]
    edges = np.where(backwards[:, None], edges[:, ::-1], edges)
    edges = edges[np.lexsort((edges[:, 0], edges[:, 1]))]
    duration, size = (np.maximum(1, np.rint(rng.normal(MEAN, DEVIATION, n) * unit)).astype(np.int64) for unit in (NS_PER_COST, BYTES_PER_SIZE))
    inputs = [[] for _ in range(n)]
    for source, target in edges.tolist():
        inputs[target].append(source)
    lifetime = np.full(n, problem.LIFETIME_OUTPUT, np.uint8)
    lifetime[edges[:, 0]] = problem.LIFETIME_NORMAL
    input_ptr, input_idx = problem.csr(inputs)
    content = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in (input_ptr, input_idx, duration, size)))
    nothing = np.zeros(n + 1, np.int32), np.zeros(0, np.int32)
    names = [f"op_{i}" for i in range(n)]
    return OpGraph(
        names=names, types=["Synthetic"] * n, devices=[""] * n, kinds=[["CPU", "GPU", "TPU"]] * n, members=[[name] for name in names],
        group=np.arange(n), persistent=np.zeros(n), orderable=np.ones(n), producer=np.arange(n), size=size, view=np.full(n, -1), lifetime=lifetime,
        reuse_ptr=nothing[0], reuse_idx=nothing[1], input_ptr=input_ptr, input_idx=input_idx, control_ptr=nothing[0], control_idx=nothing[1],
        fingerprint=content.hexdigest(), durations={"*": duration},
    )


def members(split):
    """[(family, n, seed)] of a split of the data set, for `generate`. Raises InvalidArgumentError where there is no such split."""
    if split not in SEEDS:
        raise errors.InvalidArgumentError(f"split={split!r} is not known; expected one of {', '.join(map(repr, SEEDS))}")
    return [(family, n, seed) for family in FAMILIES for n in SIZES for seed in SEEDS[split]]


def _is_whole(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

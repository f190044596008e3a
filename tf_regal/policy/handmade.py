"""Proposals by hand: what one line of insight gives without learning anything. Baselines of every policy."""

import numpy as np

from tf_regal.search import heuristics
from tf_regal.search.proposal import CONCENTRATIONS, Proposal, choice

_ELSEWHERE = 0.25


# Task and upward rank → the ops' mean priorities.
_ORDERS = {
    "rank": lambda task, rank: rank / max(rank.max(initial=0), 1),
    "depth": lambda task, rank: _falling(heuristics.depth_first_order(task)),
    "greedy": lambda task, rank: _falling(heuristics.memory_greedy_order(task)),
    "start": lambda task, rank: _falling(np.argsort(-heuristics.earliest_start(task, rank)[1], kind="stable")),
}
# Task and upward rank → the device that an op should have, or None: any.
_PLACES = {
    "free": lambda task, rank: None,
    "heft": heuristics.heft_placement,
    "etf": lambda task, rank: heuristics.earliest_start(task, rank)[0],
}
_LEVELS = (1, 3, 5, len(CONCENTRATIONS))


def names():
    """All hand-made proposals: "ORDER-PLACEMENT-LEVEL", such as "rank-heft-2": the higher the level, the narrower the distributions."""
    return [f"{order}-{place}-{level}" for order in _ORDERS for place in _PLACES for level in _LEVELS]


def propose(task, name):
    """The Proposal of a name, for a `search.Task`.

    rank, depth, greedy, start: the mean priority falls along the upward rank, depth-first, memory-greedy or earliest-start order.
    free, heft, etf: affinities uniform, or with a higher mean for the device that HEFT or the earliest-start schedule puts the op on.
    """
    order, place, level = name.split("-")
    n, d = task.problem.n_ops, task.problem.n_devices
    rank = heuristics.upward_rank(task)
    priority = choice(_ORDERS[order](task, rank), np.full(n, int(level)))
    device = _PLACES[place](task, rank)
    if device is None:
        affinity = choice(np.full((n, d), 0.5), np.zeros((n, d)))
    else:
        affinity = choice(np.where(device[:, None] == np.arange(d), 1 - _ELSEWHERE, _ELSEWHERE), np.full((n, d), int(level)))
    return Proposal(affinity, priority, name)


def _falling(order):
    n = len(order)
    mean = np.empty(n)
    mean[np.asarray(order)] = 1 - (np.arange(n) + 0.5) / max(n, 1)
    return mean

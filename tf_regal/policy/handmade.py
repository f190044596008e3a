"""Proposals by hand: what one line of insight gives without learning anything. Baselines of every policy."""

import numpy as np

from tf_regal.search import heuristics
from tf_regal.search.proposal import CONCENTRATIONS, Proposal, choice

_ELSEWHERE = 0.25


def _orders(task):
    n = task.problem.n_ops
    upward = heuristics.upward_rank(task)
    yield "rank", upward / max(upward.max(initial=0), 1)
    yield "depth", _falling(heuristics.depth_first_order(task), n)
    yield "greedy", _falling(heuristics.memory_greedy_order(task), n)
    yield "start", _falling(np.argsort(-heuristics.earliest_start(task, upward)[1], kind="stable"), n)


def _placements(task):
    upward = heuristics.upward_rank(task)
    yield "free", None
    yield "heft", heuristics.heft_placement(task, upward)
    yield "etf", heuristics.earliest_start(task, upward)[0]


def names():
    """All hand-made proposals: "ORDER-PLACEMENT-LEVEL", such as "rank-heft-2": the higher the level, the narrower the distributions."""
    orders, places, levels = ("rank", "depth", "greedy", "start"), ("free", "heft", "etf"), (1, 3, 5, len(CONCENTRATIONS))
    return [f"{order}-{place}-{level}" for order in orders for place in places for level in levels]


def propose(task, name):
    """The Proposal of a name, for a `search.Task`.

    rank, depth, greedy, start: the mean priority falls along the upward rank, depth-first, memory-greedy or earliest-start order.
    free, heft, etf: affinities uniform, or with a higher mean for the device that HEFT or the earliest-start schedule puts the op on.
    """
    order, place, level = name.split("-")
    n, d = task.problem.n_ops, task.problem.n_devices
    priority = choice(dict(_orders(task))[order], np.full(n, int(level)))
    device = dict(_placements(task))[place]
    if device is None:
        affinity = choice(np.full((n, d), 0.5), np.zeros((n, d)))
    else:
        affinity = choice(np.where(device[:, None] == np.arange(d), 1 - _ELSEWHERE, _ELSEWHERE), np.full((n, d), int(level)))
    return Proposal(affinity, priority, name)


def _falling(order, n):
    mean = np.empty(n)
    mean[np.asarray(order)] = 1 - (np.arange(n) + 0.5) / max(n, 1)
    return mean

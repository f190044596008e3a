"""Local search: hill climbing over single changes, with restarts (a baseline of the REGAL paper, arXiv 1905.02494)."""

import numpy as np

from tf_regal.search import heuristics
from tf_regal.search.incumbent import Incumbent


def run(task, budget):
    """First improvement: the first change that makes the plan no worse is kept.

    A change moves one group to another device, or gives one op another priority. Where every single change has been tried since the
    last improvement, it starts again. It starts from the default plan, later from random plans.
    """
    rng = np.random.default_rng(task.seed)
    incumbent = Incumbent(task, budget)
    devices = _devices_of_groups(task)
    start = _default(task, incumbent)
    while True:
        _climb(task, incumbent, rng, devices, *start)
        if incumbent.done:
            return incumbent.solution()
        group_device = np.array([rng.choice(d) for d in devices], np.int32)
        priority = rng.random(task.problem.n_ops, dtype=np.float32)
        start = group_device, priority, incumbent.offer(group_device[task.problem.group], priority)


def _default(task, incumbent):
    """The default plan as (device per group, priority in 0 … 1, key)."""
    n = task.problem.n_ops
    solution, key = incumbent.schedule(np.asarray(task.default_device, np.int32), "fifo")
    _, first = np.unique(task.problem.group, return_index=True)
    return solution.device[first], heuristics.order_to_priority(solution.run.start_order, n) / np.float32(n + 1), key


def _climb(task, incumbent, rng, devices, group_device, priority, key):
    """Until nothing is left to try or the budget is used up."""
    group, n = task.problem.group, task.problem.n_ops
    moves = [(g, q) for g, choice in enumerate(devices) if len(choice) > 1 for q in choice.tolist()] + [(op, -1) for op in range(n)]
    tried = 0
    order = rng.permutation(len(moves))
    position = 0
    while tried < len(moves) and not incumbent.done:
        if position == len(moves):
            order, position = rng.permutation(len(moves)), 0
        what, q = moves[order[position]]
        position += 1
        tried += 1
        if q >= 0:
            if group_device[what] == q:
                continue
            changed, new_priority = group_device.copy(), priority
            changed[what] = q
        else:
            changed, new_priority = group_device, priority.copy()
            new_priority[what] = rng.random(dtype=np.float32)
        new_key = incumbent.offer(changed[group], new_priority)
        if new_key <= key:  # changes of no effect are kept too: most plans lie on plateaus
            if new_key < key:
                tried = 0
            group_device, priority, key = changed, new_priority, new_key


def _devices_of_groups(task):
    """Per group: the devices where it may run, int [any]."""
    allowed = task.simulator.allowed
    bits = np.arange(task.problem.n_devices, dtype=np.uint64)
    return [np.flatnonzero(mask >> bits & np.uint64(1)) for mask in allowed]

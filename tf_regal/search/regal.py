"""The full search: heuristics as seeds of BRKGA's first population."""

import numpy as np

from tf_regal.search import brkga, heuristics

_ALTERNATIVES = 4


def run(task, budget):
    """The best of everything: the default plan and the heuristics on every placement that they suggest, improved by BRKGA."""
    found = seeds(task)[: budget.evaluations]
    solution = brkga.run(task, budget, seeds=[(s.device, s.priority, s.transfer_priority) for s in found])
    solution.alternatives = found[:_ALTERNATIVES]
    return solution


def seeds(task):
    """Solutions of the list heuristics, the default plan among them, best first."""
    problem, n = task.problem, task.problem.n_ops
    rank = heuristics.upward_rank(task)
    greedy, depth = heuristics.memory_greedy_order(task), heuristics.depth_first_order(task)
    priorities = {
        "critical_path": rank.astype(np.float32),
        "memory_greedy": heuristics.order_to_priority(greedy, n),
        "depth_first": heuristics.order_to_priority(depth, n),
    }
    placements = [task.default_device]
    if problem.n_devices > 1:
        work, held = heuristics.balance_weights(problem)
        placements += [
            heuristics.heft_placement(task, rank),
            heuristics.chunk_placement(task, depth, work),
            heuristics.chunk_placement(task, depth, held),
            heuristics.chunk_placement(task, greedy, held),
        ]
    found = []
    none = np.zeros(n, np.float32)
    for device in placements:
        found.extend(task.evaluate(device, none, discipline=d) for d in ("fifo", "lifo"))
        found.extend(task.evaluate(device, priority) for priority in priorities.values())
    return sorted(found, key=lambda s: task.key(s.run))

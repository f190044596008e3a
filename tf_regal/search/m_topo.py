"""m-TOPO of Baechi (Jeon et al., SoCC 2020): a topological order cut into one run per device by a memory cap."""

import numpy as np

from tf_regal.search import heuristics
from tf_regal.search.incumbent import Incumbent


def run(task, budget):
    """Fills device after device up to a cap of (all bytes) / devices + (the largest op's bytes), or its capacity where that is less.

    An op's bytes are its persistent memory and its outputs, as if none of them was ever freed; a colocation group comes as a whole with its first op.
    An op that may not run on the device whose turn it is goes to the first one with room that it may use. The order is the topological order itself.
    """
    problem = task.problem
    order = task.simulator.topological_order
    incumbent = Incumbent(task, budget)
    incumbent.offer(_place(task, order.tolist()), heuristics.order_to_priority(order, problem.n_ops))
    return incumbent.solution()


def _place(task, order):
    problem, d = task.problem, task.problem.n_devices
    held = heuristics.balance_weights(problem)[1]
    bytes_of = np.bincount(problem.group, weights=held, minlength=problem.n_groups).tolist()
    share = sum(bytes_of) / d + max(bytes_of, default=0.0)
    room = [min(share, float(c)) for c in problem.capacity.tolist()]
    allowed, group = task.simulator.allowed.tolist(), problem.group.tolist()
    of_group, current = [-1] * problem.n_groups, 0
    for op in order:
        g = group[op]
        if of_group[g] >= 0:
            continue
        may = [q for q in range(d) if allowed[g] >> q & 1]
        if current in may:
            # What fits nowhere stays on the last device.
            while current < d - 1 and room[current] < bytes_of[g]:
                current += 1
        if current in may:
            q = current
        else:
            q = next((q for q in may if room[q] >= bytes_of[g]), may[-1])
        of_group[g] = q
        room[q] -= bytes_of[g]
    return np.array([of_group[g] for g in group], np.int32)

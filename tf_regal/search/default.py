"""The default plan: TensorFlow's own device and its executor's order; and everything on one device."""

import numpy as np

from tf_regal.search import heuristics


def run(task, budget):
    """TensorFlow's default device for every op, ready ops first come, first served (the executor's queue)."""
    return task.evaluate(task.default_device, np.zeros(task.problem.n_ops, np.float32), discipline="fifo")


def run_single_device(task, budget):
    """Every op that may go there on one device, for each device in turn; the best of them."""
    problem = task.problem
    solutions = []
    for q in range(problem.n_devices):
        solutions.append(
            task.evaluate(heuristics.constrained(task, np.full(problem.n_ops, q)), np.zeros(problem.n_ops, np.float32), discipline="fifo")
        )
    best = task.best(solutions)
    best.evaluations = len(solutions)
    return best

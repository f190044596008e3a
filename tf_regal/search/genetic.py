"""BRKGA with other parameters than the yardstick's."""

import numpy as np

from tf_regal import ops
from tf_regal.search.task import Solution


def evolve(task, budget, *, population, elites, mutants, rho=0.7):
    """Runs `ops.Brkga` with uniform proposals until the budget is used up → Solution. The options are those of `ops.Brkga`."""
    search = ops.Brkga(
        task.simulator, objective=task.objective, makespan_limit=task.makespan_limit, population=population, elites=elites, mutants=mutants,
        rho=rho, seed=task.seed, threads=budget.threads,
    )
    target = population
    while True:
        before = search.evaluations
        search.evolve(min(target, budget.evaluations))
        if task.progress is not None:
            task.progress(search.evaluations - before)
        if search.evaluations >= budget.evaluations or budget.expired:
            break
        target = search.evaluations + population - elites  # a whole generation: only so is a run in steps the same as one in one go
    best = search.best
    run = task.simulator.run(best.device, best.priority, best.transfer_priority, timeline=True)
    return Solution(
        np.asarray(best.device), np.asarray(best.priority), best.transfer_priority, run, evaluations=search.evaluations, history=search.history
    )

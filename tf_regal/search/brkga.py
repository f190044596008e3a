"""Plain BRKGA. With uniform proposals it is the yardstick of every result ("BRKGA 5K" = 5,000 evaluations); with a policy's it is REGAL."""

import numpy as np

from tf_regal import ops
from tf_regal.search.task import Solution

# Of the first population and the mutants, half are drawn from the proposal and half uniformly: where a proposal misleads, the search gets away from
# it, and where it is good, little is lost (docs/policy.md).
PROPOSAL_SHARE = 0.5


def run(task, budget, seeds=(), before=0, *, population=100, elites=20, mutants=15, rho=0.7, proposal_share=PROPOSAL_SHARE):
    """Until the budget is used up, with keys drawn from the task's proposal.

    Args:
        seeds: candidates of the first population, (device, priority, transfer_priority or None) each.
        before: evaluations made before, for the task's trace.
        population, elites, mutants, rho, proposal_share: as of `ops.Brkga`; the defaults are the yardstick's.
    """
    search = ops.Brkga(
        task.simulator, objective=task.objective, makespan_limit=task.makespan_limit, population=population, elites=elites, mutants=mutants,
        rho=rho, seed=task.seed, threads=budget.threads, seeds=seeds, proposal=None if task.proposal is None else task.proposal.keys(task.problem),
        proposal_share=proposal_share,
    )
    # Whole generations at a time, so that the clock and the progress bar are looked at often: only so is a run in steps the same as one in one go.
    target = max(population, len(seeds))
    while True:
        done = search.evaluations
        search.evolve(min(target, budget.evaluations))
        if task.progress is not None:
            task.progress(search.evaluations - done)
        if search.evaluations >= budget.evaluations or budget.expired:
            break
        target = search.evaluations + population - elites
    if task.trace is not None:
        task.trace.generations("genetic search", max(population, len(seeds)), population - elites, before, search.evaluations, search.history)
    best = search.best
    run = task.simulator.run(best.device, best.priority, best.transfer_priority, timeline=True)
    return Solution(
        np.asarray(best.device), np.asarray(best.priority), best.transfer_priority, run, evaluations=search.evaluations, history=search.history
    )

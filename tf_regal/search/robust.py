"""The candidate that holds best where costs and links are not quite what was assumed.

One optimum of one cost model is brittle (Robust Scheduling with GFlowNets, ICLR 2023, measures it): it may lean on a transfer that fits exactly into a gap.
So what a search has found is scored over perturbed problems, and a part of the search is made on a pessimistic one.
"""

import dataclasses

import numpy as np

from tf_regal.search.task import Budget, replay

SCENARIOS = 16
_SHARE = 0.1  # of the evaluations, for the search on the pessimistic problem


def search(method, task, budget, spread):
    """Runs `method` (Task, Budget → Solution) and chooses among its best solutions, and those of a search with slower links, the most robust.

    Args:
        spread: standard deviation of the logarithm of each op's duration; links' latency and time per byte vary twice as much, all together.

    Returns:
        the Solution with the best mean figure over SCENARIOS perturbed problems; its evaluations are all that were made.
    """
    for_slow = int(budget.evaluations * _SHARE)
    main = method(task, Budget(max(1, budget.evaluations - for_slow - SCENARIOS), budget.seconds, budget.threads))
    candidates, made = [main, *main.alternatives], main.evaluations
    if for_slow and task.problem.n_devices > 1 and not budget.expired:
        slow = method(dataclasses.replace(task, problem=_links(task.problem, 1 + 4 * spread), trace=None), Budget(for_slow, budget.seconds, budget.threads))
        made += slow.evaluations
        candidates += [dataclasses.replace(s, run=replay(task, s)) for s in (slow, *slow.alternatives)]
    scores = np.array([[task.key(run)[:3] for run in runs] for runs in _runs(task, candidates, spread)], float).mean(axis=1)
    best = min(range(len(candidates)), key=lambda i: tuple(scores[i]))
    made += SCENARIOS * len(candidates)
    rest = [candidate for i, candidate in enumerate(candidates) if i != best]
    return dataclasses.replace(candidates[best], evaluations=made, alternatives=rest)


def _runs(task, candidates, spread):
    """Per candidate its runs in the scenarios, which are the same for all."""
    tasks = [dataclasses.replace(task, problem=problem) for problem in scenarios(task.problem, spread, task.seed)]
    return [[replay(scenario, s, timeline=False) for scenario in tasks] for s in candidates]


def scenarios(problem, spread, seed, count=SCENARIOS):
    """Perturbed problems, the same for the same seed."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ops = np.exp(rng.normal(0, spread, (problem.n_ops, 1)))
        links = np.exp(rng.normal(0, 2 * spread))
        duration = np.where(problem.duration >= 0, np.round(problem.duration * ops).astype(np.int64), problem.duration)
        yield _links(problem.replace(duration=duration), links)


def _links(problem, factor):
    return problem.replace(latency=np.round(problem.latency * factor).astype(np.int64), ns_per_byte=problem.ns_per_byte * factor)

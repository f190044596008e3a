"""The full search: heuristics and samples of them as seeds, BRKGA, and a local search that goes on from the best.

Every ingredient can be left out, so that its worth can be measured: `run(task, budget, without={"seeds"})`, or the method
"regal-without-seeds".
"""

import dataclasses
import itertools
import types

import numpy as np

from tf_regal import ops
from tf_regal.search import brkga, contraction, groups, heuristics
from tf_regal.search.control_edges import hold_back
from tf_regal.search.task import Budget, Solution, replay
from tf_regal.search.trace import figure

INGREDIENTS = {
    "seeds": "list heuristics on the placements that they suggest (without: the default plan alone)",
    "policy": "the middle of the task's proposal as a seed, where there is one",
    "decoders": "samples of the heuristics with random factors: earliest finish for runtime, memory-greedy and depth-first for memory",
    "contraction": "ops without a choice of their own are placed with the op that decides for them",
    "genetic": "BRKGA from the seeds, before the local search",
    "screening": "the local search simulates the most promising of several changes only, by a quick estimate",
    "holding": "for memory: the local search may let devices wait",
    "local_search": "late-acceptance hill climbing from the best that was found (without: BRKGA for the whole budget)",
}

_SAMPLES_SHARE = 0.02  # of the evaluations, for the decoders
_GENETIC_SHARE, _GENETIC_SHARE_ORDER = 0.1, 0.4  # of the evaluations and seconds; where only the order is to be found (one device)
_CHAINS = 6            # at most; fewer where each would have no time to get anywhere
_STEPS = 300           # evaluations of a chain, at least (but two chains in any case)
_STARTS = 12           # placements that the local search may begin with
_PROPOSALS = 8         # changes per simulated one of the local search
_SCREENED_COST = 2.0   # of an evaluation with its estimates, in evaluations without
_SLACK = {"runtime": 0.0, "peak_memory": 0.04}  # of the local search, at its beginning
_SIGMAS = (0.05, 0.1, 0.2, 0.4)
_ALTERNATIVES = 4
_IMBALANCES = (0.02, 0.1)  # of the partitions among the seeds
_DISCIPLINES = {"fifo": "first come, first served", "lifo": "last come, first served"}
_RANKS = {0.0: "transfers free", 1.0: "with transfers"}


def run(task, budget, without=()):
    """Args: without: names of INGREDIENTS that are left out."""
    proposal = None if "policy" in without else task.proposal
    if task.proposal is not None:  # BRKGA draws uniformly here: among seeds this good, what it adds is variety (docs/policy.md)
        task = dataclasses.replace(task, proposal=None)
    searched = task
    if "contraction" not in without and task.problem.n_devices > 1:
        searched = dataclasses.replace(task, problem=contraction.contract(task.problem, task.default_device))
    found = [_default(searched)] if "seeds" in without else seeds(searched, budget.evaluations)
    if proposal is not None and len(found) < budget.evaluations:
        found.append(_without_timeline(searched.evaluate(*proposal.centre(searched.problem))))
    if "decoders" not in without:
        count = min(int(budget.evaluations * _SAMPLES_SHARE), budget.evaluations - len(found))
        found += samples(searched, count, budget)
    found.sort(key=lambda s: task.key(s.run))
    if task.progress is not None:
        task.progress(len(found))
    used, best = len(found), found[0]
    if task.trace is not None:
        task.trace.point("seeds", used, figure(task, best.run))
    starts = _distinct(found)[:_STARTS]
    share = _GENETIC_SHARE if task.problem.n_devices > 1 else _GENETIC_SHARE_ORDER
    if "genetic" in without:
        share = 0.0
    if "local_search" in without:
        share = 1.0
    evaluations = int(budget.evaluations * share) - used
    if evaluations > len(found) or (share == 1.0 and evaluations > 0):
        evolved = brkga.run(searched, _part(budget, evaluations, share), seeds=[_seed(s) for s in found[:evaluations]], before=used)
        used += evolved.evaluations
        starts.insert(0, evolved)
        best = task.best([best, evolved])
    evaluations = budget.evaluations - used
    if evaluations > 0 and "local_search" not in without and not budget.expired:
        proposals = 1 if "screening" in without or task.problem.n_devices == 1 else _PROPOSALS  # for one device's order it gained nothing
        improved = _improve(task, budget, starts[:evaluations], evaluations, used, task.may_hold and "holding" not in without, proposals)
        used += improved.evaluations
        best = task.best([best, improved])
    best = _with_timeline(task, best)
    return dataclasses.replace(best, evaluations=used, alternatives=[_with_timeline(task, s) for s in found[:_ALTERNATIVES]])


def seeds(task, limit=1000):
    """Solutions of the list heuristics, the default plan first; `limit` at most."""
    found = []
    for label, solution in itertools.islice(_seeds(task), limit):
        found.append(_without_timeline(solution))
        if task.trace is not None:
            task.trace.seed(label, solution.run)
    return found


def _seeds(task):
    """(what it is, Solution), one after the other."""
    n, none = task.problem.n_ops, np.zeros(task.problem.n_ops, np.float32)
    for discipline, called in _DISCIPLINES.items():
        yield f"default placement, {called}", task.evaluate(task.default_device, none, discipline=discipline)
    rank = heuristics.upward_rank(task)
    greedy, depth = heuristics.memory_greedy_order(task), heuristics.depth_first_order(task)
    priorities = {
        "critical path first": rank.astype(np.float32), "least memory first": heuristics.order_to_priority(greedy, n),
        "depth first": heuristics.order_to_priority(depth, n),
    }  # fmt: skip
    for i, (placed, device) in enumerate(_placements(task, greedy, depth)):
        for called, priority in priorities.items():
            yield f"{placed}, {called}", task.evaluate(device, priority)
        if i > 0:
            for discipline, called in _DISCIPLINES.items():
                yield f"{placed}, {called}", task.evaluate(device, none, discipline=discipline)
    if task.problem.n_devices > 1:
        for weight in (0.0, 1.0):
            label = f"earliest start, {_RANKS[weight]}"
            yield label, task.evaluate(*heuristics.earliest_start(task, heuristics.upward_rank(task, weight)))


def _placements(task, greedy, depth):
    """List of (what it is, device int32 [ops])."""
    placements = [("default placement", task.default_device)]
    if task.problem.n_devices == 1:
        return placements
    work, held = heuristics.balance_weights(task.problem)
    layers = heuristics.depth_order(task)
    placements += [(f"HEFT, {_RANKS[weight]}", heuristics.heft_placement(task, heuristics.upward_rank(task, weight))) for weight in (0.0, 1.0)]
    orders, weights = {"depth-first": depth, "least-memory": greedy, "layer": layers}, {"work": work, "memory": held}
    placements += [
        (f"{order} order cut by {weight}", heuristics.chunk_placement(task, orders[order], weights[weight])) for order in orders for weight in weights
    ]
    between = groups.edges(task.problem)
    for i, balance in enumerate(groups.balances(task.problem)):
        for imbalance in _IMBALANCES:
            label = f"partition {i + 1}, imbalance {imbalance:.0%}"
            placements.append((label, groups.partition_placement(task, balance, imbalance, task.seed, between)))
    return placements


def samples(task, count, budget):
    """`count` more candidates: the heuristics for the objective with random factors for what they go by. List of Solutions."""
    rng = np.random.default_rng(task.seed)
    n, d = task.problem.n_ops, task.problem.n_devices
    work, held = heuristics.balance_weights(task.problem)
    layers = heuristics.depth_order(task)
    found = []
    for i in range(count):
        if budget.expired:
            break
        noise = np.exp(rng.normal(0, _SIGMAS[i % len(_SIGMAS)], n))
        if task.objective == "runtime" and d > 1:
            rank = heuristics.upward_rank(task, rng.choice([0.0, 0.5, 1.0, 2.0])) * noise
            if i % 2:
                found.append(_without_timeline(task.evaluate(*heuristics.earliest_start(task, rank))))
            else:
                found.append(_without_timeline(task.evaluate(heuristics.heft_placement(task, rank), rank.astype(np.float32))))
            continue
        order = heuristics.memory_greedy_order(task, noise) if i % 2 else heuristics.depth_first_order(task, noise)
        device = task.default_device
        if d > 1:
            along = layers if rng.random() < 0.5 else order
            device = heuristics.chunk_placement(task, along, work if rng.random() < 0.3 else held, shares=rng.dirichlet(np.full(d, 8.0)))
        found.append(_without_timeline(task.evaluate(device, heuristics.order_to_priority(order, n))))
    return found


def _improve(task, budget, starts, evaluations, before, hold, proposals):
    """The local search, from the best of the starts; `before`: evaluations made so far. hold: whether it may hold ops back. proposals: per evaluation."""
    horizon = evaluations
    if budget.seconds is not None:  # as many as there is time for, going by what an evaluation has taken so far
        made = budget.evaluations - evaluations
        affordable = made / max(budget.elapsed, 1e-3) * max(budget.seconds - budget.elapsed, 0.0) / (_SCREENED_COST if proposals > 1 else 1.0)
        horizon = max(1, int(min(evaluations, affordable)))  # the smaller one first: endless seconds are no integer
    chains = min(_CHAINS, max(2, horizon // _STEPS))
    search = ops.LocalSearch(
        task.simulator, objective=task.objective, makespan_limit=task.makespan_limit, chains=chains, slack=_SLACK[task.objective],
        horizon=horizon, proposals=proposals, hold=hold, seed=task.seed, threads=budget.threads, starts=[_seed(s) for s in starts],
    )
    done = 0
    while True:
        if task.progress is not None:
            task.progress(search.evaluations - done)
        done = search.evaluations
        if task.trace is not None:
            task.trace.point("local search", before + done, figure(task, search.best))
        if done >= evaluations or budget.expired:
            break
        search.improve(min(done + 50 * chains, evaluations))
    best = search.best
    order = np.argsort(-np.asarray(best.priority), kind="stable")
    found = Solution(best.device, best.priority, best.transfer_priority, None, evaluations=done, held=hold_back(task, order, best.hold))
    return dataclasses.replace(found, run=replay(task, found))


def _distinct(solutions):
    """The first solution of each placement."""
    return list({s.device.tobytes(): s for s in reversed(solutions)}.values())[::-1]


def _default(task):
    return _without_timeline(task.evaluate(task.default_device, np.zeros(task.problem.n_ops, np.float32), discipline="fifo"))


def _without_timeline(solution):
    """The timelines of a hundred seeds of a large graph are gigabytes; the figures are enough until one is chosen."""
    run = solution.run
    figures = types.SimpleNamespace(makespan=run.makespan, peak=run.peak, transfer_bytes=run.transfer_bytes, feasible=run.feasible)
    return dataclasses.replace(solution, run=figures)


def _with_timeline(task, solution):
    if hasattr(solution.run, "start"):
        return solution
    return dataclasses.replace(solution, run=replay(task, solution))


def _seed(solution):
    return solution.device, solution.priority, solution.transfer_priority


def _part(budget, evaluations, share):
    seconds = None if budget.seconds is None else max(share * budget.seconds - budget.elapsed, 1e-3)
    return Budget(evaluations, seconds, budget.threads)

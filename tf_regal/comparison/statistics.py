"""What a set of runs shows: improvements with confidence intervals, gaps, and who is best."""

import collections
import dataclasses
import math

import numpy as np

from tf_regal.comparison import results
from tf_regal.plans import planner

ROOM = 0.02
"""A graph has room where the best known is at least this share below the baseline's median."""

BEST_WITHIN = 0.005
"""A method is best on a graph where no other one is better by more than this share."""

NEAR_BOUND = 0.01
"""A method is near the bound of a graph where its mean is above it by this share at most."""

RESAMPLES = 10_000
_ROUNDING = 1 + 1e-12


@dataclasses.dataclass(frozen=True, order=True)
class Outcome:
    """What one run gave; ordered as results are: by bytes above the devices' memory, then ns above the makespan limit, then the objective."""

    excess: int
    late: int
    value: int
    time_s: float = dataclasses.field(default=0.0, compare=False)
    evaluations_made: int = dataclasses.field(default=0, compare=False)

    @property
    def feasible(self):
        return self.excess == 0 and self.late == 0


@dataclasses.dataclass
class Graph:
    """Everything that was found for one graph under one setting.

    bound: lower bound of the objective, ns or bytes. best_known: the smallest feasible value of all results, None where there is none.
    default: the default plan's Outcome, None where it was not run. outcomes: {label: {seed: Outcome}}; seed None: holds for all seeds.
    """

    name: str
    group: str
    ops: int
    bound: int
    best_known: int | None
    default: Outcome | None
    outcomes: dict


@dataclasses.dataclass(frozen=True)
class Row:
    """One method on a set of graphs. Shares: 0.1 is 10 %; None where there is nothing to say.

    graphs: with a result of the method. compared: graphs where both the method and the baseline are feasible for at least one seed: over them
    go improvement, its 95 % interval low … high, and the gaps (to the best known, and to the lower bound).
    or_default, or_default_low, or_default_high: improvement and interval where an infeasible run counts as the default plan, which is what is kept
    then: over all graphs where both have a value so.
    headroom: the mean improvement as a share of the mean improvement that the best known would be, over the same graphs.
    near_bound: share of all graphs of the set where its mean over the seeds is within NEAR_BOUND of the lower bound.
    best: share of all graphs of the set where it is best. worse_than_default: graphs where any run is worse than the default plan.
    runs, infeasible: runs, and how many of them exceed memory or makespan limit. over_budget: runs that took more evaluations than they were given.
    time_s: median of the runs.
    """

    label: str
    graphs: int
    compared: int
    improvement: float | None
    low: float | None
    high: float | None
    or_default: float | None
    or_default_low: float | None
    or_default_high: float | None
    gap_best: float | None
    gap_bound: float | None
    headroom: float | None
    near_bound: float | None
    best: float | None
    worse_than_default: int
    runs: int
    infeasible: int
    over_budget: int
    time_s: float | None


@dataclasses.dataclass(frozen=True)
class Summary:
    """A set of graphs under one setting.

    graphs, groups: how many. proven: graphs whose best known is the lower bound, so that nothing better exists. default_infeasible: graphs
    whose default plan is not feasible; unsolved: without any feasible result; baseline_infeasible: where no run of the baseline is feasible. rows: list of Row.
    """

    graphs: int
    groups: int
    proven: int
    default_infeasible: int
    unsolved: int
    baseline_infeasible: int
    rows: list


def collect(cases, specs, default, records, n_seeds, any_version=False):
    """Results → list of Graph.

    Args:
        cases: list of `runner.Case` of one setting. specs: list of `methods.Spec`; default: the Spec of the default plan.
        records: all records of the results file: also those of other budgets, seeds, objectives and versions of the code count for the best known.
        n_seeds: only seeds below are counted otherwise.
        any_version: also results of other versions of the code are, for seeds that this one was not run with; the newest of them.
    """
    from tf_regal.comparison import runner

    by_problem, by_key = collections.defaultdict(list), collections.defaultdict(dict)
    for record in records:
        by_problem[record["problem"]].append(record)
        seed = record["seed"] if record["seeded"] else None
        for key in {results.key(record), results.key(record, any_version)}:
            by_key[key][seed] = record
    graphs = []
    for case in cases:
        found = {}
        for spec in dict.fromkeys([*specs, default]):
            wanted = runner.record_of(case, spec, 0, {})
            chosen = by_key.get(results.key(wanted, any_version), {}) | by_key.get(results.key(wanted), {})
            if None in chosen:
                chosen = {None: chosen[None]}
            kept = {seed: _outcome(record) for seed, record in chosen.items() if seed is None or seed < n_seeds}
            if kept:
                found[spec.label] = kept
        known = found.get(default.label)
        default_outcome = next(iter(known.values())) if known else None
        limit = _limit(case, by_problem[case.problem])
        graphs.append(
            Graph(case.name, case.group, case.ops, case.bound, _best_known(case, by_problem[case.problem], limit), default_outcome, found)
        )
    return graphs


def _outcome(record):
    value = record["makespan" if record["objective"] == "runtime" else "peak"]
    return Outcome(record["excess"], record["late"], value, record["time_s"], record["evaluations_made"])


def _limit(case, records):
    """The makespan that "peak_memory" allows, ns; None for "runtime" and where the default plan was not run."""
    if case.setting.objective == "runtime":
        return None
    default = next((record["makespan"] for record in records if record["method"] == "default"), None)
    return None if default is None else planner.makespan_limit(case.setting.max_slowdown, default)


def _best_known(case, records, limit):
    fits = [record for record in records if record["excess"] == 0]
    if case.setting.objective == "runtime":
        return min((record["makespan"] for record in fits), default=None)
    return min((record["peak"] for record in fits if limit is not None and record["makespan"] <= limit), default=None)


def with_room(graphs, baseline):
    """The graphs whose best known is at least 2 % below the median of the baseline (an infeasible run counts as infinite)."""
    found = []
    for graph in graphs:
        if graph.best_known is None or baseline not in graph.outcomes:
            continue
        median = np.median([o.value if o.feasible else math.inf for o in graph.outcomes[baseline].values()])
        if graph.best_known <= (1 - ROOM) * median * _ROUNDING:
            found.append(graph)
    return found


def summarize(graphs, labels, baseline, budgets=None, resamples=RESAMPLES):
    """list of Graph → Summary with a Row per label. budgets: {label: evaluations}, to see who took more."""
    rows = [_row(graphs, label, baseline, labels, (budgets or {}).get(label), resamples) for label in labels]
    return Summary(
        graphs=len(graphs),
        groups=len({graph.group for graph in graphs}),
        proven=sum(graph.best_known == graph.bound for graph in graphs),
        default_infeasible=sum(graph.default is not None and not graph.default.feasible for graph in graphs),
        unsolved=sum(graph.best_known is None for graph in graphs),
        baseline_infeasible=sum(not any(o.feasible for o in graph.outcomes.get(baseline, {}).values()) for graph in graphs),
        rows=rows,
    )


def _row(graphs, label, baseline, labels, budget, resamples):
    have = [graph for graph in graphs if label in graph.outcomes]
    runs = [outcome for graph in have for outcome in graph.outcomes[label].values()]
    improvements = [improvement(graph, label, baseline) for graph in have]
    compared = [i for i, value in enumerate(improvements) if value is not None]
    mean, low, high = bootstrap_mean([improvements[i] for i in compared], [have[i].group for i in compared], resamples)
    kept = [(improvement(graph, label, baseline, or_default=True), graph.group) for graph in have]
    kept = [(value, group) for value, group in kept if value is not None]
    or_default = bootstrap_mean([value for value, _ in kept], [group for _, group in kept], resamples)
    return Row(
        label=label,
        graphs=len(have),
        compared=len(compared),
        improvement=mean,
        low=low,
        high=high,
        or_default=or_default[0],
        or_default_low=or_default[1],
        or_default_high=or_default[2],
        gap_best=_mean([gap(have[i], label, have[i].best_known) for i in compared]),
        gap_bound=_mean([gap(have[i], label, have[i].bound) for i in compared]),
        headroom=_headroom([improvements[i] for i in compared], [_possible(have[i], baseline) for i in compared]),
        near_bound=_share(graphs, lambda graph: mean_value(graph, label) <= (1 + NEAR_BOUND) * _ROUNDING * graph.bound),
        best=_share(graphs, lambda graph: is_best(graph, label, labels)),
        worse_than_default=sum(worse_than_default(graph, label) for graph in have),
        runs=len(runs),
        infeasible=sum(not outcome.feasible for outcome in runs),
        over_budget=sum(budget is not None and outcome.evaluations_made > budget for outcome in runs),
        time_s=float(np.median([outcome.time_s for outcome in runs])) if runs else None,
    )


def improvement(graph, label, baseline, or_default=False):
    """1 − value / value of the baseline: mean over the seeds where both are feasible; None where there is none.

    Runs with the same seed are paired; a result that holds for all seeds is paired with each. or_default: an infeasible run counts as the default plan.
    """
    ours, theirs = graph.outcomes.get(label, {}), graph.outcomes.get(baseline, {})
    seeds = sorted({seed for seed in [*ours, *theirs] if seed is not None}) or [None]
    shares = []
    for seed in seeds:
        a, b = (outcomes.get(seed, outcomes.get(None)) for outcomes in (ours, theirs))
        if or_default and graph.default is not None:
            a, b = (outcome if outcome is None or outcome.feasible else graph.default for outcome in (a, b))
        if a is not None and b is not None and a.feasible and b.feasible and (b.value > 0 or a.value == 0):
            shares.append(1 - a.value / b.value if b.value else 0.0)
    return _mean(shares)


def _possible(graph, baseline):
    """The improvement over the baseline that the best known is: mean over the baseline's feasible runs."""
    return _mean([1 - graph.best_known / o.value if o.value else 0.0 for o in graph.outcomes[baseline].values() if o.feasible])


def _headroom(improvements, possible):
    return sum(improvements) / sum(possible) if sum(possible) > 0 else None


def gap(graph, label, least):
    """value / least − 1: mean over the feasible runs; None where there is none, or nothing to compare with."""
    values = [outcome.value for outcome in graph.outcomes[label].values() if outcome.feasible]
    if not values or least is None or (least == 0 and any(values)):
        return None
    return sum(value / least - 1 if least else 0.0 for value in values) / len(values)


def mean_value(graph, label):
    """Mean over the seeds; infinite where any run is infeasible or there is none."""
    runs = graph.outcomes.get(label, {}).values()
    return sum(outcome.value for outcome in runs) / len(runs) if runs and all(outcome.feasible for outcome in runs) else math.inf


def is_best(graph, label, labels):
    """Whether no label's mean over the seeds is more than 0.5 % below this one's. Never where a run of it is infeasible."""
    mine = mean_value(graph, label)
    return mine < math.inf and mine <= (1 + BEST_WITHIN) * _ROUNDING * min(mean_value(graph, other) for other in labels)


def worse_than_default(graph, label):
    """Whether any run of it is worse than the default plan."""
    return graph.default is not None and any(outcome > graph.default for outcome in graph.outcomes[label].values())


def bootstrap_mean(values, groups, resamples=RESAMPLES, seed=0):
    """(mean, low, high): the mean, and its 95 % percentile interval when whole groups are drawn with replacement.

    None for what cannot be said: all three without values, the interval with fewer than two groups.
    """
    if not len(values):
        return None, None, None
    values = np.asarray(values, float)
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        return float(values.mean()), None, None
    sums, counts = np.bincount(index, values), np.bincount(index)
    drawn = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def _share(graphs, holds):
    return sum(holds(graph) for graph in graphs) / len(graphs) if graphs else None


def _mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None

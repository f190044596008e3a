"""Statistics against cases computed by hand."""

import itertools
import math

import pytest

from tf_regal.comparison import statistics
from tf_regal.comparison.statistics import Graph, Outcome

INFEASIBLE = Outcome(excess=7, late=0, value=1)


def graph(outcomes, *, name="g", group=None, best_known=50, bound=40, default=None):
    """outcomes: {label: {seed: value or Outcome}}."""
    made = {label: {seed: o if isinstance(o, Outcome) else Outcome(0, 0, o) for seed, o in runs.items()} for label, runs in outcomes.items()}
    return Graph(name, group or name, 10, bound, best_known, Outcome(0, 0, 100) if default is None else default, made)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({0: 90, 1: 80}, {0: 100, 1: 100}, 0.15),  # (0.1 + 0.2) / 2
        ({0: 90, 1: 80}, {0: 80, 1: 160}, (1 - 90 / 80 + 0.5) / 2),  # seeds are paired
        ({None: 90}, {0: 100, 1: 180}, 0.3),  # (0.1 + 0.5) / 2
        ({0: 50, 1: 150}, {None: 100}, 0.0),
        ({None: 110}, {None: 100}, -0.1),
        ({0: 90, 1: INFEASIBLE}, {0: 100, 1: 100}, 0.1),
        ({0: 90, 1: 50}, {0: 100, 1: INFEASIBLE}, 0.1),
        ({0: INFEASIBLE}, {0: 100}, None),
        ({0: 90}, {1: 100}, None),
        ({0: 90}, {}, None),
        ({0: 0}, {0: 0}, 0.0),
        ({0: 5}, {0: 0}, None),  # nothing can be said in shares of nothing
    ],
)
def test_improvement(ours, theirs, expected):
    found = statistics.improvement(graph({"a": ours, "b": theirs}), "a", "b")
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("ours", "theirs", "default", "expected"),
    [
        ({0: 90, 1: INFEASIBLE}, {0: 100, 1: 100}, 120, (0.1 - 0.2) / 2),
        ({None: 90}, {0: 100, 1: INFEASIBLE}, 120, (0.1 + 0.25) / 2),
        ({None: INFEASIBLE}, {0: INFEASIBLE}, 120, 0.0),
        ({0: 90}, {0: INFEASIBLE}, INFEASIBLE, None),  # there is no default plan to be kept
        ({0: 90}, {}, 120, None),
    ],
)
def test_improvement_with_the_default_plan_for_infeasible_runs(ours, theirs, default, expected):
    default = default if isinstance(default, Outcome) else Outcome(0, 0, default)
    found = statistics.improvement(graph({"a": ours, "b": theirs}, default=default), "a", "b", or_default=True)
    assert found == (None if expected is None else pytest.approx(expected))


def test_bootstrap_of_two_groups():
    # The mean of a resample is 0.1, 0.2 or 0.3, with probability 1/4, 1/2 and 1/4.
    assert statistics.bootstrap_mean([0.1, 0.3], ["a", "b"]) == pytest.approx((0.2, 0.1, 0.3))


def test_bootstrap_draws_whole_groups():
    """Against all 5^5 equally likely resamples of groups of different sizes."""
    groups = {"a": [0.0, 0.1, 0.2, 0.9], "b": [1.0], "c": [0.4, 0.6], "d": [0.3], "e": [0.7, 0.8, 0.9]}
    drawn = [[value for name in names for value in groups[name]] for names in itertools.product(groups, repeat=5)]
    means = sorted(sum(values) / len(values) for values in drawn)
    values, names = zip(*((value, name) for name, values in groups.items() for value in values), strict=True)
    mean, low, high = statistics.bootstrap_mean(values, names)
    assert mean == pytest.approx(sum(values) / len(values))
    assert (low, high) == pytest.approx((means[78], means[-79]), abs=0.015)  # 2.5 % of 3,125 are 78


def test_bootstrap_of_sixteen_groups():
    # Ones in a resample: Binomial(16, 1/2), whose quantiles are 4 (P(X <= 3) = 0.0106, P(X <= 4) = 0.0384) and 12.
    values = [0] * 8 + [1] * 8
    assert statistics.bootstrap_mean(values, [f"g{i}" for i in range(16)]) == pytest.approx((0.5, 0.25, 0.75))


def test_bootstrap_without_enough_groups():
    assert statistics.bootstrap_mean([], []) == (None, None, None)
    assert statistics.bootstrap_mean([0.2, 0.4], ["a", "a"]) == (pytest.approx(0.3), None, None)


def test_bootstrap_repeats():
    def interval(seed):
        return statistics.bootstrap_mean([0.1, 0.7, 0.2, 0.9, 0.4], list("abcde"), resamples=7, seed=seed)

    assert interval(0) == interval(0) != interval(1)


@pytest.mark.parametrize(
    ("runs", "best_known", "expected"),
    [
        ({0: 100}, 98, True),
        ({0: 100}, 99, False),
        ({0: 90, 1: 100, 2: 130}, 98, True),  # the median counts
        ({0: 90, 1: 99, 2: 130}, 98, False),
        ({0: 90, 1: INFEASIBLE, 2: INFEASIBLE}, 98, True),  # an infeasible run is infinite
        ({0: 98, 1: 98, 2: INFEASIBLE}, 98, False),
        ({0: 100}, None, False),
    ],
)
def test_room(runs, best_known, expected):
    g = graph({"b": runs}, best_known=best_known)
    assert (statistics.with_room([g], "b") == [g]) is expected


def test_room_needs_the_baseline():
    assert statistics.with_room([graph({"a": {0: 100}})], "b") == []


@pytest.mark.parametrize(
    ("runs", "least", "expected"),
    [({0: 60, 1: 80}, 50, 0.4), ({0: 60, 1: INFEASIBLE}, 50, 0.2), ({0: INFEASIBLE}, 50, None), ({0: 60}, None, None), ({0: 60}, 0, None), ({0: 0}, 0, 0)],
)
def test_gap(runs, least, expected):
    found = statistics.gap(graph({"a": runs}), "a", least)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("mine", "other", "expected"),
    [
        ({0: 1005}, {0: 1000}, True),
        ({0: 1006}, {0: 1000}, False),
        ({0: 900, 1: 1100}, {None: 999}, True),  # means: 1000 and 999
        ({0: 900, 1: INFEASIBLE}, {None: 1000}, False),
        ({0: INFEASIBLE}, {0: INFEASIBLE}, False),
        ({0: 2000}, {0: INFEASIBLE}, True),
    ],
)
def test_best(mine, other, expected):
    assert statistics.is_best(graph({"a": mine, "b": other}), "a", ["a", "b"]) is expected


@pytest.mark.parametrize(
    ("runs", "default", "expected"),
    [
        ({0: 100, 1: 99}, Outcome(0, 0, 100), False),
        ({0: 99, 1: 101}, Outcome(0, 0, 100), True),  # any run
        ({0: INFEASIBLE}, Outcome(0, 0, 100), True),
        ({0: Outcome(0, 3, 1)}, Outcome(0, 0, 100), True),  # late
        ({0: INFEASIBLE}, Outcome(8, 0, 1), False),  # the default exceeds memory by more
        ({0: INFEASIBLE}, Outcome(6, 0, 100), True),
        ({0: 500}, Outcome(6, 0, 100), False),
    ],
)
def test_worse_than_default(runs, default, expected):
    assert statistics.worse_than_default(graph({"a": runs}, default=default), "a") is expected


def test_summary():
    graphs = [
        graph({"a": {0: 80, 1: 60}, "b": {0: 100, 1: 100}}, name="g1", group="x", best_known=50, bound=40),
        graph({"a": {None: 90}, "b": {0: 100, 1: 100}}, name="g2", group="y", best_known=90, bound=90, default=Outcome(0, 0, 95)),
        graph({"a": {None: 70}, "b": {0: INFEASIBLE, 1: INFEASIBLE}}, name="g3", group="y", best_known=70, default=INFEASIBLE),
        graph({"b": {0: INFEASIBLE}}, name="g4", group="z", best_known=None, default=INFEASIBLE),
    ]
    found = statistics.summarize(graphs, ["a", "b"], "b", {"a": 5, "b": 5})
    assert (found.graphs, found.groups, found.default_infeasible, found.unsolved, found.baseline_infeasible) == (4, 3, 2, 1, 2)
    a, b = found.rows
    assert (a.graphs, a.compared, a.runs, a.infeasible, a.worse_than_default) == (3, 2, 4, 0, 0)
    assert a.improvement == pytest.approx((0.3 + 0.1) / 2)
    assert (a.low, a.high) == pytest.approx((0.1, 0.3))
    assert (a.or_default, a.or_default_low, a.or_default_high) == pytest.approx((0.2, 0.1, 0.3))
    assert a.gap_best == pytest.approx((0.4 + 0) / 2)
    assert a.gap_bound == pytest.approx((0.75 + 0) / 2)
    assert (a.best, a.near_bound, found.proven) == (3 / 4, 1 / 4, 1)
    assert (b.graphs, b.compared, b.runs, b.infeasible, b.worse_than_default) == (4, 2, 7, 3, 1)
    assert (b.improvement, b.low, b.high, b.best) == (0, 0, 0, 0)


@pytest.mark.parametrize(("runs", "expected"), [({0: 102, 1: 100}, 1), ({0: 103, 1: 100}, 0), ({0: 100, 1: INFEASIBLE}, 0)])
def test_near_the_bound_is_a_mean_of_at_most_one_percent_above_it(runs, expected):
    (row,) = statistics.summarize([graph({"a": runs}, best_known=100, bound=100)], ["a"], "a").rows
    assert row.near_bound == expected


def test_summary_tells_who_took_more_evaluations():
    taken = {"a": {0: Outcome(0, 0, 9, evaluations_made=6), 1: Outcome(0, 0, 9, evaluations_made=5)}}
    (row,) = statistics.summarize([graph(taken)], ["a"], "a", {"a": 5}).rows
    assert row.over_budget == 1


def test_summary_of_nothing():
    found = statistics.summarize([], ["a"], "a")
    assert (found.graphs, found.rows[0].improvement, found.rows[0].best, found.rows[0].time_s) == (0, None, None, None)


def test_median_time():
    runs = {"a": {0: Outcome(0, 0, 9, time_s=1.0), 1: Outcome(0, 0, 9, time_s=2.0), 2: Outcome(0, 0, 9, time_s=9.0)}}
    assert statistics.summarize([graph(runs)], ["a"], "a").rows[0].time_s == 2.0


def test_outcomes_are_ordered_as_results_are():
    ordered = [Outcome(0, 0, 5), Outcome(0, 0, 6), Outcome(0, 1, 1), Outcome(1, 0, 0)]
    assert all(a < b for a, b in itertools.pairwise(ordered))
    assert Outcome(0, 0, 5, time_s=1) == Outcome(0, 0, 5, time_s=2)


def test_mean_value_is_infinite_where_a_run_is_infeasible():
    assert statistics.mean_value(graph({"a": {0: 1, 1: INFEASIBLE}}), "a") == math.inf
    assert statistics.mean_value(graph({}), "a") == math.inf


def test_headroom():
    """The best known is 50: 50 % below one baseline, 75 % below the other; half and a third of that were won."""
    graphs = [graph({"a": {0: 75}, "b": {0: 100}}, name="g"), graph({"a": {0: 150}, "b": {0: 200}}, name="h")]
    row = statistics.summarize(graphs, ["a", "b"], "b").rows[0]
    assert row.headroom == pytest.approx((0.25 + 0.25) / (0.5 + 0.75))
    assert statistics.summarize([graph({"b": {0: 50}})], ["b"], "b").rows[0].headroom is None

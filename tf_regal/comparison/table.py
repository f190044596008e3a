"""A comparison as rows of text, for the terminal and for Markdown."""

from tf_regal.comparison import statistics

NOTES = """\
improvement: 1 - value / baseline's value; runs paired by seed, averaged over the seeds, then over the graphs; in brackets its 95 % interval when
models (each in one mode, with all its batch sizes) are drawn again, 10,000 times. compared: graphs where both have a feasible result;
improvement and gaps are over these. or default: improvement where an infeasible run counts as the default plan, which is what is kept then: over
all graphs where both have a value so. headroom: the improvement as a share of what the best known would be. near bound: graphs where its mean is
at most 1 % above the lower bound. best: no other method's mean is more than 0.5 % better. below default: graphs where any run is worse than the default
plan. Graphs with room: the best known is at least 2 % below the baseline's median. Infeasible: above the memory or the makespan limit; such a run
is never best and has no improvement. Time: median of the runs, on one thread."""

HEADER = (
    "method", "improvement", "95 % interval", "compared", "or default", "95 % interval", "headroom", "to best known", "to bound", "near bound", "best",
    "below default", "infeasible", "time",
)  # fmt: skip


def percent(share, sign=False):
    """0.123 → "12.3 %"; None → "-"."""
    return "-" if share is None else f"{100 * share:{'+' if sign else ''}.1f} %"


def rows(summary, time_text):
    """Summary → rows of str, HEADER first. time_text: seconds → str."""
    found = [HEADER]
    for row in summary.rows:
        found.append(
            (
                row.label, percent(row.improvement, sign=True), _interval(row.low, row.high), f"{row.compared}/{summary.graphs}",
                percent(row.or_default, sign=True), _interval(row.or_default_low, row.or_default_high), percent(row.headroom), percent(row.gap_best),
                percent(row.gap_bound), percent(row.near_bound), percent(row.best), str(row.worse_than_default), f"{row.infeasible}/{row.runs}",
                "-" if row.time_s is None else time_text(row.time_s),
            )
        )  # fmt: skip
    return found


def _interval(low, high):
    return "-" if low is None else f"[{100 * low:+.1f}, {100 * high:+.1f}]"


def counts(summary):
    """What is in a set of graphs, in one line."""
    parts = [f"{_number(summary.graphs, 'graph')} of {_number(summary.groups, 'model')}"]
    for count, what in (
        (summary.proven, "whose best known is the lower bound, so the optimum"),
        (summary.default_infeasible, "whose default plan does not fit"),
        (summary.baseline_infeasible, "where the baseline found nothing feasible"),
        (summary.unsolved, "without any feasible result"),
    ):
        if count:
            parts.append(f"{count} {what}")
    missing = {row.label: summary.graphs - row.graphs for row in summary.rows if row.graphs < summary.graphs}
    parts += [f"{label} has no result for {count}" for label, count in missing.items()]
    parts += [f"{row.label} took more evaluations than it was given in {row.over_budget} runs" for row in summary.rows if row.over_budget]
    return "; ".join(parts)


def graph_rows(graphs, labels, value_text):
    """One row per graph: bound, best known, default plan, and the mean over the seeds per method. value_text: ns or bytes → str."""
    labels = [label for label in labels if label != "default"]
    found = [("graph", "ops", "bound", "best known", "default", *labels)]
    for graph in graphs:
        cells = [_mean_text(graph, label, value_text) for label in labels]
        known = "-" if graph.best_known is None else value_text(graph.best_known)
        default = "-" if graph.default is None else value_text(graph.default.value) + ("" if graph.default.feasible else " !")
        found.append((graph.name, str(graph.ops), value_text(graph.bound), known, default, *cells))
    return found


def _mean_text(graph, label, value_text):
    runs = graph.outcomes.get(label)
    if not runs:
        return "-"
    mean = statistics.mean_value(graph, label)
    return "infeasible" if mean == float("inf") else value_text(mean)


def markdown(found, left=1):
    """Rows of str, the header first → a Markdown table, the first `left` columns flush left."""
    rule = [":--" if i < left else "--:" for i in range(len(found[0]))]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [found[0], rule, *found[1:]]]
    return "\n".join(lines)


def _number(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"

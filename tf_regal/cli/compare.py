"""`tf-regal compare`: every method on every graph with the same budget, and what that shows."""

import argparse
import contextlib
import dataclasses
import os
import tempfile

import tqdm

from tf_regal import comparison, errors
from tf_regal.cli import graph_files, options, output, proposals
from tf_regal.comparison import graphs as graphs_lib
from tf_regal.comparison import statistics, table
from tf_regal.search import METHODS, OBJECTIVES
from tf_regal.search.regal import INGREDIENTS
from tf_regal.settings import Settings

_DEFAULT = "default"
_EPILOG = """\
examples:
  tf-regal compare graph.json --methods regal,brkga,heft --topology 2xA100-40GB --objective runtime
  tf-regal compare benchmarks/zoo/split.json:test --methods regal,brkga,default,heft,gp_dfs --evaluations 5000 \\
      --topology paper,2xA100-40GB --objective runtime,peak_memory --reference brkga:500000 --results results.jsonl

With --results every run is kept as soon as it has ended: a comparison that was stopped goes on where it was, another one
on the same graphs takes over what is there, and the best known is the best of everything in the file.
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "compare",
        help="compare search methods on any graphs, with the same budget",
        description="Runs every method on every graph with the same budget, and shows how much better each is than the baseline, "
        "how far from the best known and from the lower bound, how often the best, and how long it takes.",
        epilog=_EPILOG,
    )
    parser.add_argument("graphs", metavar="GRAPH", nargs="+", help=graphs_lib.KINDS.replace("%", "%%"))
    add_options(parser)
    return parser


def add_options(parser, methods=True):
    """Everything but the graphs; without `methods` neither --methods nor --baseline, for verbs that know them."""
    options.add_output(parser)
    options.add_progress(parser)
    group = parser.add_argument_group("what is compared")
    if methods:
        _add_methods(group)
    group.add_argument(
        "--reference",
        metavar="M:N",
        type=_words,
        action="extend",
        default=[],
        help="run once for the best known only, such as brkga:500000 (may be given several times)",
    )
    group.add_argument(
        "--topology",
        metavar="T",
        type=_words,
        default=["2xA100-40GB"],
        help="as for `tf-regal plan`; several with commas between (default: 2xA100-40GB)",
    )
    group.add_argument(
        "--memory-limit", metavar="BYTES", type=options.byte_count, help="replaces every device's memory (default: what the devices have)"
    )
    group.add_argument(
        "--objective",
        metavar="O",
        type=_words,
        default=["runtime"] if methods else None,
        help=f"{' or '.join(OBJECTIVES)}, or both with a comma between (default: {'runtime' if methods else 'what there is a policy for'})",
    )
    group.add_argument(
        "--max-slowdown",
        metavar="X",
        type=float,
        default=options.default("max_slowdown"),
        help="for peak_memory: how many times the default plan's time a result may take (default: %(default)s)",
    )
    group = parser.add_argument_group("the budget")
    group.add_argument(
        "--evaluations", metavar="N", type=int, default=options.default("evaluations"), help="per run (default: %(default)s)"
    )
    group.add_argument("--seconds", metavar="S", type=float, help="per run, too (default: no limit)")
    group.add_argument(
        "--seeds", metavar="K", type=_count, default=5, help="runs of methods that draw something at random (default: %(default)s)"
    )
    group.add_argument("--jobs", metavar="J", type=_count, default=2, help="runs at the same time, one thread each (default: %(default)s)")
    group = parser.add_argument_group("results")
    group.add_argument("--results", metavar="F.jsonl", help="keep every run here, and take from here what was run before")
    group.add_argument(
        "--any-version", action="store_true", help="results of other versions of the code count as well (default: those runs are made again)"
    )
    group.add_argument("--per-graph", action="store_true", help="also a table with a row per graph")
    group.add_argument("--markdown", metavar="F.md", help="also write the tables as Markdown")


def _add_methods(group):
    group.add_argument(
        "--methods",
        metavar="A,B",
        type=_words,
        default=["regal", "brkga", "default"],
        help=f"of {', '.join(METHODS)}, or regal-without- and one of {', '.join(INGREDIENTS)}; M:N gives one a budget of its own, N evaluations, "
        f"and M:Ss S seconds; M@P draws the keys of brkga, idrs or regal from the proposal P: {proposals.KINDS} (default: regal,brkga,default)",
    )
    group.add_argument("--baseline", metavar="M", default="brkga", help="what improvements are over (default: %(default)s); run in any case")


def run(args):
    with options.option_values(args.parser):
        specs, baseline, references, settings = _what(args)
        for option, path in (("--results", args.results), ("--markdown", args.markdown)):
            if path is not None:
                output.check_file(option, path)
    files, notes = graphs_lib.expand(args.graphs)
    default = _spec("methods", _DEFAULT, args)
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(comparison.ResultsFile(args.results))
        cases = _cases(files, settings, stack, notes)
        with _Progress(options.show_progress(args)) as progress:
            failures = comparison.execute(
                cases,
                list(dict.fromkeys([*specs, baseline, default])),
                args.seeds,
                found,
                n_processes=args.jobs,
                once=references,
                any_version=args.any_version,
                proposals=proposals.Proposals(stack.enter_context(tempfile.TemporaryDirectory(prefix="tf_regal_proposals_"))),
                progress=progress.update,
            )
        reports = [_report(args, setting, cases, specs, baseline, default, found.records) for setting in settings]
    _print(args, reports, notes, failures)
    return 1 if failures else 0


def _words(text):
    return options.names(text)


def _count(text):
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid: give a whole number, 1 or more")
    return count


def _what(args):
    """(specs of the methods, spec of the baseline, specs of the references, settings)."""
    settings = []
    for text in dict.fromkeys(args.topology):
        topology = options.topology(argparse.Namespace(topology=text, memory_limit=args.memory_limit, parser=args.parser))
        for objective in dict.fromkeys(args.objective):
            checked = Settings(objective=objective, max_slowdown=args.max_slowdown, evaluations=args.evaluations, seconds=args.seconds)
            settings.append(comparison.Setting(topology, checked.objective, checked.max_slowdown))
    specs = list({spec.label: spec for spec in (_spec("methods", text, args) for text in args.methods)}.values())
    baseline = _spec("baseline", args.baseline, args)
    references = [_spec("reference", text, args) for text in args.reference]
    return specs, baseline, references, settings


def _spec(option, text, args):
    try:
        return comparison.Spec.parse(text, args.evaluations, args.seconds, lambda name: proposals.identify(name, args.objective))
    except errors.InvalidArgumentError as error:
        raise errors.InvalidArgumentError(f"{option}={text!r}: {error}") from error


def _cases(files, settings, stack, notes):
    """Reads every graph; those that need TensorFlow are exported first, since the runs are in processes without it."""
    folder, cases, seen = None, [], {}
    for index, file in enumerate(files):
        if file.is_exported:
            read = comparison.prepare(file.name, file.group, file.path, settings)
        else:
            folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="tf_regal_compare_"))
            read = []
            for setting in settings:
                path = os.path.join(folder, f"{index}_{len(read)}.json")
                graph_files.read(file.path, setting.topology).save(path)
                read += comparison.prepare(file.name, file.group, path, [setting])
        for case in read:
            first = seen.setdefault((case.problem, case.setting), case.name)
            if first == case.name:
                cases.append(case)
            else:
                notes.append(f"{case.name} is the same problem as {first} on {case.setting.topology.name}: counted once")
    return cases


def _report(args, setting, cases, specs, baseline, default, records):
    """One objective on one topology, as a dict."""
    chosen = [case for case in cases if case.setting == setting]
    every = list(dict.fromkeys([*specs, baseline]))
    graphs = statistics.collect(chosen, every, default, records, args.seeds, args.any_version)
    labels, budgets = [spec.label for spec in every], {spec.label: spec.evaluations for spec in every}
    room = statistics.with_room(graphs, baseline.label)
    return {
        "setting": setting,
        "graphs": graphs,
        "labels": labels,
        "all": statistics.summarize(graphs, labels, baseline.label, budgets),
        "with_room": statistics.summarize(room, labels, baseline.label, budgets),
        "room": {graph.name for graph in room},
    }


def _print(args, reports, notes, failures):
    told = [f"{case.name}, {spec.label}, seed {seed}: {failure.message}" for case, spec, seed, failure in failures]
    for note in notes:
        output.log(f"tf-regal: note: {note}")
    for failure in failures:
        if failure[-1].detail:
            output.log(failure[-1].detail)
    if args.markdown is not None:
        output.write_bytes(args.markdown, _markdown(args, reports, notes, told).encode())
    if args.json:
        output.print_json(_json(args, reports, notes, told))
    else:
        output.print_text("\n\n".join([*(_text(args, report) for report in reports), table.NOTES]))
    if told:
        output.log(f"tf-regal: error: {len(told)} runs gave no result; run it again to try these again. The first: {told[0]}")


def _title(args, report):
    setting = report["setting"]
    seconds = "" if args.seconds is None else f", {args.seconds:g} s"
    slowdown = f" within {setting.max_slowdown:g} times the default plan's time" if setting.objective == "peak_memory" else ""
    return f"{setting.objective} on {setting.topology.name}{slowdown}: {args.evaluations} evaluations{seconds}, {args.seeds} seeds, baseline {args.baseline}"


def _parts(report):
    """(heading, rows) of the tables over sets of graphs."""
    for key, name in (("all", "All graphs"), ("with_room", "Graphs with room")):
        summary = report[key]
        yield f"{name}: {table.counts(summary)}", table.rows(summary, output.time_text) if summary.graphs else None


def _graph_rows(report):
    runtime = report["setting"].objective == "runtime"
    rows = table.graph_rows(report["graphs"], report["labels"], (lambda ns: output.time_text(ns / 1e9)) if runtime else output.byte_text)
    return [("room" if i == 0 else "yes" if row[0] in report["room"] else "", *row) for i, row in enumerate(rows)]


def _text(args, report):
    parts = [_title(args, report)]
    for heading, rows in _parts(report):
        parts.append(heading if rows is None else f"{heading}\n{output.table(rows)}")
    if args.per_graph:
        parts.append("Per graph, mean over the seeds (!: does not fit)\n" + output.table(_graph_rows(report), left=2))
    return "\n\n".join(parts)


def _markdown(args, reports, notes, told):
    parts = []
    for report in reports:
        parts.append(f"## {_title(args, report)}")
        for heading, rows in _parts(report):
            parts += [heading, *([] if rows is None else [table.markdown(rows)])]
        if args.per_graph:
            parts += ["Per graph, mean over the seeds (!: does not fit)", table.markdown(_graph_rows(report), left=2)]
    parts += [table.NOTES, *(f"Note: {note}." for note in notes), *(f"No result: {failure}." for failure in told)]
    return "\n\n".join(parts) + "\n"


def _json(args, reports, notes, told):
    return {
        "evaluations": args.evaluations,
        "seconds": args.seconds,
        "seeds": args.seeds,
        "baseline": args.baseline,
        "reports": [
            {
                "objective": report["setting"].objective,
                "topology": report["setting"].topology.name,
                "max_slowdown": report["setting"].max_slowdown,
                "all": dataclasses.asdict(report["all"]),
                "with_room": dataclasses.asdict(report["with_room"]),
                "graphs": [_graph_json(graph, report["room"]) for graph in report["graphs"]],
            }
            for report in reports
        ],
        "notes": notes,
        "failures": told,
    }


def _graph_json(graph, room):
    def values(outcomes):
        return [
            {"seed": seed, "value": o.value, "feasible": o.feasible, "seconds": o.time_s, "evaluations": o.evaluations_made}
            for seed, o in outcomes.items()
        ]

    default = graph.default
    return {
        "name": graph.name,
        "group": graph.group,
        "ops": graph.ops,
        "bound": graph.bound,
        "best_known": graph.best_known,
        "default": None if default is None else {"value": default.value, "feasible": default.feasible},
        "with_room": graph.name in room,
        "runs": {label: values(outcomes) for label, outcomes in graph.outcomes.items()},
    }


class _Progress:
    """A bar on stderr over the runs."""

    def __init__(self, show):
        self._bar = tqdm.tqdm(total=0, desc="comparing", unit=" runs", disable=not show, leave=False)

    def update(self, done, total):
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._bar.close()

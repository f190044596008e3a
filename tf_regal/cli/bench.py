"""`tf-regal bench`: the project's own speed, as ratios where possible."""

import argparse
import dataclasses

from tf_regal import errors
from tf_regal import search as search_lib
from tf_regal.bench import against, search, simulator
from tf_regal.cli import graph_files, options, output, startup
from tf_regal.settings import Settings

_MOST_OPS = 1_000_000
_EPILOG = """\
examples:
  tf-regal bench simulator                          about 6 minutes on two cores
  tf-regal bench simulator --against none --ops 1000 --devices 2 --seconds 0.5
  tf-regal bench search graph.json --topology 2xA100-40GB --methods regal,brkga
  tf-regal bench hook

Figures are medians, with the smallest and the largest of the repeats in brackets.
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "bench",
        help="measure tf-regal's own speed",
        description="Measures how fast the simulator, the search or the hook is on this machine.",
        epilog=_EPILOG,
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True, help="simulator, search or hook", parser_class=type(parser))
    for name, add in (("simulator", _add_simulator), ("search", _add_search), ("hook", _add_hook)):
        added = add(what, name)
        options.add_output(added)
        added.set_defaults(parser=added)
    return parser


def run(args):
    return args.measure(args)


def _add_simulator(subparsers, name):
    parser = subparsers.add_parser(
        name,
        help="ops simulated per second and core, and against Grappler and pymoo",
        description="Ops simulated per second and core on generated graphs (transfers and memory accounted), how the cost of an op grows with the "
        "graph, a whole search, and how long others take for one evaluation of the same graph.",
    )
    parser.add_argument("graph", metavar="GRAPH", nargs="?", help="measure on this graph, too: a file that `tf-regal plan` reads")
    parser.add_argument(
        "--ops", metavar="N,…", type=_counts(_MOST_OPS), default=[100, 1000, 10_000, 100_000], help="sizes of the graphs (default: 100,1000,10000,100000)"
    )
    parser.add_argument("--devices", metavar="D,…", type=_counts(64), default=[1, 2, 8], help="numbers of devices (default: 1,2,8)")
    parser.add_argument("--seconds", metavar="S", type=_seconds, default=1.0, help="about how long one measurement takes (default: %(default)s)")
    _add_repeats(parser, 5)
    parser.add_argument(
        "--topology", metavar="T", default="2xA100-40GB", help="devices of GRAPH, as for `tf-regal plan` (default: %(default)s)"
    )
    parser.add_argument(
        "--against",
        metavar="A,B",
        type=options.names,
        default=list(against.OTHERS),
        help=f"of {', '.join(against.OTHERS)}, or none (default: {','.join(against.OTHERS)})",
    )
    parser.add_argument(
        "--model",
        metavar="M",
        default="InceptionV3",
        help="the training step that they evaluate: a name of tf.keras.applications, or small (default: %(default)s)",
    )
    parser.set_defaults(measure=_run_simulator)
    return parser


def _add_search(subparsers, name):
    parser = subparsers.add_parser(
        name,
        help="the time of each phase of planning, and evaluations per second by method",
        description="Times every phase of planning a graph, and the methods.",
    )
    parser.add_argument("graph", metavar="GRAPH", help="a file that `tf-regal plan` reads")
    parser.add_argument("--topology", metavar="T", default="2xA100-40GB", help="as for `tf-regal plan` (default: %(default)s)")
    parser.add_argument("--objective", metavar="O", default=options.default("objective"), help="runtime or peak_memory (default: %(default)s)")
    parser.add_argument("--method", metavar="M", default=options.default("method"), help="whose phases are timed (default: %(default)s)")
    parser.add_argument(
        "--methods", metavar="A,B", type=options.names, default=["regal", "brkga"], help="whose evaluations per second (default: regal,brkga)"
    )
    parser.add_argument("--evaluations", metavar="N", type=int, default=options.default("evaluations"), help="per search (default: %(default)s)")
    parser.add_argument("--seconds", metavar="S", type=float, help="per search, too (default: no limit)")
    _add_repeats(parser, 3)
    parser.set_defaults(measure=_run_search)
    return parser


def _add_hook(subparsers, name):
    parser = subparsers.add_parser(
        name,
        help="what the hook costs a function that keeps its default, and the planning of a training step",
        description="Measures the step time of a function whose default plan is kept against the plain function's, and the planning of a training step.",
    )
    parser.add_argument(
        "--model",
        metavar="M",
        default="InceptionV3",
        help="whose training step is planned: a name of tf.keras.applications, or small (default: %(default)s)",
    )
    parser.add_argument("--evaluations", metavar="N", type=int, default=options.default("evaluations"), help="of the search (default: %(default)s)")
    parser.add_argument("--pairs", metavar="P", type=_count, default=60, help="pairs of hooked and plain calls (default: %(default)s)")
    parser.add_argument("--calls", metavar="C", type=_count, default=20, help="calls per measurement (default: %(default)s)")
    parser.set_defaults(measure=_run_hook)
    return parser


def _add_repeats(parser, default):
    parser.add_argument("--repeats", metavar="R", type=_count, default=default, help="rounds, each over everything (default: %(default)s)")


def _count(text):
    return _counts(1 << 31)(text, single=True)


def _counts(most):
    def parse(text, single=False):
        try:
            found = [int(word) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or not all(1 <= count <= most for count in found) or (single and len(found) > 1):
            what = "a whole number" if single else "whole numbers with commas between them"
            raise argparse.ArgumentTypeError(f"{text!r} is not valid: give {what}, 1 to {most}")
        return found[0] if single else list(dict.fromkeys(found))

    return parse


def _seconds(text):
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not valid: give seconds, above 0")
    return found


def _say(text):
    output.log(f"bench: {text} ...")


def _run_simulator(args):
    with options.option_values(args.parser):
        others = _others(args.against)
    against.check(others)
    if "grappler" in others:
        _load_model_maker(args)
    graph = on = None
    if args.graph is not None:
        options.check_model(argparse.Namespace(model=args.graph))
        on = _topology(args)
        graph = graph_files.read(args.graph, on)
    found = simulator.measure(args.ops, args.devices, args.seconds, args.repeats, graph, on, _say)
    if others:
        found["against"] = against.measure(others, args.model, args.repeats, args.seconds, progress=_say)
    _print(args, found, _simulator_text)
    return 0


def _others(chosen):
    if chosen == ["none"]:
        return []
    unknown = [name for name in chosen if name not in against.OTHERS]
    if unknown:
        raise errors.InvalidArgumentError(f"against={unknown[0]!r} is not known; expected some of {', '.join(map(repr, against.OTHERS))}, or 'none'")
    return list(dict.fromkeys(chosen))


def _load_model_maker(args):
    """Loads TensorFlow; wrong usage where it has no such model."""
    startup.load_tensorflow()
    import tensorflow as tf

    if args.model != "small" and not callable(getattr(tf.keras.applications, args.model, None)):
        with options.option_values(args.parser):
            raise errors.InvalidArgumentError(f"model={args.model!r} is not known; expected 'small' or a model of tf.keras.applications, such as 'ResNet50'")


def _topology(args):
    return options.topology(argparse.Namespace(topology=args.topology, memory_limit=None, parser=args.parser))


def _run_search(args):
    with options.option_values(args.parser):
        for name in args.methods:
            search_lib.method(name)
        Settings(objective=args.objective, method=args.method, evaluations=args.evaluations, seconds=args.seconds)
    options.check_model(argparse.Namespace(model=args.graph))
    on = _topology(args)
    found = search.measure(
        lambda: graph_files.read(args.graph, on), on,
        objective=args.objective, method=args.method, methods=args.methods, evaluations=args.evaluations, seconds=args.seconds,
        repeats=args.repeats, progress=_say,
    )  # fmt: skip
    _print(args, found, _search_text)
    return 0


def _run_hook(args):
    with options.option_values(args.parser):
        Settings(evaluations=args.evaluations)
    _load_model_maker(args)
    from tf_regal.bench import hook

    _say("a function that keeps its default")
    ratios, kept = hook.kept_default(args.pairs, args.calls)
    _say(f"planning the training step of {args.model}")
    report, traced = hook.planning(args.model, args.evaluations)
    _say("first calls, with the plan in the cache and without the hook")
    first = hook.first_call(args.model, args.evaluations)
    small = hook.small_functions()
    _print(args, hook.figures(ratios, kept, report, traced, args.model, args.calls, first, small), hook.text)
    return 0


def _print(args, found, text):
    if args.json:
        output.print_json(_plain(found))
    else:
        output.print_text(text(found))


def _plain(value):
    """Samples as dicts."""
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _spread(sample, text):
    return f"{text(sample.median)} [{text(sample.low)}, {text(sample.high)}]"


def _rate(value):
    return output.rate_text(value, "").rstrip()


def _factor(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _simulator_text(found):
    rows = [("ops", "devices", "transfers", "whole search loop", "simulator alone")]
    for point in found["points"]:
        name = str(point["ops"]) if point["graph"] != "graph" else f"{point['ops']} (GRAPH)"
        rows.append((name, str(point["devices"]), f"{point['transfers']:.0f}", _spread(point["loop"], _rate), _spread(point["alone"], _rate)))
    parts = ["Ops simulated per second, on one core\n" + output.table(rows)]
    if found["growth"]:
        rows = [("cost of an op", "devices", "whole search loop", "simulator alone")]
        for growth in found["growth"]:
            name = f"at {growth['to']} ops / at {growth['from']}"
            rows.append((name, str(growth["devices"]), _spread(growth["loop"], _factor), _spread(growth["alone"], _factor)))
        parts.append(output.table(rows))
    whole = found["search"]
    rows = [(f"search: {whole['ops']} ops, {whole['devices']} devices, {whole['evaluations']} evaluations, {whole['threads']} threads", "seconds")]
    rows += [(method, _spread(sample, output.time_text)) for method, sample in whole["seconds"].items()]
    parts.append(output.table(rows))
    if "against" in found:
        parts.append(_against_text(found["against"]))
    return "\n\n".join(parts)


def _against_text(found):
    said = {
        "simulator": "simulator alone",
        "loop": "BRKGA over it, per evaluation",
        "grappler": "Grappler's virtual cluster (MeasureCosts)",
        "pymoo": "pymoo's BRKGA over a Python simulator, per evaluation",
    }
    ours = {"grappler": "the simulator's", "pymoo": "our BRKGA's"}
    rows = [(f"one evaluation of {found['graph']}: {found['ops']} ops, {found['devices']} devices, one core", "time", "ratio")]
    for what, sample in found["seconds"].items():
        ratio = f"{_spread(found['ratios'][what], _factor)} times {ours[what]}" if what in found["ratios"] else ""
        rows.append((said[what], _spread(sample, output.time_text), ratio))
    return output.table(rows)


def _search_text(found):
    rows = [(f"phase ({found['ops']} ops, {found['groups']} groups, {found['devices']} devices, {found['threads']} threads)", "time")]
    rows += [(phase, _spread(sample, output.time_text)) for phase, sample in found["phases"].items()]
    parts = [output.table(rows)]
    if found["methods"]:
        rows = [("method", "evaluations", "time", "evaluations per second")]
        for name, figures in found["methods"].items():
            rows.append((name, str(figures["evaluations"]), _spread(figures["seconds"], output.time_text), _spread(figures["per_second"], _rate)))
        parts.append(output.table(rows))
    return "\n\n".join(parts)

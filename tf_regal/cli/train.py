"""`tf-regal train`: trains a policy on any graphs."""

import argparse
import hashlib
import os
import sys
import time

from tf_regal import errors
from tf_regal.cli import graph_files, options, output, startup
from tf_regal.comparison import graphs as graphs_lib
from tf_regal.policy.config import ALGORITHMS, NETWORKS, Config, default
from tf_regal.search import OBJECTIVES

_EPILOG = """\
examples:
  tf-regal train benchmarks/zoo/split.json:train --validation benchmarks/zoo/split.json:validation --objective runtime -o runs/runtime
  tf-regal train my_graphs/ --objective peak_memory --topology 2xA100-40GB --algorithm reinforce --start runs/first -o runs/second
  tensorboard --logdir runs                                                         the curves
  tf-regal plan model/ --policy runs/runtime/policy                                 what was trained, in use

A training that was stopped (Ctrl-C, a kill, a power cut) goes on from its last checkpoint when the same command is given again, with the same
curve. The best weights by validation are in OUT/policy, a SavedModel with a card. Needs: pip install 'tf-regal[train]'.
"""

# Whole numbers among the fields of Config: the least that they may be, and what they are.
_NUMBERS = {
    "width": (2, "of the network's layers"), "rounds": (1, "of messages"), "steps": (1, "of training"), "batch": (1, "graphs per step"),
    "samples": (1, "pairs of draws per graph and step"), "evaluations": (1, "of every rollout"),
    "variants": (1, "of each graph, with noise on costs and sizes"), "max_ops": (1, "larger graphs are left out"), "seed": (0, "of everything random"),
    "validate_every": (1, "steps"), "validation_size": (1, "instances that validate"), "validation_evaluations": (1, "of a search that validates"),
    "patience": (1, "validations without a better one, before it stops"),
}  # fmt: skip

# The other options that are fields of Config under the same name.
_SAME = ("objective", "algorithm", "network", "rate", "clip", "entropy", "start")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "train",
        help="train a policy on any graphs",
        description="Trains a network that proposes where the genetic search looks, by what searches with its proposals reach.",
        epilog=_EPILOG,
    )
    parser.add_argument("graphs", metavar="GRAPH", nargs="+", help=graphs_lib.KINDS.replace("%", "%%") + " JSON files need costs for the topologies.")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="directory of the training; given again, the training goes on")
    options.add_output(parser)
    options.add_progress(parser)
    group = parser.add_argument_group("what is learned")
    group.add_argument("--objective", metavar="O", default=default("objective"), help=f"{' or '.join(OBJECTIVES)} (default: %(default)s)")
    group.add_argument(
        "--topology", metavar="T,U", type=options.names, default=list(default("topologies")),
        help=f"devices to train for, with commas between; one that is there twice is drawn twice as often (default: {','.join(default('topologies'))})",
    )  # fmt: skip
    group.add_argument("--validation", metavar="GRAPH", action="append", default=[], help="graphs that choose the best weights (default: every fifth GRAPH)")
    group = parser.add_argument_group("how")
    for name, choices in (("algorithm", ALGORITHMS), ("network", NETWORKS)):
        told = "; ".join(f"{choice}: {what}" for choice, what in choices.items())
        group.add_argument(f"--{name}", choices=tuple(choices), default=default(name), help=f"{told} (default: %(default)s)")
    for name, (_, what) in _NUMBERS.items():
        group.add_argument(f"--{name.replace('_', '-')}", metavar="N", type=int, default=default(name), help=f"{what} (default: %(default)s)")
    group.add_argument("--rate", metavar="R", type=float, default=default("rate"), help="Adam's (default: the algorithm's)")
    group.add_argument("--clip", metavar="C", type=float, default=default("clip"), help="largest norm of a gradient, not for pgpe (default: %(default)s)")
    group.add_argument("--entropy", metavar="E", type=float, default=default("entropy"), help="weight of the entropy, for reinforce (default: %(default)s)")
    group.add_argument("--start", metavar="OUT", help="a training whose best weights are the first ones")
    group.add_argument("--no-prime", action="store_true", help="start from a network that proposes nothing, not from what a person would")
    group.add_argument("--threads", metavar="N", type=int, help="rollouts at the same time (default: as many as there are cores)")
    group.add_argument("--ray", metavar="ADDRESS", help="make the rollouts on a Ray cluster: auto, host:port, or local")
    return parser


def run(args):
    with options.option_values(args.parser):
        _check(args)
        topologies = [options.topology(argparse.Namespace(topology=text, memory_limit=None, parser=args.parser)) for text in args.topology]
    graphs, validation = _graphs(args, topologies)
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Spektral does not work with Keras 3
    startup.load_tensorflow()
    try:
        from tf_regal.policy import export, train
    except ImportError as error:
        raise errors.MissingDependencyError(f"training needs {error.name}: run pip install 'tf-regal[train]'") from error
    same = {name: getattr(args, name) for name in (*_NUMBERS, *_SAME)}
    config = Config(graphs=graphs, validation=validation, topologies=tuple(args.topology), primed=not args.no_prime, **same)
    with options.option_values(args.parser), _Progress(options.show_progress(args)) as progress:
        found = train.run(config, args.output, threads=args.threads, ray=args.ray, progress=progress.say)
    policy = os.path.join(args.output, "policy")
    export.export(args.output, policy)
    if args.json:
        output.print_json({"output": args.output, "policy": policy, "steps": found.steps, "validation_reward": found.best})
    else:
        output.print_text(
            f"{found.steps} steps; best validation reward {found.best:.4f} (uniform: -1)\npolicy: {policy}\ncurves: tensorboard --logdir {args.output}"
        )
    return 0


def _check(args):
    if args.objective not in OBJECTIVES:
        raise errors.InvalidArgumentError(f"objective={args.objective!r} is not known; expected one of {', '.join(map(repr, OBJECTIVES))}")
    for name, least in [*((name, least) for name, (least, _) in _NUMBERS.items()), ("threads", 1)]:
        value = getattr(args, name)
        if value is not None and value < least:
            raise errors.InvalidArgumentError(f"{name}={value} is not valid; expected a whole number, {least} or more")
    for name in ("rate", "clip"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise errors.InvalidArgumentError(f"{name}={value} is not valid; expected a number above 0")


def _graphs(args, topologies):
    """Paths of the graphs to train on and to validate on; what is not JSON is exported into the output directory first."""
    files, notes = graphs_lib.expand(args.graphs)
    validation, more = graphs_lib.expand(args.validation) if args.validation else (files[::5], [])
    if not args.validation and len(files) > 1:
        files = [file for file in files if file not in validation]
    for note in [*notes, *more]:
        output.log(f"tf-regal: note: {note}")
    folder = os.path.join(args.output, "graphs")

    def exported(file):
        if file.is_exported:
            return file.path
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{hashlib.sha256(os.path.abspath(file.path).encode()).hexdigest()[:12]}.json")
        if not os.path.exists(path):
            graph_files.read(file.path, *topologies).save(path)
        return path

    return tuple(map(exported, files)), tuple(map(exported, validation))


class _Progress:
    """One line on stderr that is written anew; without a terminal a line a minute."""

    def __init__(self, show):
        self._show, self._last, self._width = show, 0.0, 0
        self._terminal = sys.stderr.isatty()

    def say(self, text):
        now = time.monotonic()
        if not self._show or now - self._last < (0.2 if self._terminal else 60):
            return
        self._last = now
        if self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)
        else:
            output.log(text)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self._width:
            sys.stderr.write("\n")

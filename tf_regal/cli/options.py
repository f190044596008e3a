"""Options that several verbs share. Defaults and what is valid come from `Settings`: nothing is said twice."""

import argparse
import contextlib
import dataclasses
import os
import re
import sys

from tf_regal import errors
from tf_regal.cli import parser as parser_lib
from tf_regal.cli import startup
from tf_regal.devices import Topology
from tf_regal.search import METHODS, OBJECTIVES, order
from tf_regal.settings import Settings

_SCALES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SETTINGS = ("objective", "max_slowdown", "method", "policy", "evaluations", "seconds", "seed", "batch_size", "order", "costs", "robustness")
_ARGUMENT = re.compile(r"(?P<name>[a-z_]+)=")

MODEL_HELP = (
    "a SavedModel directory, a GraphDef (.pb or .pbtxt), a CostGraphDef (.pbtxt), an exported OpGraph (.json or .json.xz), "
    "or a DNN-partitioning or DAGBench task graph (.json)"
)


def default(name):
    """The default of a setting."""
    return next(field.default for field in dataclasses.fields(Settings) if field.name == name)


def byte_count(text):
    """argparse type: "16GiB", "500MB", "4000000" → bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text, re.IGNORECASE)
    scale = _SCALES.get(match[2].upper()) if match else None
    count = round(float(match[1]) * scale) if scale else 0
    if count < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size: give bytes above 0, or a number with a unit, kB, MB, GB, TB (1000) or "
            "KiB, MiB, GiB, TiB (1024)"
        )
    return count


def names(text):
    """argparse type: "a,b:0" → ["a", "b:0"]."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing: give tensor names with commas between them")
    return found


def _policy(text):
    return None if text == "none" else text


def add_model(parser, help=MODEL_HELP):
    """MODEL, and what says which graph of it is meant."""
    parser.add_argument("model", metavar="MODEL", help=help)
    group = parser.add_argument_group("which graph of the model")
    group.add_argument("--signature", metavar="S", help="signature of the SavedModel (default: serving_default)")
    group.add_argument(
        "--inputs", metavar="A,B", type=names, help="a GraphDef's input tensors (default: its placeholders)"
    )
    group.add_argument(
        "--outputs",
        metavar="C,D",
        type=names,
        help="a GraphDef's result tensors (default: those that nothing consumes)",
    )
    group.add_argument(
        "--batch-size",
        metavar="B",
        type=int,
        default=default("batch_size"),
        help="value of unknown batch dimensions (default: a stated assumption, see the plan's notes)",
    )


def add_topology(parser):
    """--topology and --memory-limit."""
    parser.add_argument(
        "--topology",
        metavar="T",
        default=default("topology"),
        help='devices: "local", "/job:worker", "2xA100-40GB", "4xTPUv4", "1xCPU+2xT4", "2xCPU", "paper", or a .json file; '
        "`tf-regal devices` lists what can be named (default: %(default)s)",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="BYTES",
        type=byte_count,
        help="replaces every device's memory: bytes, or with a unit, 16GiB, 500MB (default: what the devices have)",
    )


def add_settings(parser):
    """What to improve, for which devices, and how hard to search."""
    group = parser.add_argument_group("what to improve, and for which devices")
    add_topology(group)
    group.add_argument(
        "--objective",
        metavar="O",
        default=default("objective"),
        help=f"{' or '.join(OBJECTIVES)} (default: %(default)s)",
    )
    group.add_argument(
        "--max-slowdown",
        metavar="X",
        type=float,
        default=default("max_slowdown"),
        help="for peak_memory: how many times the default plan's predicted time it may take (default: %(default)s)",
    )
    group.add_argument(
        "--order",
        metavar="MODE",
        default=default("order"),
        help=f"control edges that keep the planned order: {', '.join(order.MODES)} (default: %(default)s)",
    )
    group = parser.add_argument_group("how to search")
    group.add_argument(
        "--method", metavar="M", default=default("method"), help=f"one of {', '.join(METHODS)} (default: %(default)s)"
    )
    group.add_argument(
        "--policy",
        metavar="P",
        type=_policy,
        default=default("policy"),
        help="what the genetic search draws from: auto, the shipped policy for the objective (regal does without it); a policy's directory; "
        "none: uniform (default: %(default)s)",
    )
    group.add_argument(
        "--evaluations",
        metavar="N",
        type=int,
        default=default("evaluations"),
        help="candidates to simulate (default: %(default)s)",
    )
    group.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=default("seconds"),
        help="stop after S seconds (default: no limit)",
    )
    group.add_argument(
        "--costs",
        metavar="C",
        default=default("costs"),
        help='what ops take: "analytic" (TensorFlow\'s cost model), "measured" (what tf_regal.profile has kept), or a cost file (default: %(default)s)',
    )
    group.add_argument(
        "--robustness",
        metavar="X",
        type=float,
        default=default("robustness"),
        help="how far durations may be off, such as 0.2; the plan that holds best on average is taken (default: 0, off)",
    )
    group.add_argument(
        "--seed", metavar="K", type=int, default=default("seed"), help="of everything random (default: %(default)s)"
    )


def add_cache(parser):
    """--no-cache or --cache-dir."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--cache-dir",
        metavar="D",
        default=default("cache_dir"),
        help="where plans are kept (default: the user's cache)",
    )
    group.add_argument(
        "--no-cache", dest="cache_dir", action="store_const", const=False, help="plan anew and keep nothing"
    )


def add_output(parser):
    """--json and --progress."""
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object on stdout")


def add_progress(parser):
    """--progress or --no-progress."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a progress bar on stderr (default: where stderr is a terminal)",
    )


def show_progress(args):
    """Whether a progress bar is wanted."""
    return sys.stderr.isatty() if args.progress is None else args.progress


def settings(args):
    """The settings in the options, checked, as keywords; the topology is not parsed yet (see `topology`)."""
    chosen = {name: getattr(args, name) for name in _SETTINGS}
    chosen.update(topology=args.topology, cache_dir=args.cache_dir)
    with option_values(args.parser):
        Settings.make(chosen)
    return chosen


def topology(args):
    """--topology and --memory-limit → Topology. Loads TensorFlow for "local" only."""
    if args.topology.strip().lower().startswith(("local", "/job:", "/replica:", "/task:", "/device:")):
        startup.load_tensorflow()
    with option_values(args.parser):
        parsed = Topology.parse(args.topology)
        return parsed if args.memory_limit is None else parsed.with_memory(args.memory_limit)


def graph_of(args):
    """What says which graph of the model is meant, as keywords for `tf_regal.plan` and `tf_regal.apply`."""
    chosen = {"inputs": args.inputs, "outputs": args.outputs}
    if args.signature is not None:
        chosen["signature"] = args.signature
    return chosen


def check_model(args):
    """Raises GraphError where there is no such model, before TensorFlow is imported for nothing."""
    if not os.path.exists(args.model):
        raise errors.GraphError(f"model={args.model!r}: there is no such file or directory. Give {MODEL_HELP}.")


@contextlib.contextmanager
def option_values(parser):
    """InvalidArgumentError in here comes from what the user typed: it counts as wrong usage and names the option."""
    try:
        yield
    except errors.InvalidArgumentError as error:
        message = str(error)
        match = _ARGUMENT.match(message)
        option = f"--{match['name'].replace('_', '-')}" if match else None
        known = any(option in action.option_strings for action in parser._actions)
        raise parser_lib.UsageError(f"argument {option}: {message}" if known else message, prog=parser.prog) from error

"""`tf-regal apply`: a model and its plan → a model of the same kind that runs as planned."""

import os

from tf_regal import errors, plans
from tf_regal.cli import options, output, startup

_EPILOG = """\
examples:
  tf-regal apply my_saved_model plan.json -o planned_model
  tf-regal apply frozen.pb plan.json --outputs logits -o planned.pb

The result needs no tf-regal to run: a SavedModel loads with tf.saved_model.load, a GraphDef with tf.import_graph_def.
Give the same --signature, --inputs, --outputs and --batch-size as for `tf-regal plan`.
"""
_SUFFIXES = (".pb", ".pbtxt")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "apply",
        help="make a SavedModel or GraphDef that runs as planned",
        description="Puts a plan on the model that it was made for, and writes the result. The model itself is not "
        "changed.",
        epilog=_EPILOG,
    )
    options.add_model(parser, "a SavedModel directory, or a GraphDef (.pb or .pbtxt)")
    parser.add_argument("plan", metavar="PLAN.json", help="a plan that `tf-regal plan` wrote for this model")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="for a SavedModel a new directory, for a GraphDef a .pb or .pbtxt file",
    )
    options.add_output(parser)
    return parser


def run(args):
    options.check_model(args)
    is_saved_model = os.path.isdir(args.model)
    with options.option_values(args.parser):
        _check_output(args, is_saved_model)
    plan = plans.load_plan(args.plan)
    startup.load_tensorflow()
    from tf_regal import api

    result = api.apply(
        plan,
        args.model,
        output=args.output if is_saved_model else None,
        batch_size=args.batch_size,
        **options.graph_of(args),
    )
    if not is_saved_model:
        _write_graph_def(result, args.output)
    _report(args, plan, "saved_model" if is_saved_model else "graph_def")
    return 0


def _check_output(args, is_saved_model):
    if not is_saved_model:
        output.check_file("-o", args.output)
        if not args.output.endswith(_SUFFIXES):
            raise errors.InvalidArgumentError(
                f"argument -o: {args.output!r} must end in .pb or .pbtxt: a planned GraphDef is written there"
            )
    elif os.path.exists(args.output):
        raise errors.InvalidArgumentError(
            f"argument -o: {args.output!r} exists already; choose a new directory, or remove it first"
        )


def _write_graph_def(graph_def, path):
    if path.endswith(".pbtxt"):
        from google.protobuf import text_format

        output.write_bytes(path, text_format.MessageToString(graph_def).encode())
    else:
        output.write_bytes(path, graph_def.SerializeToString(deterministic=True))


def _report(args, plan, kind):
    counts = {device: len(ops) for device, ops in plan.order.items()}
    if args.json:
        output.print_json(
            {"output": args.output, "kind": kind, "ops": counts, "control_edges": len(plan.edges), "pays": plan.pays}
        )
        return
    placed = ", ".join(f"{count} ops on {device}" for device, count in counts.items())
    output.print_text(f"{args.output}: {placed}; {len(plan.edges)} control edges")
    if not plan.pays:
        output.log("tf-regal: warning: the plan is not predicted to beat the default plan by a margin that is worth it")

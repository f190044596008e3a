"""`tf-regal show`: a plan file in words and numbers. Needs no TensorFlow."""

from tf_regal import plans
from tf_regal.cli import options, output, summary

_EPILOG = """\
examples:
  tf-regal show plan.json
  tf-regal show plan.json --chrome-trace trace.json       then open trace.json in https://ui.perfetto.dev or chrome://tracing
  tf-regal show plan.json --json
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "show",
        help="explain a plan",
        description="Shows what a plan is predicted to give against the default plan and the lower bounds, what every "
        "device does, what takes longest, when memory peaks, and how the plan was found.",
        epilog=_EPILOG,
    )
    parser.add_argument("plan", metavar="PLAN.json", help="a plan that `tf-regal plan` wrote")
    parser.add_argument(
        "--chrome-trace", metavar="F", help="also write the predicted schedule in Chrome's trace format"
    )
    options.add_output(parser)
    return parser


def run(args):
    if args.chrome_trace is not None:
        with options.option_values(args.parser):
            output.check_file("--chrome-trace", args.chrome_trace)
    plan = plans.load_plan(args.plan)
    figures = summary.figures(plan, args.plan)
    if args.chrome_trace is not None:
        plan.to_chrome_trace(args.chrome_trace)
        figures["chrome_trace"] = args.chrome_trace
    if args.json:
        output.print_json(figures)
    else:
        output.print_text(summary.full_text(figures))
        if args.chrome_trace is not None:
            output.print_text(
                f"\nThe schedule is in {args.chrome_trace}: open it in https://ui.perfetto.dev or chrome://tracing"
            )
    return 0

"""`tf-regal show`: a plan file in words and numbers. Needs no TensorFlow."""

import pathlib

from tf_regal import plans, storage
from tf_regal.cli import options, output, summary
from tf_regal.views import archive, chunks, page, picture
from tf_regal.views import summary as view_summary

_EPILOG = """\
examples:
  tf-regal show plan.json
  tf-regal show plan.json --html plan.html                one file with the timeline, memory and search, for any browser
  tf-regal show plan.json --png plan.png
  tf-regal show plan.json --chrome-trace trace.json       then open trace.json in https://ui.perfetto.dev or chrome://tracing
  tf-regal show plan.json --json
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "show",
        help="explain a plan",
        description="Shows what a plan is predicted to give against the default plan and the lower bounds, what every "
        "device does, what takes longest, what devices wait for, when memory peaks and with what, and how the plan was found.",
        epilog=_EPILOG,
    )
    parser.add_argument("plan", metavar="PLAN.json", help="a plan that `tf-regal plan` wrote")
    parser.add_argument(
        "--chrome-trace", metavar="F", help="also write the predicted schedule in Chrome's trace format"
    )
    parser.add_argument(
        "--html", metavar="F", help="also write one HTML file with the views of TensorBoard's tab; with what was measured where the plan is a log directory's"
    )
    parser.add_argument("--png", metavar="F", help="also draw the schedules and memory (.png, .svg or .pdf; needs matplotlib)")
    options.add_output(parser)
    return parser


def run(args):
    files = {"--chrome-trace": args.chrome_trace, "--html": args.html, "--png": args.png}
    with options.option_values(args.parser):
        for option, path in files.items():
            if path is not None:
                output.check_file(option, path)
    plan = plans.load_plan(args.plan)
    figures = summary.figures(plan, args.plan)
    said = []
    if args.chrome_trace is not None:
        plan.to_chrome_trace(args.chrome_trace)
        figures["chrome_trace"] = args.chrome_trace
        said.append(f"The schedule is in {args.chrome_trace}: open it in https://ui.perfetto.dev or chrome://tracing")
    if args.html is not None:
        name = pathlib.Path(args.plan).name
        pieces = archive.beside(args.plan, plan.fingerprint) or chunks.chunks(plan)
        storage.write_atomically(args.html, page.html(pieces, view_summary.of_plan(plan, "plan", function=name, file=args.plan)))
        figures["html"] = args.html
        said.append(f"All views are in {args.html}: open it in a browser")
    if args.png is not None:
        picture.save(plan, args.png)
        figures["png"] = args.png
        said.append(f"The picture is in {args.png}")
    if args.json:
        output.print_json(figures)
    else:
        output.print_text("\n\n".join([summary.full_text(figures), *said]))
    return 0

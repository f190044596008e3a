"""`tf-regal plan`: a model → a plan file and its summary."""

from tf_regal.cli import options, output, startup, summary

_EPILOG = """\
examples:
  tf-regal plan my_saved_model -o plan.json
  tf-regal plan my_saved_model --topology 2xA100-40GB --objective runtime --evaluations 20000 -o plan.json
  tf-regal plan frozen.pb --outputs logits --topology 2xT4 --objective peak_memory --memory-limit 500MB -o plan.json

Then: `tf-regal show plan.json` explains the plan, `tf-regal apply MODEL plan.json -o OUT` makes a model that runs so.
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "plan",
        help="plan a model: where every op runs, and in which order",
        description="Plans a model without running it, writes the plan, and prints what it is predicted to give.",
        epilog=_EPILOG,
    )
    options.add_model(parser)
    parser.add_argument("-o", "--output", metavar="PLAN.json", required=True, help="the plan file to write")
    parser.add_argument("--logdir", metavar="D", help="also write the plan for TensorBoard: tensorboard --logdir D")
    options.add_output(parser)
    options.add_progress(parser)
    options.add_cache(parser)
    options.add_settings(parser)
    return parser


def run(args):
    settings = options.settings(args)
    with options.option_values(args.parser):
        output.check_file("-o", args.output)
    options.check_model(args)
    settings["topology"] = options.topology(args)
    startup.load_tensorflow()
    from tf_regal import api

    plan = api.plan(args.model, show_progress=options.show_progress(args), logdir=args.logdir, **options.graph_of(args), **settings)
    plan.save(args.output)
    figures = summary.figures(plan, args.output)
    if args.json:
        output.print_json(figures)
    else:
        output.print_text(summary.short_text(figures))
        if args.logdir is not None:
            output.print_text(f"\nThe schedule is the newest in TensorBoard's tab REGAL: tensorboard --logdir {args.logdir}")
    return 0

"""`tf-regal evaluate`: what a policy is worth, on any graphs: a comparison with the rows that a fair result needs."""

from tf_regal.cli import compare, options
from tf_regal.comparison import graphs as graphs_lib
from tf_regal.policy import cards
from tf_regal.search import OBJECTIVES

_EPILOG = """\
examples:
  tf-regal evaluate benchmarks/zoo/split.json:test --topology paper,2xA100-40GB --results results.jsonl --markdown table.md
  tf-regal evaluate my_graphs/ --policy runs/runtime/policy --objective runtime
  tf-regal evaluate graph.json --objective runtime --also runs/gas/policy,runs/control/policy

The policy's searches get 8 % fewer evaluations than the others, which pays for its network. Everything that `tf-regal compare` can do goes for the
rows here, too: `tf-regal compare GRAPH --methods brkga@auto,regal@auto,regal --baseline regal` compares two of them by pairs of runs.
"""

BY_HAND = {"runtime": "depth-etf-1", "peak_memory": "start-free-3"}
"""The hand-made proposals that were best on training graphs (`python -m benchmarks.hand_made`, benchmarks/results/hand_made.json)."""

_SHARE = 0.92  # of the evaluations; REGAL had 4,600 where BRKGA had 5,000


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "evaluate",
        help="what a policy is worth on any graphs, beside uniform, tuned and hand-made proposals",
        description="Compares BRKGA with a policy's proposals with uniform and tuned BRKGA, hand-made proposals, and random search in the policy's "
        "distributions (IDRS), and the full search with and without the policy.",
        epilog=_EPILOG,
    )
    parser.add_argument("graphs", metavar="GRAPH", nargs="+", help=graphs_lib.KINDS.replace("%", "%%"))
    parser.add_argument("--policy", metavar="P", default="auto", help="auto: the shipped ones; or a policy's directory (default: %(default)s)")
    parser.add_argument(
        "--also", metavar="P,Q", type=options.names, default=[], help="more proposals for BRKGA, as rows: policies' directories (GAS, a control, …)"
    )
    compare.add_options(parser, methods=False)
    parser.set_defaults(baseline="brkga")
    return parser


def run(args):
    with options.option_values(args.parser):
        everything = OBJECTIVES if args.policy == "auto" else [cards.read(args.policy)["objective"]]
        args.objective = list(dict.fromkeys(args.objective or everything))
    fewer = round(_SHARE * args.evaluations)
    by_hand = dict.fromkeys(f"brkga@by-hand-{BY_HAND[objective]}:{fewer}" for objective in args.objective if objective in BY_HAND)
    args.methods = [
        "brkga", "tuned_brkga", *by_hand, f"idrs@{args.policy}:{fewer}", *(f"brkga@{other}:{fewer}" for other in args.also),
        f"brkga@{args.policy}:{fewer}", "regal", f"regal@{args.policy}",
    ]  # fmt: skip
    return compare.run(args)

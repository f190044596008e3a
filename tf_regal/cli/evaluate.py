"""`tf-regal evaluate`: what a policy is worth, on any graphs: a comparison with the rows that a fair result needs."""

from tf_regal import errors
from tf_regal.cli import compare, options, proposals
from tf_regal.comparison import graphs as graphs_lib
from tf_regal.policy import cards, handmade
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
    objectives = list(dict.fromkeys(args.objective or OBJECTIVES))
    for objective in objectives:
        if objective not in OBJECTIVES:
            args.parser.error(f"argument --objective: {objective!r} is not known; give {' or '.join(OBJECTIVES)}")
    fewer = round(_SHARE * args.evaluations)
    with options.option_values(args.parser):
        usable = [o for o in objectives if cards.identity(args.policy, o)]
        if not usable:
            raise errors.InvalidArgumentError(f"policy={args.policy!r} is not a policy; give {proposals.KINDS}")
        for objective in usable if args.policy == "auto" else []:
            cards.read(cards.directory(args.policy, objective), objective)
        if args.policy != "auto":
            card = cards.read(args.policy)
            if args.objective and objectives != [card["objective"]]:
                cards.read(args.policy, next(o for o in objectives if o != card["objective"]))
            objectives = [card["objective"]]
    args.objective = objectives
    by_hand = dict.fromkeys(f"brkga@by-hand-{BY_HAND[objective]}:{fewer}" for objective in objectives)
    assert set(BY_HAND.values()) <= set(handmade.names())
    args.methods = [
        "brkga", "tuned_brkga", *by_hand, f"idrs@{args.policy}:{fewer}", *(f"brkga@{other}:{fewer}" for other in args.also),
        f"brkga@{args.policy}:{fewer}", "regal", f"regal@{args.policy}",
    ]  # fmt: skip
    return compare.run(args)

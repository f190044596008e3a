"""What robustness buys on real devices: plans of several seeds with and without, measured on two workers of one core each.

    python benchmarks/robustness.py      → docs/robustness.md

The multi-branch CNN's training step, costs from one profile. Per seed a plan without (0) and with robustness (0.3), both applied whatever they predict; rounds
are interleaved, ratios to one worker taken within a round.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import tensorflow as tf
from real_devices import TOPOLOGY, Variant, make_function
from real_models import MODELS, nowhere

import tf_regal
from tf_regal.bench.workers import Workers

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "robustness.md"
SPREADS = (0.0, 0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="multi-branch CNN", choices=list(MODELS), help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("-o", "--output", default=DOC, help="(default: %(default)s)")
    args = parser.parse_args()
    with Workers(2) as workers, tempfile.TemporaryDirectory() as directory:
        device, costs = workers.devices[0], f"{directory}/costs.json"
        function, inputs, _ = make_function(args.model, True, nowhere, device)
        one = Variant(function, inputs, device)
        profiled, inputs, _ = make_function(args.model, True, nowhere, device)
        with tf.device(device):
            tf_regal.profile(profiled, *inputs, topology=TOPOLOGY, costs=costs)
        plans, variants = {}, {}
        for seed in range(args.seeds):
            for spread in SPREADS:
                function, inputs, _ = make_function(args.model, True, nowhere, device)
                planned = tf_regal.optimize(
                    function, robustness=spread, seed=seed, topology=TOPOLOGY, costs=costs, move_variables=True, min_ops=0, cache_dir=False,
                    on_error="raise", apply="always",
                )  # fmt: skip
                variants[spread, seed] = Variant(planned, inputs, device)
                variants[spread, seed].step()
                plans[spread, seed] = tf_regal.reports()[-1].plan
        for variant in (one, *variants.values()):
            variant.step()
        for _ in range(args.rounds):
            for variant in (one, *variants.values()):
                variant.seconds.append(variant.step())
    lines = [
        "# Robust plans, measured\n",
        f"`python benchmarks/robustness.py`, {time.strftime('%Y-%m-%d')}: {args.model}, training, two workers of one core each, {args.seeds} seeds, medians of",
        f"{args.rounds} interleaved rounds. Speed-up over one worker.\n",
        "| robustness | median | lowest and highest seed | predicted | evaluations |\n|---|---|---|---|---|",
    ]
    base = statistics.median(one.seconds)
    for spread in SPREADS:
        measured = []
        for seed in range(args.seeds):
            measured.append(statistics.median(a / b for a, b in zip(one.seconds, variants[spread, seed].seconds, strict=True)))
        of_plans = [plans[spread, seed] for seed in range(args.seeds)]
        predicted = statistics.median(plan.default.makespan_s / plan.predicted.makespan_s for plan in of_plans)
        made = statistics.median(plan.search.evaluations for plan in of_plans)
        lines.append(f"| {spread:g} | {statistics.median(measured):.2f}× | {min(measured):.2f}× to {max(measured):.2f}× | {predicted:.2f}× | {made:.0f} |")
        print(lines[-1], flush=True)
    lines.append(f"\nOne worker: {base * 1e3:.0f} ms per step.")
    pathlib.Path(args.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

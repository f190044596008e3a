"""What robustness buys on real devices: plans of several seeds with and without, measured on two workers of one core each.

    python benchmarks/robustness.py      → docs/robustness.md

Training steps, costs from one profile. Per seed and model a plan without (0) and with robustness (0.3), both applied whatever they predict; rounds
are interleaved, ratios to one worker taken within a round.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import tensorflow as tf
from real_devices import TOPOLOGY, Variant, make_function
from real_models import MODELS, nowhere

import tf_regal
from tf_regal.bench.workers import Workers

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "robustness.md"
SPREADS = (0.0, 0.3)


def measure(model, seeds, rounds):
    """Rows of the table for one model."""
    with Workers(2) as workers, tempfile.TemporaryDirectory() as directory:
        device, costs = workers.devices[0], f"{directory}/costs.json"
        function, inputs, _ = make_function(model, True, nowhere, device)
        one = Variant(function, inputs, device)
        profiled, inputs, _ = make_function(model, True, nowhere, device)
        with tf.device(device):
            tf_regal.profile(profiled, *inputs, topology=TOPOLOGY, costs=costs)
        plans, variants = {}, {}
        for seed in range(seeds):
            for spread in SPREADS:
                function, inputs, _ = make_function(model, True, nowhere, device)
                planned = tf_regal.optimize(
                    function, robustness=spread, seed=seed, topology=TOPOLOGY, costs=costs, move_variables=True, min_ops=0, cache_dir=False,
                    on_error="raise", apply="always",
                )  # fmt: skip
                variants[spread, seed] = Variant(planned, inputs, device)
                variants[spread, seed].step()
                plans[spread, seed] = tf_regal.reports()[-1].plan
        for variant in (one, *variants.values()):
            variant.step()
        for _ in range(rounds):
            for variant in (one, *variants.values()):
                variant.seconds.append(variant.step())
    rows = []
    for spread in SPREADS:
        measured = []
        for seed in range(seeds):
            measured.append(statistics.median(a / b for a, b in zip(one.seconds, variants[spread, seed].seconds, strict=True)))
        of_plans = [plans[spread, seed] for seed in range(seeds)]
        predicted = statistics.median(plan.default.makespan_s / plan.predicted.makespan_s for plan in of_plans)
        made = statistics.median(plan.search.evaluations for plan in of_plans)
        cells = f"{statistics.median(measured):.2f}× | {min(measured):.2f}× to {max(measured):.2f}× | {predicted:.2f}× | {made:.0f}"
        rows.append(f"| {model}, {statistics.median(one.seconds) * 1e3:.0f} ms | {spread:g} | {cells} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS)[:3], choices=list(MODELS), metavar="MODEL", help="(default: the first three)")
    parser.add_argument("--seeds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="(default: %(default)s)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", default=DOC, help="(default: %(default)s)")
    args = parser.parse_args()
    if args.one:
        print("\n".join(measure(args.models[0], args.seeds, args.rounds)))
        return
    lines = [
        "# Robust plans, measured\n",
        f"`python benchmarks/robustness.py`, {time.strftime('%Y-%m-%d')}: training steps, two workers of one core each, {args.seeds} seeds, medians of",
        f"{args.rounds} interleaved rounds. Speed-up over one worker.\n",
        "| model, one worker | robustness | median | lowest and highest seed | predicted | evaluations |\n|---|---|---|---|---|---|",
    ]
    for model in args.models:
        # A process of its own: TensorFlow is connected to workers once.
        command = [sys.executable, __file__, "--one", "--models", model, "--seeds", str(args.seeds), "--rounds", str(args.rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=1200)
        lines += [line for line in done.stdout.splitlines() if line.startswith("|")]
        print("\n".join(lines[-len(SPREADS):]), flush=True)
    pathlib.Path(args.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Peak memory against step time: what `max_slowdown` chooses from, predicted and measured.

    python benchmarks/tradeoff.py                 # a training step and an inference (about 5 minutes; needs matplotlib: tf-regal[compare])
    python benchmarks/tradeoff.py --row InceptionV3:training --no-write

The models of benchmarks/memory.py on one CPU device, planned for peak_memory with one max_slowdown after the other in the same process;
then calls of TensorFlow's own graph and of every plan in turn. Times are ratios to the default's call of the same round. Writes
docs/tradeoff.md and docs/tradeoff.png.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from tf_regal.bench import timing
from tf_regal.bench.models import BATCH, SIZE, make_function
from tf_regal.plans import allocator

ROWS = ("InceptionV3:training", "NASNetMobile:inference")
SLOWDOWNS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
CALLS = 16
DOCS = pathlib.Path(__file__).parent.parent / "docs"


def run_row(row, calls):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # TensorFlow's CPU allocator keeps statistics only with oneDNN
    import tensorflow as tf

    import tf_regal

    name, mode = row.split(":")
    concrete, args = make_function(tf, name, mode)
    points, functions = [], {}
    for slowdown in SLOWDOWNS:
        planned = tf_regal.optimize(
            concrete, objective="peak_memory", topology="local", max_slowdown=slowdown, cache_dir=False, on_error="raise"
        )
        planned(*args)
        report = [r for r in tf_regal.reports() if r.status != "skipped"][-1]
        plan = report.plan
        (device,) = plan.topology.names
        held = sum(allocator.counted(plan.persistent_bytes.tolist(), "CPU"))
        points.append(
            {
                "max_slowdown": slowdown,
                "status": report.status,
                "edges": len(plan.edges),
                "predicted_time": plan.predicted.makespan_s / plan.default.makespan_s,
                "predicted_peak": plan.predicted.allocator_bytes[device] - held,
                "predicted_default_peak": plan.default.allocator_bytes[device] - held,
                "plan_s": report.seconds["plan"],
            }
        )
        # Two limits may give the same plan: it is measured once.
        same = next((p for p in points[:-1] if p["status"] == "planned" and functions[p["max_slowdown"]][1] == plan.edges.tolist()), None)
        functions[slowdown] = functions[same["max_slowdown"]] if same else (planned, plan.edges.tolist())
    distinct = {id(f): f for f, _ in functions.values()}
    samples = {"default": [], **{key: [] for key in distinct}}
    concrete(*args)
    for _ in range(calls):
        samples["default"].append(timing.peak_and_seconds(tf, "CPU:0", lambda: concrete(*args)))
        for key, function in distinct.items():
            samples[key].append(timing.peak_and_seconds(tf, "CPU:0", lambda function=function: function(*args)))
    for point in points:
        mine = samples[id(functions[point["max_slowdown"]][0])]
        point["peaks"] = [peak for peak, _ in mine]
        point["times"] = [seconds / base for (_, seconds), (_, base) in zip(mine, samples["default"], strict=True)]
    print(json.dumps({"row": row, "default_peaks": [p for p, _ in samples["default"]], "points": points}))


def table(result):
    base = statistics.median(result["default_peaks"])
    lines = [
        "| max_slowdown | control edges | time, predicted | time, measured (quartiles) | peak, predicted, MB | peak, measured, MB | saved | planned in, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p in result["points"]:
        peak = statistics.median(p["peaks"])
        low, middle, high = statistics.quantiles(p["times"], n=4)
        lines.append(
            f"| {p['max_slowdown']:g} | {p['edges'] if p['status'] == 'planned' else p['status'].replace('_', ' ')} | {p['predicted_time']:.2f} "
            f"| {middle:.2f} ({low:.2f}–{high:.2f}) | {p['predicted_peak'] / 1e6:.1f} | {peak / 1e6:.1f} | {1 - peak / base:+.1%} | {p['plan_s']:.1f} |"
        )
    worst = max(result["default_peaks"]) / 1e6
    return f"TensorFlow's own: {base / 1e6:.1f} MB in the median, {worst:.1f} at worst.\n\n" + "\n".join(lines) + "\n"


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(results), figsize=(5 * len(results), 4), layout="constrained")
    for axis, result in zip(axes, results, strict=True):
        base = statistics.median(result["default_peaks"])
        points = [p for p in result["points"] if p["status"] == "planned"]
        predicted = [(1.0, 1.0)] + [(p["predicted_time"], p["predicted_peak"] / p["predicted_default_peak"]) for p in points]
        measured = [(1.0, 1.0)] + [(statistics.median(p["times"]), statistics.median(p["peaks"]) / base) for p in points]
        for style, label, values in (("o-", "predicted", predicted), ("s--", "measured", measured)):
            axis.plot(*zip(*values, strict=True), style, label=label)
        axis.set_title(result["row"].replace(":", ", "))
        axis.set_xlabel("step time / default")
        axis.set_ylabel("peak memory / default")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", choices=ROWS, help="one row only")
    parser.add_argument("--calls", type=int, default=CALLS, help="of every graph (default: %(default)s)")
    parser.add_argument("--no-write", action="store_true", help="only print")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        run_row(args.row, args.calls)
        return
    results = []
    for row in [args.row] if args.row else ROWS:
        command = [sys.executable, __file__, "--worker", "--row", row, "--calls", str(args.calls)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        results.append(json.loads(output.splitlines()[-1]))
        print(row, table(results[-1]), sep="\n\n", flush=True)
    if args.no_write:
        return
    draw(results, DOCS / "tradeoff.png")
    sections = "\n".join(f"## {r['row'].replace(':', ', ')}\n\n{table(r)}" for r in results)
    (DOCS / "tradeoff.md").write_text(
        "# Peak memory against step time\n\n"
        f"What `max_slowdown` chooses from. Made by `python benchmarks/tradeoff.py`: {SIZE} × {SIZE}, batch {BATCH}, one CPU device, {args.calls} calls of "
        "every graph in turn. Peaks and their prediction as in [memory.md](memory.md); times over the default's call of the same round.\n\n"
        "![peak memory against step time](tradeoff.png)\n\n" + sections
    )


if __name__ == "__main__":
    main()

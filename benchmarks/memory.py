"""Peak memory and step time, TensorFlow's own and planned, measured by the allocator on one CPU device.

    python benchmarks/memory.py                 # both tables (about 6 minutes on two cores)
    python benchmarks/memory.py --row NASNetMobile:inference

Each row runs in a fresh process: the Keras application with random weights, 160 × 160, batch 8, planned for peak_memory with each
`max_slowdown`; then default and planned calls in turn. `get_memory_info` counts chunks of 256 KiB and more (oneDNN's CPU allocator); what was
in use before the call (variables, arguments) is taken off, in the prediction too. Writes docs/memory.md.
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

ROWS = [f"{model}:{mode}" for model in ("InceptionV3", "NASNetMobile") for mode in ("inference", "training")]
SLOWDOWNS = (1.05, 1.5)  # 1.5 is tf_regal's default
CPU = "CPU:0"
CALLS = 20
DOC = pathlib.Path(__file__).parent.parent / "docs" / "memory.md"


def run_row(row, evaluations, max_slowdown):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # TensorFlow's CPU allocator keeps statistics only with oneDNN
    import tensorflow as tf

    import tf_regal

    name, mode = row.split(":")
    concrete, args = make_function(tf, name, mode)
    planned = tf_regal.optimize(
        concrete, objective="peak_memory", topology="local", max_slowdown=max_slowdown, evaluations=evaluations, cache_dir=False, on_error="raise"
    )
    planned(*args)
    planned(*args)
    concrete(*args)
    (report,) = (r for r in tf_regal.reports() if r.status != "skipped")
    samples = {"default": [], "planned": []}
    for _ in range(CALLS):
        samples["default"].append(timing.peak_and_seconds(tf, CPU, lambda: concrete(*args)))
        samples["planned"].append(timing.peak_and_seconds(tf, CPU, lambda: planned(*args)))
    plan = report.plan
    (device,) = plan.topology.names
    # Neither before the call nor in its peak does the allocator count small persistent chunks.
    held = sum(allocator.counted(plan.persistent_bytes.tolist(), "CPU"))
    print(
        json.dumps(
            {
                "row": row,
                "status": report.status,
                "ops": len(plan.ops),
                "traced_ops": len(concrete.graph.get_operations()),
                "default_peak": [p for p, _ in samples["default"]],
                "planned_peak": [p for p, _ in samples["planned"]],
                "default_s": [s for _, s in samples["default"]],
                "planned_s": [s for _, s in samples["planned"]],
                "predicted_default": plan.default.allocator_bytes[device] - held,
                "predicted_planned": plan.predicted.allocator_bytes[device] - held,
                "bound": plan.bounds.peak_bytes - int(plan.persistent_bytes.sum()),
                "edges": len(plan.edges),
                "seconds": report.seconds,
                "search_s": plan.search.seconds,
            }
        )
    )


def table(results):
    head = (
        "| model | ops | TensorFlow's peak, MB: median (worst) | predicted | planned peak, MB: median (worst) | predicted | saved "
        "| lower bound, MB | prediction off by | step time, planned / default: median of pairs (quartiles) | control edges | status |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    lines = []
    for r in results:
        default, planned = (statistics.median(r[key]) / 1e6 for key in ("default_peak", "planned_peak"))
        low, middle, high = statistics.quantiles([p / d for p, d in zip(r["planned_s"], r["default_s"], strict=True)], n=4)
        predicted = r["predicted_planned"] / 1e6
        kept = r["status"] != "planned"
        lines.append(
            f"| {r['row'].replace(':', ', ')} | {r['ops']} | {default:.1f} ({max(r['default_peak']) / 1e6:.1f}) | {r['predicted_default'] / 1e6:.1f} "
            f"| {planned:.1f} ({max(r['planned_peak']) / 1e6:.1f}) | {'' if kept else f'{predicted:.1f}'} "
            f"| {1 - planned / default:+.1%} | {r['bound'] / 1e6:.1f} "
            f"| {'' if kept else f'{predicted / planned - 1:+.1%}'} | {middle:.2f} ({low:.2f}–{high:.2f}) "
            f"| {'' if kept else r['edges']} | {r['status'].replace('_', ' ')} |"
        )
    return head + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", choices=ROWS, help="one row only, as JSON, in this process")
    parser.add_argument("--max-slowdown", type=float, default=SLOWDOWNS[-1], help="for --row (default: %(default)s)")
    parser.add_argument("--evaluations", type=int, default=5000)
    args = parser.parse_args()
    if args.row:
        run_row(args.row, args.evaluations, args.max_slowdown)
        return
    tables = []
    for slowdown in SLOWDOWNS:
        results = []
        for row in ROWS:
            command = [sys.executable, __file__, "--row", row, "--evaluations", str(args.evaluations), "--max-slowdown", str(slowdown)]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            results.append(json.loads(output.splitlines()[-1]))
            print(slowdown, table(results[-1:]).splitlines()[-1], flush=True)
        tables.append(f"`max_slowdown={slowdown}`:\n\n{table(results)}")
    planning = "\n".join(
        f"- {r['row'].replace(':', ', ')}: {r['traced_ops']} traced ops, {r['ops']} after TensorFlow's optimizers; capture {r['seconds']['capture']:.1f} s, "
        f"costs {r['seconds']['costs']:.1f} s, search and order {r['seconds']['plan']:.1f} s, of which the search {r['search_s']:.1f} s"
        for r in results
    )
    DOC.write_text(
        "# Peak memory on one CPU device\n\n"
        f"Made by `python benchmarks/memory.py`: {SIZE} × {SIZE}, batch {BATCH}, random weights, {CALLS} calls each in turn, fresh process per row, "
        f"{args.evaluations} evaluations. Peaks above what was in use before the call, as `tf.config.experimental.get_memory_info` gives them "
        "(oneDNN's CPU allocator: whole chunks, those below 256 KiB not counted). Training: SGD with momentum. "
        "No order of the ops can go below the lower bound (docs/simulator.md), which is of all bytes that kernels ask for, those in small chunks, too: "
        "where TensorFlow's own peak is there already, nothing can be had.\n\n"
        + "\n".join(tables)
        + "\nPlanning time:\n\n"
        + planning
        + "\n"
    )


if __name__ == "__main__":
    main()

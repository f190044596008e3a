"""The latency instances of the DNN-partitioning benchmark: regal against the splits that human experts made, and against other methods.

    python benchmarks/dnn_partitioning.py                       # all instances, 5 seeds (about 5 minutes on one core)
    python benchmarks/dnn_partitioning.py --only bert24 --seeds 1

Needs the benchmark's files (github.com/msr-fiddle/dnn-partitioning): --data, or TF_REGAL_SHARED_DATA as for the tests. Two settings:

    instance   the accelerators and the memory that the file states
    expert     six accelerators, as many as the experts used, without a memory limit: most expert splits do not fit the instances' memory

The expert's placement gets the best of four orders, so that only the placement is judged: first come first served, last come first served, longest
path first, and a BRKGA that may change nothing but the order. Where the instance has fewer accelerators than the expert used, two of its parts are
merged: all pairs are tried and the best is kept. Writes benchmarks/results/dnn_partitioning.json and docs/dnn_partitioning.md.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics

import numpy as np

from tf_regal import problem as problem_lib
from tf_regal.graph import task_graphs
from tf_regal.plans import planner
from tf_regal.search import METHODS, Budget, Task, heuristics

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "dnn_partitioning.json"
DOC = ROOT / "docs" / "dnn_partitioning.md"
SOURCE = "msr-fiddle__dnn-partitioning"
EXPERT_DEVICES = 6


def default_data():
    return pathlib.Path(os.environ.get("TF_REGAL_SHARED_DATA") or ROOT.parent / "shared" / "data") / SOURCE


def make_task(problem, seed=0):
    return Task(problem, "runtime", planner.default_placement(problem), seed=seed)


def expert_parts(path, document):
    """The expert's split: a list of lists of op indices, one per accelerator."""
    index = {node["id"]: i for i, node in enumerate(document["nodes"])}
    split = json.loads(path.read_text())
    if any(part["nodes"] for part in split["cpus"]):
        raise SystemExit(f"{path}: the expert put nodes on a CPU; this benchmark knows accelerators only")
    return [[index[number] for number in part["nodes"]] for part in split["fpgas"]]


def expert_placements(parts, n_ops, n_devices):
    """int32 [ops] placements of the split on n_devices: itself, or with two parts merged where it is one device short."""
    if len(parts) <= n_devices:
        merged = [parts]
    elif len(parts) == n_devices + 1:
        pairs = itertools.combinations(range(len(parts)), 2)
        merged = [[parts[a] + parts[b], *(part for i, part in enumerate(parts) if i not in (a, b))] for a, b in pairs]
    else:
        raise SystemExit(f"an expert split of {len(parts)} parts for {n_devices} devices: only one merge is known")
    placements = []
    for parts_now in merged:
        device = np.full(n_ops, -1, np.int32)
        for q, part in enumerate(parts_now):
            device[part] = q
        if (device < 0).any():
            raise SystemExit("the expert split leaves nodes out")
        placements.append(device)
    return placements


def best_order(problem, device, evaluations, seed):
    """The best run found of a placement that is kept: three orders, and BRKGA on what is left, the order."""
    fixed = np.full_like(problem.duration, -1)
    at = np.arange(problem.n_ops)
    fixed[at, device] = problem.duration[at, device]
    unlimited = np.full_like(problem.capacity, problem_lib.UNLIMITED)  # the expert is not held to the memory, only told
    task = make_task(problem.replace(duration=fixed, capacity=unlimited), seed)
    none = np.zeros(problem.n_ops, np.float32)
    found = [task.evaluate(device, none, discipline=d) for d in ("fifo", "lifo")]
    found.append(task.evaluate(device, heuristics.upward_rank(task).astype(np.float32)))
    found.append(METHODS["brkga"](task, Budget(evaluations, threads=1)))
    return task.best(found).run


def judge_expert(problem, parts, evaluations):
    """{makespan_ms, over_memory_bytes} of the best way to use the split, fitting ones first."""
    runs = [best_order(problem, device, evaluations, 0) for device in expert_placements(parts, problem.n_ops, problem.n_devices)]
    excess = [int(np.maximum(run.peak - problem.capacity, 0).max()) for run in runs]
    best = min(range(len(runs)), key=lambda i: (excess[i] > 0, runs[i].makespan))
    return {"makespan_ms": runs[best].makespan / 1e6, "over_memory_bytes": excess[best]}


def judge_method(problem, method, evaluations, seeds):
    """Makespans (ms) of the runs that keep the memory, and how many do not."""
    found, over = [], 0
    for seed in range(seeds):
        run = METHODS[method](make_task(problem, seed), Budget(evaluations, threads=1)).run
        if np.any(run.peak > problem.capacity):
            over += 1
        else:
            found.append(run.makespan / 1e6)
    return {"makespan_ms": found, "over_memory": over}


def measure(data, only, evaluations, seeds):
    for path in sorted((data / "latency-inputs").glob("*/*.json")):
        name = f"{path.parent.name.removesuffix('Graphs')} {path.stem.removesuffix('_inference')}"
        if only and only not in name:
            continue
        document = json.loads(path.read_text())
        graph = task_graphs.read(document, str(path))
        expert = data / "human-experts" / f"{path.stem}_expert.json"
        parts = expert_parts(expert, document) if expert.exists() and path.parent.name == "LayerGraphs" else None
        own = task_graphs.topology(document, str(path))
        settings = {"instance": own}
        if parts is not None:
            settings["expert"] = task_graphs.topology({**document, "maxFPGAs": EXPERT_DEVICES}, str(path)).with_memory(None)
        for setting, topology in settings.items():
            problem, notes = problem_lib.build(graph, topology)
            if notes:
                raise SystemExit(f"{path}: {notes}")
            row = {
                "graph": name, "setting": setting, "ops": graph.n_ops, "devices": topology.n_devices, "memory_bytes": topology.devices[0].memory,
                "cannot_fit": cannot_fit(problem), "bound_ms": make_task(problem).simulator.bounds()[0] / 1e6,
                "expert": None if parts is None else judge_expert(problem, parts, evaluations),
                "regal": judge_method(problem, "regal", evaluations, seeds),
                "brkga": judge_method(problem, "brkga", evaluations, seeds),
                "heft": judge_method(problem, "heft", evaluations, 1),
            }
            print(text_of(row), flush=True)
            yield row


def cannot_fit(problem):
    """Whether some op can be on no device: with its producer there, or with a copy of its input, the memory is exceeded."""
    held = np.bincount(problem.group, problem.persistent)
    for op in range(problem.n_ops):
        for tensor in problem.inputs(op):
            ours, theirs = problem.group[op], problem.group[problem.producer[tensor]]
            if ours != theirs and held[ours] + min(held[theirs], problem.size[tensor]) > problem.capacity.max():
                return True
    return False


def spread(found):
    """Median and range over the seeds; how many runs did not fit."""
    values, over = found["makespan_ms"], found["over_memory"]
    if not values:
        return "over memory"
    text = f"{statistics.median(values):.2f}"
    if max(values) - min(values) >= 0.005:
        text += f" ({min(values):.2f} – {max(values):.2f})"
    return text + (f", {over} of {over + len(values)} over memory" if over else "")


def verdict(row):
    """How much shorter than the expert's the worst of regal's runs is, in %; None where there is nothing to compare."""
    if row["expert"] is None:
        return None
    values = row["regal"]["makespan_ms"]
    if row["regal"]["over_memory"] or not values:
        return -float("inf")
    return 100 * (1 - max(values) / row["expert"]["makespan_ms"])


def gap(row):
    values = row["regal"]["makespan_ms"]
    return f"{100 * (statistics.median(values) / row['bound_ms'] - 1):.1f} %" if values else "–"


def cells(row):
    expert, win = row["expert"], verdict(row)
    over = expert["over_memory_bytes"] if expert else 0
    return [
        row["graph"], row["setting"], str(row["ops"]), str(row["devices"]), "cannot fit" if row["cannot_fit"] else f"{row['bound_ms']:.2f}",
        "–" if expert is None else f"{expert['makespan_ms']:.2f}" + (f" (over by {over / 2**20:.0f} MiB)" if over else ""),
        spread(row["regal"]), spread(row["brkga"]), spread(row["heft"]), gap(row),
        "–" if win is None else ("no" if win <= 0 else f"by {win:.1f} %") + (", which does not fit" if over else ""),
    ]


HEADS = [
    "graph", "setting", "ops", "devices", "bound, ms", "expert, ms", "regal, ms", "BRKGA, ms", "HEFT, ms", "regal above bound", "regal beats expert",
]


def text_of(row):
    return " | ".join(f"{head}: {cell}" for head, cell in zip(HEADS, cells(row), strict=True))


def document_of(rows, evaluations, seeds):
    compared = [row for row in rows if row["expert"] is not None]
    fitting = [row for row in compared if not row["expert"]["over_memory_bytes"]]
    won, won_fitting = (sum(verdict(row) > 0 for row in group) for group in (compared, fitting))
    table = [HEADS, ["---"] * len(HEADS), *map(cells, rows)]
    return f"""# DNN-partitioning graphs

The latency instances of the DNN-partitioning benchmark (github.com/msr-fiddle/dnn-partitioning; Tarnawski et al., NeurIPS 2020) under the simulator
(simulator.md). Made by `python benchmarks/dnn_partitioning.py`; numbers in benchmarks/results/dnn_partitioning.json.

How the files are read: accelerator latencies (ms) are durations; a node's static memory stays on its device; the members of a colour class share a
device; an edge's cost is one way between device and host memory, so that a transfer between two accelerators takes twice that, on a link that
carries one transfer at a time and without blocking the devices. The copy of a tensor on another device counts as memory there.

Settings: *instance* has the accelerators and the memory of the file; *expert* has six accelerators, as many as the human experts used, without a
memory limit, since most of their splits exceed the instances' memory ("over by": on the fullest device; such a split is counted all the same).
The expert's split gets the best of first come first served, last come first served, longest path first, and a BRKGA over its order alone
({evaluations:,} evaluations). With one accelerator fewer than its parts (bert24), the best merge of two parts counts.

regal and BRKGA: {evaluations:,} evaluations, median (range) over {seeds} seeds. The bound is the larger of the critical path and the work divided by
the devices; it knows neither transfers nor memory. "regal beats expert" is by its worst seed: on {won_fitting} of {len(fitting)} rows where the
expert's split fits into the memory that regal has to keep, and on {won} of all {len(compared)} rows with an expert. "Cannot fit": an op's static
memory and one of its inputs, which is on its device either with its producer's static memory or as a copy, are more than a device has.

{chr(10).join("| " + " | ".join(row) + " |" for row in table)}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=default_data(), help="folder of the benchmark (default: %(default)s)")
    parser.add_argument("--only", help="part of a graph's name; nothing is written then")
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    if not (args.data / "latency-inputs").is_dir():
        raise SystemExit(f"--data {args.data}: no folder latency-inputs there; give the root of the DNN-partitioning repository")
    rows = list(measure(args.data, args.only, args.evaluations, args.seeds))
    if args.only:
        return
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"evaluations": args.evaluations, "seeds": args.seeds, "rows": rows}, indent=1) + "\n")
    DOC.write_text(document_of(rows, args.evaluations, args.seeds))


if __name__ == "__main__":
    main()

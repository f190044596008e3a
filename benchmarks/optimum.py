"""How often the search finds the optimum: random graphs of at most 12 ops against CP-SAT's proofs. From the repository's root:

    python -m benchmarks.optimum [--graphs 120] [--seconds 120] [-o benchmarks/results/optimum.json] [--table docs/optimum.md]

A third of the graphs each for 1, 2 and 3 devices with one lane (at most 12, 10 and 9 ops); transfers take time, buffers are viewed and reused in place, some
ops are colocated, and every second graph has memory limits that one random plan just keeps. Both objectives; the makespan limit of "peak_memory" is
1.5 times the default plan's. An optimum counts as proven where CP-SAT says so and a simulated plan has that figure; the methods are compared on those.
"""

import argparse
import json
import pathlib
import time

import numpy as np

from tf_regal.plans.planner import default_placement
from tf_regal.problem import LIFETIME_NORMAL, LIFETIME_OUTPUT, UNLIMITED, Problem, csr
from tf_regal.search import METHODS, OBJECTIVES, Budget, Task, cp_sat

EVALUATIONS, MAX_SLOWDOWN = 5000, 1.5
COMPARED = ("regal", "brkga", "tuned_brkga", "local_search", "random", "one_shot", "gp_dfs", "heft", "m_etf", "m_topo", "memory_greedy", "default")
_PROOF = ("objective", "status", "relaxed", "bound", "proven", "cp_sat", "cp_sat_seconds")
ROOT = pathlib.Path(__file__).resolve().parents[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=120, help="default: %(default)d")
    parser.add_argument("--seconds", type=float, default=120.0, help="of CP-SAT per graph and objective (default: %(default)g)")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "benchmarks/results/optimum.json", help="default: %(default)s")
    parser.add_argument("--keep-proofs", action="store_true", help="take CP-SAT's results from the output of an earlier run, run the other methods again")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/optimum.md", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    proofs, seconds, rows = {}, arguments.seconds, []
    if arguments.keep_proofs:
        earlier = json.loads(arguments.output.read_text(encoding="utf-8"))
        proofs, seconds = {(row["graph"], row["objective"]): row for row in earlier["rows"]}, earlier["seconds"]
    for seed in range(arguments.graphs):
        problem = random_problem(seed)
        for objective in OBJECTIVES:
            row = compare(problem, objective, seconds, proofs.get((seed, objective)))
            rows.append({"graph": seed, "ops": problem.n_ops, "devices": problem.n_devices, **row})
            print(json.dumps(rows[-1]), flush=True)
    report = {"evaluations": EVALUATIONS, "seconds": seconds, "max_slowdown": MAX_SLOWDOWN, "rows": rows, "summary": summary(rows)}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    arguments.table.write_text(table(report, arguments.graphs), encoding="utf-8")
    print(table(report, arguments.graphs))


def compare(problem, objective, seconds, proof=None):
    """One graph and objective: the proof, and the figure of every method (None where it does not keep the limits).

    proof: the row of an earlier run, instead of running CP-SAT.
    """
    task = Task(problem, objective, default_placement(problem))
    if objective == "peak_memory":
        task.makespan_limit = int(MAX_SLOWDOWN * METHODS["default"](task, None).run.makespan)
    solutions = {method: METHODS[method](task, Budget(EVALUATIONS)) for method in COMPARED}
    figures = {method: figure(task, solution.run) for method, solution in solutions.items()}
    if proof is not None:
        return {name: proof[name] for name in _PROOF} | figures
    began = time.monotonic()
    # A proof is sooner done against the best that is known.
    exact = cp_sat.run(task, Budget(EVALUATIONS, seconds=seconds), start=task.best(solutions.values()))
    took = time.monotonic() - began
    reached = [f for f in [figure(task, exact.run), *figures.values()] if f is not None]
    proven = exact.proof.status == "OPTIMAL" and exact.proof.bound in reached
    return {
        "objective": objective, "status": exact.proof.status, "relaxed": exact.proof.relaxed, "bound": exact.proof.bound, "proven": proven,
        "cp_sat": figure(task, exact.run), "cp_sat_seconds": round(took, 2), **figures,
    }


def figure(task, run):
    """ns or bytes; None where the run does not keep the limits."""
    key = task.key(run)
    return key[2] if key[:2] == (0, 0) else None


def summary(rows):
    """Per objective: graphs, proven optima, and per method the share of those that it matches, and matches within 1 %."""
    result = {}
    for objective in OBJECTIVES:
        mine = [row for row in rows if row["objective"] == objective]
        proven = [row for row in mine if row["proven"]]
        methods = {}
        for method in COMPARED:
            ratios = [row[method] / max(row["bound"], 1) if row[method] is not None else np.inf for row in proven]
            methods[method] = {"matched": float(np.mean([r <= 1 for r in ratios])), "within_1_percent": float(np.mean([r <= 1.01 for r in ratios]))}
        below = [1 - row["regal"] / row["bound"] for row in proven if row["regal"] is not None and row["regal"] < row["bound"]]
        infeasible = sum(row["status"] == "INFEASIBLE" for row in mine)
        result[objective] = {"graphs": len(mine), "proven": len(proven), "infeasible": infeasible, "below": below, "methods": methods}
    return result


def table(report, graphs):
    lines = [
        "# Against proven optima", "",
        f"{graphs} random graphs of at most 12, 10 and 9 ops on 1, 2 and 3 devices (`python -m benchmarks.optimum`);",
        f"{report['evaluations']} evaluations for methods that take a budget. An optimum counts where CP-SAT proves it and a simulated plan has it.",
        "These are optima of plans in which no device waits of its own will; `regal` may hold ops back for memory, and go below.", "",
    ]
    titles = {"runtime": "runtime", "peak_memory": "peak memory"}
    for objective, s in report["summary"].items():
        lines.append(f"- {titles[objective]}: {s['proven']} of {s['graphs']} optima proven; {s['infeasible']} proven to have no plan within the limits")
    below = report["summary"]["peak_memory"]["below"]
    if below:
        share = f"{np.median(below):.1%} in the median and {max(below):.1%} at most"
        lines.append(f"- peak memory: `regal` goes below the optimum without waiting on {len(below)}, by {share}")
    lines += ["", "| method | runtime: matched | within 1 % | peak memory: matched | within 1 % |", "|---|---|---|---|---|"]
    for method in COMPARED:
        cells = [f"{s['methods'][method][k]:.1%}" for s in report["summary"].values() for k in ("matched", "within_1_percent")]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def random_problem(seed):
    """A random valid problem of 6 to 12 ops (to 10 on 2 devices, to 9 on 3), the same for the same seed."""
    rng = np.random.default_rng([seed, 3])
    d = 1 + seed % 3
    n = int(rng.integers(6, (13, 11, 10)[d - 1]))  # what can be proven in minutes
    speed = np.ones(d) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, d)
    work = rng.integers(10, 200, n)
    inputs, outputs = [], []  # per op: tensors
    producer, size, view, lifetime, reuse = [], [], [], [], []
    density = rng.uniform(0.8, 2.2)
    for op in range(n):
        choice = rng.permutation(len(producer))[: min(len(producer), rng.poisson(density) + (op > n // 4))].tolist()
        inputs.append(choice)
        outputs.append([])
        for _ in range(1 + (rng.random() < 0.25)):
            bytes_, shared, in_place = int(rng.integers(1, 40)) * 4, -1, []
            if choice and rng.random() < 0.15:
                shared = choice[0]
                bytes_ = size[shared]
            elif choice and rng.random() < 0.4:
                in_place = choice
                bytes_ = size[choice[0]]
            outputs[op].append(len(producer))
            producer.append(op), size.append(bytes_), view.append(shared), reuse.append(in_place)
            lifetime.append(LIFETIME_OUTPUT if op == n - 1 or rng.random() < 0.05 else LIFETIME_NORMAL)
    control = [[int(rng.integers(op))] if op and rng.random() < 0.15 else [] for op in range(n)]
    group = np.arange(n)
    if rng.random() < 0.5:
        first, second = rng.choice(n, 2, replace=False)
        group[max(first, second)] = min(first, second)
    _, group = np.unique(group, return_inverse=True)
    latency = rng.integers(1, 30, (d, d))
    pointers = {}
    for name, lists in (("reuse", reuse), ("input", inputs), ("control", control)):
        pointers[f"{name}_ptr"], pointers[f"{name}_idx"] = csr(lists)
    problem = Problem(
        duration=np.maximum(1, np.round(work[:, None] / speed)).astype(np.int64), scratch=rng.choice([0, 0, 16, 64], (n, 1)) * np.ones((1, d), np.int64),
        persistent=rng.choice([0, 0, 32, 100], n), group=group, producer=producer, size=size, view=view, lifetime=lifetime, lanes=np.ones(d),
        capacity=np.full(d, UNLIMITED), latency=latency, ns_per_byte=np.full((d, d), rng.choice([0.05, 0.3, 1.0])), **pointers,
    )
    return _with_limits(problem, rng) if seed % 2 else problem


def _with_limits(problem, rng):
    """Capacities that one random plan just keeps: there is a plan, and not every plan fits."""
    task = Task(problem, "runtime", default_placement(problem))
    device = rng.integers(0, problem.n_devices, problem.n_groups).astype(np.int32)[problem.group]
    run = task.simulator.run(device, rng.random(problem.n_ops, dtype=np.float32))
    return problem.replace(capacity=np.maximum(run.peak, 1))


if __name__ == "__main__":
    main()

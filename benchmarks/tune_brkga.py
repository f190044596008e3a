"""Searches the parameters of `tf_regal.search.tuned_brkga` on training graphs of the zoo. From the repository's root:

    python -m benchmarks.tune_brkga [--seconds 1200] [-o benchmarks/results/tune_brkga.json]

One graph per training family (the first training step below 1,000 ops by name, else the first inference graph), on the topologies `paper` and `2xA100-40GB`.
Per objective, successive halving over random settings: all on a quarter of the instances (graph and topology), the better third on half, of these the better
third on all; 5,000 evaluations a run, one thread. The score is the mean over the instances of the figure divided by that of the yardstick (population 100,
20 elites, 15 mutants, rho 0.7). The time decides how many settings are tried, at most 60.
"""

import argparse
import json
import pathlib
import time

import numpy as np

from benchmarks import zoo
from tf_regal import problem as problem_lib
from tf_regal.devices import Topology
from tf_regal.plans.planner import comparison_task
from tf_regal.search import OBJECTIVES, Budget, brkga

EVALUATIONS, SEED = 5000, 0
TOPOLOGIES = ("paper", "2xA100-40GB")
MAX_OPS, MAX_GRAPHS, MAX_SLOWDOWN = 1000, 12, 1.5
MAX_SETTINGS, KEPT = 60, 1 / 3
YARDSTICK = {"population": 100, "elites": 20, "mutants": 15, "rho": 0.7}
RESULTS = pathlib.Path(__file__).parent / "results" / "tune_brkga.json"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1200.0, help="processor time of the whole search (default: %(default)g)")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=RESULTS, help="default: %(default)s")
    arguments = parser.parse_args(argv)
    began = time.process_time()
    names = training_graphs()
    graphs = {name: zoo.load(name) for name in names}
    result = {"evaluations": EVALUATIONS, "seed": SEED, "graphs": names, "topologies": TOPOLOGIES, "max_slowdown": MAX_SLOWDOWN, "objectives": {}}
    for objective in OBJECTIVES:
        instances = [(name, topology) for topology in TOPOLOGIES for name in names]
        instances = [instances[j] for j in np.random.default_rng(SEED).permutation(len(instances))]
        tasks = [task_of(graphs[name], topology, objective) for name, topology in instances]
        result["objectives"][objective] = tune(tasks, objective, arguments.seconds / len(OBJECTIVES)) | {"instances": instances}
        print(json.dumps(result["objectives"][objective]["best"]), flush=True)
    result["seconds"] = round(time.process_time() - began, 1)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def training_graphs():
    """At most one graph per family, at most 12 in all."""
    by_family = {}
    for name in zoo.names("train"):
        by_family.setdefault(zoo.info(name).family, []).append(name)
    chosen = []
    for names in by_family.values():
        small = (n for n in sorted(names, key=lambda n: (zoo.info(n).mode != "training", n)) if zoo.load(n).n_ops < MAX_OPS)
        chosen += [name for name in [next(small, None)] if name]
    return sorted(chosen)[:MAX_GRAPHS]


def task_of(graph, topology, objective):
    problem, _ = problem_lib.build(graph, Topology.parse(topology))
    return comparison_task(problem, objective, MAX_SLOWDOWN, SEED)


def tune(tasks, objective, seconds):
    """The best of as many settings as the seconds suffice for, by the time that the yardstick takes."""
    began = time.process_time()
    yardstick = [figure(task, YARDSTICK) for task in tasks]
    full = time.process_time() - began
    # What a setting costs on average: a quarter of the instances; for the better third, half of them; for a ninth, all.
    cost = full * (1 / 4 + KEPT / 4 + KEPT**2 / 2)
    settings = draw(np.random.default_rng(SEED), int(min(MAX_SETTINGS, max(3, (seconds - full) / cost))))
    ratios = [[] for _ in settings]
    alive = list(range(len(settings)))
    for n_instances in (max(1, len(tasks) // 4), max(1, len(tasks) // 2), len(tasks)):
        for s in alive:
            for task, base in zip(tasks[len(ratios[s]) : n_instances], yardstick[len(ratios[s]) : n_instances], strict=True):
                ratios[s].append(figure(task, settings[s]) / base)
            print(f"{objective}: {n_instances} instances, {settings[s]}: {np.mean(ratios[s]):.4f}", flush=True)
        alive.sort(key=lambda s: np.mean(ratios[s]))
        if n_instances < len(tasks):
            alive = alive[: max(1, round(len(alive) * KEPT))]
    finalists = [settings[s] | {"score": round(float(np.mean(ratios[s])), 5)} for s in alive]
    finalists = sorted([*finalists, YARDSTICK | {"score": 1.0}], key=lambda f: f["score"])
    best = {name: finalists[0][name] for name in YARDSTICK}
    return {"best": best, "score": finalists[0]["score"], "settings": len(settings), "runs": sum(map(len, ratios)) + len(tasks), "finalists": finalists}


def draw(rng, count):
    """Random settings in the ranges that the literature uses (Gonçalves and Resende 2011), and wider populations."""
    settings = []
    while len(settings) < count:
        population = int(rng.choice([30, 50, 70, 100, 150, 200, 300, 500]))
        elites, mutants = (max(1, round(population * share)) for share in (rng.uniform(0.05, 0.35), rng.uniform(0.0, 0.3)))
        setting = {"population": population, "elites": elites, "mutants": mutants, "rho": round(float(rng.uniform(0.5, 0.9)), 2)}
        if setting not in settings:
            settings.append(setting)
    return settings


def figure(task, setting):
    """What the objective is after the evaluations, ns or bytes; ten times as much where a limit is not kept."""
    key = task.key(brkga.run(task, Budget(EVALUATIONS, threads=1), **setting).run)
    return key[2] * (1 if key[:2] == (0, 0) else 10)


if __name__ == "__main__":
    main()

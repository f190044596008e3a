"""Which hand-made proposal is the best on training graphs of the zoo: the baseline of `tf-regal evaluate`. From the repository's root:

    python -m benchmarks.hand_made [--every 18] [-o benchmarks/results/hand_made.json]

Every EVERY-th training graph of at most 2,500 ops, on `paper` and `2xA100-40GB`, 4,600 evaluations each against 5,000 of uniform BRKGA (mean of two seeds).
"""

import argparse
import json
import pathlib

import numpy as np

from benchmarks import zoo
from tf_regal.policy import handmade
from tf_regal.policy.instances import Instance, prepared
from tf_regal.search import OBJECTIVES

EVALUATIONS, UNIFORM_EVALUATIONS = 4600, 5000
TOPOLOGIES = ("paper", "2xA100-40GB")
MAX_OPS = 2500
RESULTS = pathlib.Path(__file__).parent / "results" / "hand_made.json"


def improvements(objective, topology, names):
    """{proposal: improvements over uniform BRKGA, one per graph}."""
    found = {}
    for name in names:
        made = prepared(Instance(str(zoo.path(name)), topology, objective))
        if made.task.problem.n_ops > MAX_OPS:
            continue
        uniform = np.mean([made.search(None, seed, UNIFORM_EVALUATIONS) for seed in (1, 2)])
        for proposal in handmade.names():
            share = 1 - made.search(handmade.propose(made.task, proposal), 3, EVALUATIONS) / uniform
            found.setdefault(proposal, []).append(round(share, 5))
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=18, help="which training graphs (default: every %(default)sth)")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=RESULTS, help="default: %(default)s")
    arguments = parser.parse_args(argv)
    names = zoo.names("train")[2 :: arguments.every]
    result = {"evaluations": EVALUATIONS, "graphs": names, "objectives": {}}
    for objective in OBJECTIVES:
        by_topology = {topology: improvements(objective, topology, names) for topology in TOPOLOGIES}
        means = {p: float(np.mean([np.mean(found[p]) for found in by_topology.values()])) for p in handmade.names()}
        best = max(means, key=means.get)
        result["objectives"][objective] = {"best": best, "improvement": round(means[best], 5), "by_topology": by_topology}
        print(f"{objective}: {best} {means[best]:+.1%}", *(f"{t} {np.mean(f[best]):+.1%}" for t, f in by_topology.items()), flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.zoo list`: what is stored, without TensorFlow."""

import statistics

from benchmarks import zoo
from tf_regal import problem
from tf_regal.devices import Topology
from tf_regal.plans import planner
from tf_regal.search import METHODS, Task

_TOPOLOGY = "2xA100-40GB"
_HEAD = "| family | topology | batch sizes | ops | persistent, MB | default makespan, ms | default peak, MB |\n|---|---|---|---|---|---|---|"


def run(split, markdown):
    """Prints one line per graph, or with `markdown` a table of one row per topology. Returns the exit status."""
    topology = Topology.parse(_TOPOLOGY)
    rows = [_row(name, topology) for name in zoo.names(split)]
    if not rows:
        print("nothing is stored; run `python -m benchmarks.zoo build`")
        return 1
    if markdown:
        _print_markdown(rows)
        return 0
    print(f"{'graph':42} {'family':13} {'split':10} {'ops':>6} {'tensors':>7} {'persistent':>11} {'makespan':>11} {'peak':>11}")
    for info, graph, run_ in rows:
        print(
            f"{info.name:42} {info.family:13} {info.split:10} {graph.n_ops:6} {graph.n_tensors:7} {graph.persistent.sum() / 1e6:8.1f} MB "
            f"{run_.makespan / 1e6:8.3f} ms {run_.peak.max() / 1e6:8.1f} MB"
        )
    for name in zoo.SPLITS:
        ops = [graph.n_ops for info, graph, _ in rows if info.split == name]
        if ops:
            kinds = {info.topology for info, _, _ in rows if info.split == name}
            print(f"{name}: {len(kinds)} topologies, {len(ops)} graphs, ops: median {statistics.median(ops):.0f}, largest {max(ops)}")
    return 0


def _row(name, topology):
    """(Info, OpGraph, the default plan's run on the topology)"""
    graph = zoo.load(name)
    arrays, _ = problem.build(graph, topology)
    task = Task(arrays, "runtime", planner.default_placement(arrays))
    return zoo.info(name), graph, METHODS["default"](task, None).run


def _print_markdown(rows):
    grouped = {}
    for row in rows:
        grouped.setdefault(row[0].topology, []).append(row)
    split = family = None
    for variants in grouped.values():
        info = variants[0][0]
        if info.split != split:
            split = info.split
            print(f"\n### {split}\n\n{_HEAD}")
        name = "" if info.family == family else info.family
        family = info.family
        cells = [
            ", ".join(dict.fromkeys(cell))
            for cell in (
                [str(i.batch) for i, _, _ in variants],
                [f"{g.n_ops:,}" for _, g, _ in variants],
                [f"{g.persistent.sum() / 1e6:.1f}" for _, g, _ in variants],
                [f"{r.makespan / 1e6:.2f}" for _, _, r in variants],
                [f"{r.peak.max() / 1e6:.1f}" for _, _, r in variants],
            )
        ]
        print(f"| {name} | {info.topology} | {' | '.join(cells)} |")

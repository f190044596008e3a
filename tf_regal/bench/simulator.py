"""How fast the simulator is: ops simulated per second and core, how that grows with the graph, and a whole search."""

import numpy as np

from tf_regal import ops, problem
from tf_regal.bench import graphs, timing
from tf_regal.devices import Topology
from tf_regal.plans import planner
from tf_regal.search import METHODS, Budget, Task

POPULATION, CHILDREN = 100, 80
"""Evaluations of BRKGA's first generation, and of every other one (the elites are kept as they are)."""

SEARCH = {"ops": 1000, "devices": 2, "evaluations": 5000}
"""The whole search that is timed."""

_CANDIDATES = 8


def topology(n_devices):
    """Equal devices of one lane, with links that cost something."""
    return Topology.parse(f"{n_devices}xA100-40GB")


def task_of(built, seed=0, objective="runtime"):
    """A Task on a Problem, from its default placement."""
    return Task(built, objective, planner.default_placement(built), seed=seed)


class Case:
    """One graph on one topology, and what is measured of it.

    loop: the whole genetic search (keys, decoding, simulation, sorting), on one thread, in ns per op and evaluation;
    alone: only calls of the simulator through its binding, likewise, on candidates with random placements and priorities.
    """

    def __init__(self, graph, on, seconds):
        """seconds: about how long a measurement shall take."""
        self.problem, _ = problem.build(graph, on)
        self.task = task_of(self.problem)
        self.simulator = self.task.simulator
        self._candidates = [random_candidate(self.simulator, self.problem, seed) for seed in range(_CANDIDATES)]
        self.transfers = float(np.mean([len(self.simulator.run(*c, timeline=True).transfers) for c in self._candidates]))
        # Whole generations, and enough of them: the first figure is a guess that warms up, too.
        self._generations, self._calls = 1, _CANDIDATES
        each = self.loop(0) * self.problem.n_ops / 1e9
        self._generations = max(1, round((seconds / each - POPULATION) / CHILDREN))
        each = self.alone() * self.problem.n_ops / 1e9
        self._calls = max(_CANDIDATES, round(seconds / each))

    def loop(self, seed=0):
        evaluations = POPULATION + CHILDREN * self._generations
        search = ops.Brkga(self.simulator, objective="runtime", seed=seed, threads=1)
        took = timing.seconds(lambda: search.evolve(evaluations))
        return 1e9 * took / (search.evaluations * self.problem.n_ops)

    def alone(self):
        def calls():
            for call in range(self._calls):
                self.simulator.run(*self._candidates[call % _CANDIDATES])

        return 1e9 * timing.seconds(calls) / (self._calls * self.problem.n_ops)


def random_candidate(simulator, built, seed):
    """(device, priority, transfer_priority): a placement of the groups where they may run, and priorities, all uniform."""
    rng = np.random.default_rng(seed)
    d = built.n_devices
    affinity = rng.random((built.n_groups, d))
    affinity[(simulator.allowed[:, None] >> np.arange(d, dtype=np.uint64) & np.uint64(1)) == 0] = -1
    device = affinity.argmax(axis=1)[built.group].astype(np.int32)
    return device, rng.random(built.n_ops, np.float32), rng.random((built.n_tensors, d), np.float32)


def measure(sizes, devices, seconds, repeats, graph=None, on=None, progress=None):
    """Ops per second and core for generated graphs of these sizes on these numbers of devices, and for one graph more.

    Args:
        sizes, devices: lists of int. seconds: per measurement. repeats: rounds, each over everything.
        graph, on: an OpGraph with costs, and its Topology; None: generated ones only.
        progress: called with a line of text before every longer step.

    Returns:
        {"points": [{"graph", "ops", "devices", "transfers", "loop", "alone"}], "growth": [{"devices", "from", "to", "loop", "alone"}],
        "search": {…}}; loop and alone of points: Sample of ops per second; of growth: Sample of the cost per op at `to` ops against `from` ops.
    """
    say = progress or (lambda text: None)
    cases = {}
    for size in sizes:
        say(f"a generated graph of {size} ops")
        generated = graphs.layered(size)
        for n_devices in devices:
            cases[generated.fingerprint, n_devices] = Case(generated, topology(n_devices), seconds)
    if graph is not None:
        cases["graph", on.n_devices] = Case(graph, on, seconds)
    say(f"{len(cases)} graphs, {repeats} rounds")
    loops = timing.interleaved({key: case.loop for key, case in cases.items()}, repeats)
    alones = timing.interleaved({key: case.alone for key, case in cases.items()}, repeats)
    points = [
        {
            "graph": key[0], "ops": case.problem.n_ops, "devices": key[1], "transfers": case.transfers,
            "loop": timing.Sample.of([1e9 / ns for ns in loops[key]]), "alone": timing.Sample.of([1e9 / ns for ns in alones[key]]),
        }
        for key, case in cases.items()
    ]  # fmt: skip
    growth = []
    small = min((size for size in sizes if size >= SEARCH["ops"]), default=None)
    if small is not None and max(sizes) > small:
        for n_devices in devices:
            keys = [(graphs.layered(size).fingerprint, n_devices) for size in (max(sizes), small)]
            growth.append(
                {
                    "devices": n_devices, "from": small, "to": max(sizes),
                    "loop": timing.ratio(*(loops[key] for key in keys)), "alone": timing.ratio(*(alones[key] for key in keys)),
                }
            )  # fmt: skip
    cases.clear()
    say("whole searches")
    return {"points": points, "growth": growth, "search": whole_search(repeats)}


def whole_search(repeats, methods=("regal", "brkga")):
    """{"ops", "devices", "evaluations", "threads", "seconds": {method: Sample}}: searches from the Problem on, on all cores."""
    built, _ = problem.build(graphs.layered(SEARCH["ops"]), topology(SEARCH["devices"]))

    def search(method):
        return timing.seconds(lambda: METHODS[method](task_of(built), Budget(SEARCH["evaluations"])))

    found = timing.interleaved({method: lambda method=method: search(method) for method in methods}, repeats)
    return {**SEARCH, "threads": Budget().threads, "seconds": {method: timing.Sample.of(values) for method, values in found.items()}}

"""The simulator against what else could evaluate a plan: Grappler's virtual cluster, and a genetic algorithm in Python."""

import numpy as np

from tf_regal import errors
from tf_regal.bench import graphs, simulator, timing
from tf_regal.bench.python_simulator import PythonSimulator
from tf_regal.search import METHODS, Budget

OTHERS = ("grappler", "pymoo")

# Two fifths of the population of ops.Brkga, in its proportions: the figure is per evaluation, and one of these takes long.
_POPULATION, _ELITES, _MUTANTS, _BIAS = 40, 8, 6, 0.7


def measure(others, model, repeats, seconds=0.5, size=1000, progress=None):
    """Times of one evaluation, in turn, on one graph and one core.

    Args:
        others: of OTHERS.
        model: see `models.make_function`; the graph is its training step on 2xA100-40GB. Without "grappler" no TensorFlow is needed, and the graph is
            a generated one of `size` ops.
        repeats: rounds. seconds: per measurement of ours.

    Returns:
        {"graph", "ops", "devices", "seconds": {what: Sample}, "ratios": {other: Sample}}; what is "simulator" (alone, the candidate that Grappler
        gets), "loop" (BRKGA, per evaluation), "grappler" (MeasureCosts of an item that is ready) and "pymoo" (per evaluation of its BRKGA over the
        Python simulator). Ratios: grappler / simulator, pymoo / loop.

    Raises MissingDependencyError, UnsupportedVersionError where what is needed is not installed.
    """
    say = progress or (lambda text: None)
    on = simulator.topology(2)
    functions, capture = {}, None
    check(others)
    if "grappler" in others:
        say(f"the training step of {model}")
        capture, name = _capture(model, on), f"training step of {model}"
        graph = capture.graph
    else:
        graph = graphs.layered(size)
        name = graph.fingerprint
    case = simulator.Case(graph, on, seconds)
    built, n = case.problem, graph.n_ops
    chosen = METHODS["heft"](case.task, Budget(1, threads=1))
    candidate = chosen.device, chosen.priority, chosen.transfer_priority
    if "pymoo" in others:
        _check_same(case.simulator, built, simulator.random_candidate(case.simulator, built, 0))
    calls = max(3, int(seconds * 1e9 / (case.alone() * n)))

    def alone():
        return timing.seconds(lambda: [case.simulator.run(*candidate) for _ in range(calls)]) / calls

    functions["simulator"] = alone
    functions["loop"] = lambda: case.loop() * n / 1e9
    cluster = None
    if capture is not None:
        cluster, item = _grappler(capture, on, chosen.device)
        functions["grappler"] = lambda: timing.seconds(lambda: cluster.MeasureCosts(item))
    if "pymoo" in others:
        functions["pymoo"] = lambda: _pymoo_seconds(built, case.simulator)
    say(f"{', '.join(functions)}: {repeats} rounds")
    try:
        found = timing.interleaved(functions, repeats)
    finally:
        if cluster is not None:
            cluster.Shutdown()
    ours = {"grappler": "simulator", "pymoo": "loop"}
    return {
        "graph": name,
        "ops": n,
        "devices": on.n_devices,
        "seconds": {what: timing.Sample.of(values) for what, values in found.items()},
        "ratios": {other: timing.ratio(found[other], found[ours[other]]) for other in OTHERS if other in functions},
    }


def _capture(model, on):
    """A training step as a Capture with costs."""
    import tensorflow as tf

    from tf_regal.bench import models
    from tf_regal.costs import analytic
    from tf_regal.graph import builder, runnable

    concrete, _ = models.make_function(tf, model, "training")
    capture = builder.capture(runnable.from_concrete(concrete), default_device=on.names[0])
    analytic.add_costs(capture, on)
    return capture


def _grappler(capture, on, device):
    """(virtual cluster, item): the graph placed as the candidate is, all that MeasureCosts takes."""
    from tf_regal import _tf_private as tfp
    from tf_regal.devices import grappler

    described = []
    for q, spec in enumerate(on.devices):
        properties = grappler.device_properties(spec)
        properties.name = f"/job:localhost/replica:0/task:0/device:VIRTUAL:{q}"  # a name that it does not look for on this machine
        described.append(properties)
    placed = tfp.meta_graph_pb2.MetaGraphDef()
    placed.CopyFrom(capture.shapes.meta_graph)
    where = {name: described[device[op]].name for op, members in enumerate(capture.graph.members) for name in members}
    for node in placed.graph_def.node:
        node.device = where.get(node.name, described[0].name)
    return tfp.grappler_cluster.Cluster(devices=described), tfp.grappler_item.Item(placed)


def check(others):
    """Raises MissingDependencyError where the package of one of them is not installed."""
    if "pymoo" in others:
        try:
            import pymoo.algorithms.soo.nonconvex.brkga  # noqa: F401
        except ImportError as error:
            raise errors.MissingDependencyError("the comparison with pymoo", "pymoo") from error


def _pymoo_seconds(built, core):
    """Seconds per evaluation of pymoo's BRKGA, with the shares of elites and mutants and the bias of ours, over the Python simulator: two generations."""
    from pymoo.algorithms.soo.nonconvex.brkga import BRKGA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    python, d = PythonSimulator(built), built.n_devices
    n, m, g = built.n_ops, built.n_tensors, built.n_groups
    allowed = (core.allowed[:, None] >> np.arange(d, dtype=np.uint64) & np.uint64(1)) == 1
    capacity = built.capacity.tolist()

    class Placement(ElementwiseProblem):
        """Keys: affinity per group and device, priority per op, transfer priority per tensor and device."""

        def __init__(self):
            super().__init__(n_var=g * d + n + m * d, n_obj=1, xl=0.0, xu=1.0)

        def _evaluate(self, x, out, *args, **kwargs):
            affinity = np.where(allowed, x[: g * d].reshape(g, d), -1)
            device = affinity.argmax(axis=1)[built.group].tolist()
            makespan, peak = python.run(device, x[g * d : g * d + n].tolist(), x[g * d + n :].reshape(m, d).tolist())
            excess = sum(max(0, used - limit) for used, limit in zip(peak, capacity, strict=True))
            out["F"] = makespan + 1e9 * excess

    algorithm = BRKGA(n_elites=_ELITES, n_offsprings=_POPULATION - _ELITES - _MUTANTS, n_mutants=_MUTANTS, bias=_BIAS)
    evaluations = 2 * _POPULATION - _ELITES
    made = []
    took = timing.seconds(lambda: made.append(minimize(Placement(), algorithm, ("n_eval", evaluations), seed=1, verbose=False)))
    return took / made[0].algorithm.evaluator.n_eval


def _check_same(core, built, candidate):
    """Raises TfRegalError where the Python simulator and the core differ on a candidate: the comparison would be worth nothing."""
    device, priority, transfer_priority = candidate
    run = core.run(device, priority, transfer_priority)
    found = PythonSimulator(built).run(device.tolist(), priority.tolist(), transfer_priority.tolist())
    if found != (run.makespan, run.peak.tolist()):
        raise errors.TfRegalError(f"the Python simulator gives {found}, the core {(run.makespan, run.peak.tolist())}; please report this")

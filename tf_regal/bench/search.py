"""Where the time of planning goes: its phases, and evaluations per second by method."""

from tf_regal import problem
from tf_regal.bench import timing
from tf_regal.bench.simulator import task_of
from tf_regal.plans import planner
from tf_regal.search import METHODS, Budget, order, regal
from tf_regal.search import method as named
from tf_regal.settings import Settings


def measure(read, topology, *, objective="runtime", method="regal", methods=(), evaluations=5000, seconds=None, repeats=3, progress=None):
    """Times the phases of planning one graph.

    Args:
        read: a function that reads the graph (an OpGraph with costs); its time is a phase.
        topology, objective, method, evaluations, seconds: as in `Settings`. methods: whose evaluations per second are measured, on all cores.
        repeats: rounds. progress: called with a line of text before every longer step.

    Returns:
        {"ops", "devices", "groups", "threads", "phases": {phase: Sample of seconds}, "methods": {method: {"seconds", "per_second": Sample,
        "evaluations": int}}}. Phases: read, problem (arrays and the simulator's checks), default (the default plan), seeds (the heuristics that the full
        search starts from, a part of search where the method is "regal"), search, edges (control edges), and plan: `make_plan`, everything but read.
    """
    say = progress or (lambda text: None)
    phases, by_method, made = {}, {name: [] for name in methods}, {}
    for repeat in range(repeats):
        say(f"round {repeat + 1} of {repeats}")
        _round(read, topology, objective, method, Budget(evaluations, seconds), repeat, phases)
        for name in methods:
            task = _task(phases["built"], objective, repeat)
            found = []
            took = timing.seconds(lambda task=task, name=name, found=found: found.append(named(name)(task, Budget(evaluations, seconds))))
            by_method[name].append(took)
            made[name] = found[0].evaluations
    graph, built = phases.pop("graph"), phases.pop("built")
    say("the whole plan")
    settings = Settings(topology=topology, objective=objective, method=method, evaluations=evaluations, seconds=seconds, cache_dir=False)
    phases["plan"] = [timing.seconds(lambda: planner.make_plan(graph, topology, settings)) for _ in range(repeats)]
    return {
        "ops": graph.n_ops,
        "devices": topology.n_devices,
        "groups": built.n_groups,
        "threads": Budget().threads,
        "phases": {phase: timing.Sample.of(values) for phase, values in phases.items()},
        "methods": {
            name: {
                "seconds": timing.Sample.of(values),
                "per_second": timing.Sample.of([made[name] / value for value in values]),
                "evaluations": made[name],
            }
            for name, values in by_method.items()
        },
    }


def _round(read, topology, objective, method, budget, seed, phases):
    """Adds a measurement to every phase, and leaves the graph and its Problem in `phases`."""

    def timed(phase, function):
        found = []
        phases.setdefault(phase, []).append(timing.seconds(lambda: found.append(function())))
        return found[0]

    def build():
        built, _ = problem.build(graph, topology)
        task_of(built).simulator.bounds()
        return built

    graph = phases["graph"] = timed("read", read)
    built = phases["built"] = timed("problem", build)
    task = _task(built, objective, seed)
    timed("default", lambda: METHODS["default"](task, Budget(1)))
    timed("seeds", lambda: regal.seeds(_task(built, objective, seed)))
    solution = timed("search", lambda: METHODS[method](task, budget))
    timed("edges", lambda: order.choose_edges(task, solution, graph.orderable))


def _task(built, objective, seed):
    """A Task; the makespan limit of "peak_memory" is the one of the default settings."""
    task = task_of(built, seed, objective)
    task.simulator  # noqa: B018 (made here, so that it counts as part of no search)
    if objective == "peak_memory":
        default = METHODS["default"](task, Budget(1))
        task.makespan_limit = int(Settings().max_slowdown * default.run.makespan)
    return task

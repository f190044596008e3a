"""OpGraph × Topology × settings → Plan. Knows nothing of TensorFlow."""

import time

import numpy as np
import tqdm

from tf_regal import errors
from tf_regal import problem as problem_lib
from tf_regal.plans import allocator, details
from tf_regal.plans.plan import Bounds, Figures, Plan, SearchInfo
from tf_regal.search import METHODS, Budget, Task, executor, heuristics, method, order, robust, trace

MARGIN = 0.02
"""A plan is applied only where it beats the default plan by this share of the objective."""

THREADS_NOTE = "TensorFlow's threads by themselves"
"""How the note begins of a plan that saves memory over the default plan, but too little over what TensorFlow's threads make of it."""

_THREADS_MARGIN = 0.1  # about as far as the prediction of what a device's threads need is off (docs/search.md)
_PROGRESS_AFTER_S = 1.0
_SAMPLED_SHARE = 0.02


def make_plan(graph, topology, settings, show_progress=False, propose=None):
    """Plans an OpGraph that has costs for the topology's devices.

    propose: a function Task → Proposal (`policy.inference.proposer`), or None: the search draws uniformly.
    Returns the Plan; `plan.pays` says whether it is worth applying. Raises InfeasibleError where nothing fits the devices' memory.
    """
    began = time.monotonic()
    problem, notes = problem_lib.build(graph, topology)
    default_device = default_placement(problem)
    real = Task(problem, settings.objective, default_device, seed=settings.seed)
    default = METHODS["default"](real, None)
    real.may_hold = settings.order != "none"
    if settings.objective == "peak_memory":
        real.makespan_limit = makespan_limit(settings.max_slowdown, default.run.makespan)
        if settings.order == "none":
            task = real
        else:
            # The order will be enforced, one op at a time: so it is planned that way, whatever the device's lanes.
            sequential = problem.replace(lanes=np.ones_like(problem.lanes))
            sequential_default = METHODS["default"](Task(sequential, settings.objective, default_device), None)
            limit = makespan_limit(settings.max_slowdown, max(default.run.makespan, sequential_default.run.makespan))
            task = Task(sequential, settings.objective, default_device, makespan_limit=limit, seed=settings.seed)
    else:
        task = real
    budget = Budget(settings.evaluations, settings.seconds)
    with _Progress(budget, show_progress) as progress:
        task.progress, task.trace = progress.update, trace.Trace()
        if propose is not None:
            task.proposal = propose(task)
        if settings.robustness:
            solution = robust.search(method(settings.method), task, budget, settings.robustness)
        else:
            solution = method(settings.method)(task, budget)
    seconds = time.monotonic() - began
    # Beside the search, and small beside it: where time is short or the search small, nobody is shown it.
    if task.proposal is not None and settings.seconds is None and _SAMPLED_SHARE * settings.evaluations >= trace.SAMPLED_EVALUATIONS:
        task.trace.samples = trace.sample_proposal(task)
    footprint = _footprint(problem, topology, default.run)
    synchronous = set(topology.kinds) == {"CPU"} and topology.n_devices > 1
    edges, run = order.choose_edges(real, solution, graph.orderable, settings.order, footprint, synchronous)
    if not (solution.run.feasible and run.feasible and _pays(run, default.run, problem, settings)):
        # It does not hold under the orders that TensorFlow may take; a simpler one may.
        for other in solution.alternatives:
            other_edges, other_run = order.choose_edges(real, other, graph.orderable, settings.order, footprint, synchronous)
            if real.key(other_run) < real.key(run):
                other.evaluations = solution.evaluations
                solution, edges, run = other, other_edges, other_run
    pays, notes = _pays(run, default.run, problem, settings), [*graph.bindings, *graph.notes, *notes]
    if pays and settings.objective == "peak_memory" and (note := _threads_do_as_well(real, run, default.run, topology, footprint)):
        pays = False
        notes.append(note)
    plan = Plan(
        ops=list(graph.names), device=solution.device, start_order=run.start_order.tolist(), edges=edges, start_ns=run.start, end_ns=run.end,
        transfers=details.transfers(problem, run), memory=details.memory(run),
        persistent_bytes=problem.persistent,
        predicted=_figures(run, problem, topology, before=default.run), default=_figures(default.run, problem, topology),
        bounds=_bounds(real), objective=settings.objective, order_mode=settings.order, topology=topology, fingerprint=graph.fingerprint,
        search=SearchInfo(settings.method, solution.evaluations, round(seconds, 3), task.proposal and task.proposal.name, settings.seed),
        pays=pays, feasible=bool(run.feasible and solution.run.feasible), notes=notes,
        details=details.details(graph, problem, run, default.run, task.trace.to_json()),
    )
    if not plan.feasible:
        raise _infeasible(plan, run, problem)
    return plan


def default_placement(problem):
    """Where TensorFlow would put each op by itself: the first device that may run its group. int32 [ops]."""
    return problem.allowed.argmax(axis=1)[problem.group].astype(np.int32)


def makespan_limit(max_slowdown, makespan):
    """max_slowdown times the default plan's makespan, ns: the longest that "peak_memory" allows. "Any" where that is more than int64 holds."""
    return int(min(max_slowdown * makespan, float(1 << 62)))


def comparison_task(problem, objective, max_slowdown, seed=0):
    """The Task that searches are compared on: the problem as it is, whatever order will be enforced."""
    task = Task(problem, objective, default_placement(problem), seed=seed)
    if objective == "peak_memory":
        task.makespan_limit = makespan_limit(max_slowdown, METHODS["default"](task, None).run.makespan)
    return task


def _figures(run, problem, topology, before=None):
    peaks = {name: int(peak) for name, peak in zip(topology.names, run.peak, strict=True)}
    chunks = allocator.chunk_peaks(run, problem, [spec.kind for spec in topology.devices], before)
    return Figures(run.makespan / 1e9, peaks, int(run.transfer_bytes), dict(zip(topology.names, chunks, strict=True)))


def _footprint(problem, topology, before):
    """Run → the largest peak that a device's allocator is expected to report, in bytes."""
    kinds = [spec.kind for spec in topology.devices]
    return lambda run: max(allocator.chunk_peaks(run, problem, kinds, before))


def _bounds(task):
    makespan, peak = task.simulator.bounds()
    return Bounds(makespan / 1e9, int(peak))


def _pays(run, default, problem, settings):
    """Whether a run beats the default plan's by the margin; for "peak_memory" within max_slowdown times its makespan."""
    if np.any(default.peak > problem.capacity):
        return True  # the default does not fit at all
    if settings.objective == "runtime":
        return run.makespan <= (1 - MARGIN) * default.makespan
    return bool(run.peak.max() <= (1 - MARGIN) * default.peak.max() and run.makespan <= makespan_limit(settings.max_slowdown, default.makespan))


def _threads_do_as_well(task, run, default, topology, footprint):
    """A note where the run's memory is not well below that of the order in which a device's threads run the ops by themselves; else "".

    The default plan's peak is that of first come, first served; threads work depth first (`search.executor`), which may need much less. Both are
    orders that TensorFlow may take. Only for one device with lanes that the default plan fits.
    """
    problem = task.problem
    if problem.n_devices > 1 or problem.lanes[0] == 1 or np.any(default.peak > problem.capacity):
        return ""
    priority = heuristics.order_to_priority(executor.thread_pool_order(problem, int(problem.lanes[0])), problem.n_ops)
    usual = task.simulator.run(task.default_device, priority, timeline=True)
    held = sum(allocator.counted(problem.persistent.tolist(), topology.devices[0].kind))
    planned, needed = footprint(run) - held, footprint(usual) - held
    if planned <= (1 - _THREADS_MARGIN) * needed:
        return ""
    return f"{THREADS_NOTE} are expected to need {needed / 1e6:.3f} MB beside what stays, the plan {planned / 1e6:.3f}: less than {_THREADS_MARGIN:.0%} better"


def _infeasible(plan, run, problem):
    excess = run.peak - problem.capacity
    worst = int(excess.argmax())
    name = plan.topology.names[worst]
    return errors.InfeasibleError(
        f"no plan was found within the devices' memory: the lowest peak found on {name} is {int(run.peak[worst])} bytes, which is "
        f"{int(excess[worst])} bytes more than its {int(problem.capacity[worst])} (no plan at all can have a largest peak below "
        f"{plan.bounds.peak_bytes} bytes). Use more or larger devices, a smaller batch, or more evaluations.",
        plan=plan, device=name, shortfall=int(excess[worst]),
    )


class _Progress:
    """A tqdm bar on stderr that appears when the search has taken a second."""

    def __init__(self, budget, show):
        self._bar = tqdm.tqdm(total=budget.evaluations, desc="planning", unit=" evaluations", delay=_PROGRESS_AFTER_S, disable=not show, leave=False)

    def update(self, evaluations):
        self._bar.update(evaluations)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._bar.close()

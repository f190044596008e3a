"""CP-SAT: an exact model of the simulator for a constraint solver, with bounds and proofs. Needs `ortools`.

The model is docs/simulator.md. What it does not hold exactly it leaves out or makes easier, never harder, so that its bound holds for every run of the
simulator without added edges (a plan that holds ops back, `Solution.held`, may use less memory); `proof.relaxed` names what that was for the problem at hand:

- "lanes": on a device with several lanes an op may wait although a lane is free; on all other devices and on links nothing ever does.
- "waiting": so everywhere, where transfers block, or the problem is too large for the constraints that forbid it.
- "steps": some ops or transfers take no time; of those of one and the same time the order is freer than in the simulator's loop, and in large problems what
  takes no time uses no memory.
- "rounded": ns or bytes were cut to fewer digits to fit the solver's numbers.

In-place reuse, views, kept and persistent tensors, scratch, groups, allowed devices, memory limits, the makespan limit, links that carry one transfer at
a time and the latency of control edges are all exact.
"""

import dataclasses
import importlib.util
import sys
import types

import numpy as np

from tf_regal import errors
from tf_regal.search import cp_sat_memory, cp_sat_model, cp_sat_process, cp_sat_waiting, heuristics
from tf_regal.search.incumbent import Incumbent

_SECONDS = 10.0
_LARGEST = 1 << 61
_MAX_OPS_FINE = 60  # beyond, waiting and steps are relaxed
_MAX_ACTIVITIES = 60_000  # ops and possible transfers; what is beyond would not be built before the time is over


def run(task, budget, start=None):
    """The schedule that CP-SAT finds within the seconds of the budget (10 where it has none), simulated.

    start: a Solution, the one to beat; the default plan where None. It is returned where CP-SAT finds nothing better, or where the budget is one evaluation.
    `solution.proof` has

    - status: "OPTIMAL" where the optimum of the model is proven, "FEASIBLE", "INFEASIBLE" where nothing keeps the limits, "UNKNOWN";
    - objective: of the model, ns or bytes; None without a solution;
    - bound: no plan within the limits is better, ns or bytes. A plan whose simulated figure equals it is optimal;
    - relaxed: tuple of str, see above.

    Raises:
        MissingDependencyError: `ortools` is not installed.
    """
    try:
        if importlib.util.find_spec("ortools") is None:
            raise ImportError
        if "tensorflow" in sys.modules:
            return cp_sat_process.run(task, budget, start, budget.seconds or _SECONDS)
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise errors.MissingDependencyError("method 'cp_sat'", "ortools") from error
    incumbent = Incumbent(task, budget)
    if start is None:
        start, key = incumbent.schedule(np.asarray(task.default_device, np.int32), "fifo")
    else:
        key = incumbent.offer(start.device, start.priority, start.transfer_priority)
    proof = types.SimpleNamespace(status="UNKNOWN", objective=None, bound=_bound(task), relaxed=())
    if _n_activities(task) <= _MAX_ACTIVITIES:
        model = cp_model.CpModel()
        built = _build(task, model, start if key[:2] == (0, 0) else None)
        seconds = max(0.1, (budget.seconds or _SECONDS) - budget.elapsed)
        solver, status = _solve(cp_model, model, task, seconds)
        _read_proof(proof, built, solver, status)
        if proof.objective is not None and not incumbent.done:
            incumbent.offer(*_decode(task, built, solver))
    solution = incumbent.solution()
    solution.proof = proof
    return solution


@dataclasses.dataclass
class _Built:
    plan: object
    memory: object
    unit: int  # ns or bytes per unit of the objective
    relaxed: tuple


def _build(task, model, start):
    """start: the Solution to start from, within all limits; or None."""
    problem = task.problem
    horizon = cp_sat_model.longest(problem)
    if task.makespan_limit is not None and task.objective == "peak_memory":
        horizon = min(horizon, task.makespan_limit)
    elif start is not None and task.objective == "runtime":
        horizon = min(horizon, start.run.makespan)
    small = problem.n_ops <= _MAX_OPS_FINE
    plan = cp_sat_model.Model(model, task, horizon, fine=small)
    memory = cp_sat_memory.Memory(plan) if task.objective == "peak_memory" or cp_sat_memory.may_not_fit(problem) else None
    relaxed = []
    rounded = plan.rounded or (memory is not None and memory.rounded)
    if problem.blocking_transfers or plan.rounded or not small:
        relaxed.append("waiting")
    else:
        cp_sat_waiting.add(plan)
        if np.any(problem.lanes > 1):
            relaxed.append("lanes")
    if not plan.timed:
        relaxed.append("steps")
    if rounded:
        relaxed.append("rounded")
    makespan_bound, peak_bound = task.simulator.bounds()
    model.add(plan.makespan >= makespan_bound // plan.time_unit)
    if task.objective == "runtime":
        model.minimize(plan.makespan)
        unit = plan.time_unit
    else:
        largest = model.new_int_var(0, _LARGEST if start is None else int(start.run.peak.max()) // memory.unit, "largest")
        for peak in memory.peak:
            model.add(largest >= peak)
        model.add(largest >= peak_bound // memory.unit)
        model.minimize(largest)
        unit = memory.unit
    if start is not None:
        _hint(model, plan, start)
    return _Built(plan, memory, unit, tuple(relaxed))


def _hint(model, plan, start):
    for g, choice in enumerate(plan.placed):
        first = plan.group.index(g)
        for q, literal in choice.items():
            model.add_hint(literal, int(start.device[first] == q))
    for op, activity in enumerate(plan.ops):
        model.add_hint(activity.t, int(start.run.start[op]) // plan.time_unit)
    sent = {(int(tensor), int(q)): int(begin) for tensor, _, q, begin, _ in start.run.transfers}
    for key, literal in plan.present.items():
        model.add_hint(literal, int(key in sent))
        if key in sent:
            model.add_hint(plan.transfers[key].t, sent[key] // plan.time_unit)


def _solve(cp_model, model, task, seconds):
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    # One worker: what is found then depends on nothing but the seed, and on small problems it proves sooner than several that take turns.
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = task.seed & 0x7FFFFFFF
    return solver, solver.status_name(solver.solve(model))


def _read_proof(proof, built, solver, status):
    proof.status, proof.relaxed = status, built.relaxed
    if proof.status == "MODEL_INVALID":
        raise RuntimeError(f"the constraint solver refuses the model: {solver.response_proto.solution_info}")
    if proof.status in ("OPTIMAL", "FEASIBLE"):
        proof.objective = round(solver.objective_value) * built.unit
    if proof.status != "INFEASIBLE":
        proof.bound = max(proof.bound, round(solver.best_objective_bound) * built.unit)


def _decode(task, built, solver):
    """(device, priority, transfer_priority) that repeat the order of the solver's starts."""
    problem, plan = task.problem, built.plan
    device_of_group = np.array([next(q for q, literal in choice.items() if solver.value(literal)) for choice in plan.placed], np.int32)
    start = np.array([solver.value(activity.start) for activity in plan.ops])
    topological = np.empty(problem.n_ops, np.int64)
    topological[task.simulator.topological_order] = np.arange(problem.n_ops)
    priority = heuristics.order_to_priority(np.lexsort((topological, start)), problem.n_ops)
    transfer_priority = None
    if problem.n_devices > 1:
        sent = [(solver.value(plan.transfers[key].start), key) for key, literal in plan.present.items() if solver.value(literal)]
        transfer_priority = np.zeros((problem.n_tensors, problem.n_devices), np.float32)
        for rank, (_, key) in enumerate(sorted(sent)):
            transfer_priority[key] = len(sent) - rank
    return device_of_group[problem.group], priority, transfer_priority


def _bound(task):
    makespan, peak = task.simulator.bounds()
    return makespan if task.objective == "runtime" else peak


def _n_activities(task):
    problem = task.problem
    return problem.n_ops + int(np.unique(problem.input_idx).size) * problem.n_devices * (problem.n_devices - 1)

"""From a schedule to control edges: as few as the objective needs (design facts 6 and 15)."""

import dataclasses

import numpy as np

from tf_regal.problem import LIFETIME_NORMAL, LIFETIME_OUTPUT
from tf_regal.search.control_edges import NONE, join, with_edges, without_implied
from tf_regal.search.task import make_simulator, replay

MODES = ("needed", "full", "none")
_SHARES = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.27, 0.35, 0.5, 0.75, 1.0)
"""Of the ops that are chained, those that weigh most first."""

_TOLERANCE = 1.02  # how much worse the objective may get for fewer edges and less time
_HELD_TOLERANCE = 1.005  # likewise, for fewer of the edges that hold ops back
_LOOSE_TOLERANCE = 1.1  # where an edge does harm too
_RANDOM_RUNS, _FEW_RUNS = 40, 2
_OTHER_RUNS, _OTHER_OPS = 200, 2_000_000  # orders that check what was chosen under those above; fewer (not below _RANDOM_RUNS) for large graphs
_CHECKED = 4  # sets of edges that are looked at closely
_BLOCKS = (16, 32, 64)  # into which edges are split, to leave out those that are not needed
_MOST_TRIALS, _TRIED_OPS = 80, 500_000  # of that; the time for one is linear in the number of ops


def choose_edges(task, solution, orderable, mode="needed", footprint=None, synchronous=False):
    """Control edges that make TensorFlow follow the solution.

    TensorFlow starts whatever is ready, in an order of its own. "needed" chains the ops that matter (those with large outputs for
    "peak_memory", long ones for "runtime"), as few as keep the objective within 2 % of the full order's under any of several
    ready-queue disciplines; "full" chains all; "none" none. These edges never cross devices (a crossing costs a transfer), and
    those that other edges imply are left out. Of the edges that are part of the solution (`Solution.held`), which may cross, those
    that hold back the ops with the largest outputs are kept, as few as keep its memory.

    Where memory is the objective, a device that runs several ops at once loses speed to every edge. So chains of one op at a time and of
    as many as the device has lanes are both tried, from few ops to all: of those that keep the task's makespan limit and are within 2 %
    of the lowest peak among them (persistent bytes aside) the fastest is taken, and edges that save nothing are left out.

    Args:
        task: with the problem as the devices run it (their real lanes).
        orderable: bool [ops].
        synchronous: the devices are CPUs, whose executor runs the kernels itself. An op that an edge makes ready there is begun before what the same op
            has to send, and so are the ops after it: transfers would wait for whole chains. For "runtime" edges never start at an op that sends, and
            none are added where the order that the executor takes by itself (see `usual_run`) is within 10 % of the plan.
        footprint: for "peak_memory": called with a simulated run (with timeline), gives the bytes that count; default: its largest peak.

    Returns:
        (edges int32 [k, 2], run): (before, after) pairs, and the worst simulated run under them (see `worst_run`).
    """
    if mode == "none":
        return NONE, worst_run(task, solution, NONE)
    footprint = footprint or (lambda run: int(run.peak.max()))
    held = _fewest_held(task, solution, orderable, footprint)
    given = task
    if len(held):
        task = dataclasses.replace(task, problem=with_edges(task.problem, held))
    candidates = np.flatnonzero(orderable)
    weight = _weights(task.problem, task.objective, solution.device)
    ranked = candidates[np.argsort(-weight[candidates], kind="stable")]
    if mode == "full":
        edges = _chain(task, solution, candidates, 1)
        run = worst_run(task, solution, edges)
    elif task.objective == "runtime":
        edges, run = _fewest(task, solution, ranked, synchronous)
    else:
        edges, run = _fastest(task, solution, ranked, footprint)
    if len(held):
        held = without_implied(given, held, edges, solution.run.start_order.tolist())
    return np.concatenate([held, edges]), run


def _fewest_held(task, solution, orderable, footprint):
    """Of the solution's edges that hold ops back as few as its memory needs."""
    held = solution.held[orderable[solution.held].all(axis=1)]
    if len(held) == 0:
        return held
    weight = _weights(task.problem, "peak_memory", solution.device)
    ranked = held[np.argsort(-weight[held[:, 1]], kind="stable")]
    planned, fixed = footprint(solution.run), _persistent_at_peak(task.problem, solution.run)
    for share in _SHARES:
        some = _share(ranked, share)
        if footprint(replay(task, dataclasses.replace(solution, held=some))) - fixed <= _HELD_TOLERANCE * (planned - fixed):
            return some
    return held


def _share(ranked, share):
    return ranked[: int(np.ceil(share * len(ranked)))]


def _fewest(task, solution, ranked, synchronous):
    """The fewest edges that keep the makespan in the orders that TensorFlow may take; the best found where none do."""
    excess, figure = _figure(task, solution, solution.run)
    run_of, tolerance, sends = worst_run, _TOLERANCE, np.zeros(task.problem.n_ops, bool)
    if synchronous:
        run_of, tolerance = usual_run, _LOOSE_TOLERANCE
        sends[[task.problem.producer[t] for t, *_ in solution.run.transfers]] = True
    best = None
    for share in _SHARES:
        edges = _chain(task, solution, _share(ranked, share), task.problem.lanes)
        edges = edges[~sends[edges[:, 0]]]
        run = run_of(task, solution, edges)
        found = _figure(task, solution, run)
        if best is None or found < _figure(task, solution, best[1]):
            best = (edges, run)
        if found[0] <= excess and found[1] <= tolerance * figure:
            break
    return best


def usual_run(task, solution, edges):
    """First come, first served: what TensorFlow's executor comes close to by itself."""
    none = np.zeros(task.problem.n_ops, np.float32)
    return make_simulator(with_edges(task.problem, edges)).run(solution.device, none, None, discipline="fifo", timeline=True)


def _fastest(task, solution, ranked, footprint):
    """The fastest set of edges within the makespan limit and within 2 % of the lowest peak there, without those that it does not need."""

    def key(run):
        late = max(0, run.makespan - task.makespan_limit) if task.makespan_limit is not None else 0
        return _figure(task, solution, run)[0], late, footprint(run)

    planned = footprint(solution.run)
    fixed = _persistent_at_peak(task.problem, solution.run)

    def near(found, lowest):
        return found - fixed <= _TOLERANCE * (lowest - fixed)

    sets, seen = [], set()
    # The devices' own lanes first: the same peak costs less time there.
    for lanes in [task.problem.lanes, np.ones_like(task.problem.lanes)][: 2 if (task.problem.lanes > 1).any() else 1]:
        for share in _SHARES:
            edges = _chain(task, solution, _share(ranked, share), lanes)
            if edges.tobytes() in seen:
                continue
            seen.add(edges.tobytes())
            for random_runs in (_FEW_RUNS, _RANDOM_RUNS):
                run = worst_run(task, solution, edges, random_runs)
                found = key(run)
                enough = found[0] == 0 and near(found[2], planned)
                if not enough:
                    break
            sets.append((found, edges, run, enough))
            if enough:
                break  # more edges would only be slower
    # What is too late may be early enough without the edges that are not needed: the lowest of the sets that are lower than what is in time, else
    # the least late of them.
    best, pruned = min(found for found, *_ in sets), []
    lower = [one for one in sets if one[0][0] == best[0] and one[0][1] > best[1] and one[0][2] < best[2]]
    for choice in (lambda one: (one[0][2], one[2].makespan), lambda one: one[0][1]):
        if not lower:
            break
        one = min(lower, key=choice)
        lower.remove(one)
        edges, run = _without_needless(task, solution, *one[1:3], footprint, near)
        pruned.append(edges)
        sets.append((key(run), edges, run, True))
        if sets[-1][0][1] == 0:
            break
    excess, late, lowest = min(found for found, *_ in sets)

    def rank(one):
        found, edges, run, _ = one
        close = found[:2] == (excess, late) and near(found[2], lowest)
        return (0, run.makespan, len(edges)) if close else (1, *found)

    sets.sort(key=rank)
    best = None
    for _, edges, run, closely in sets[:_CHECKED]:
        if not closely:
            run = worst_run(task, solution, edges)
        found = key(run)
        if best is None or found < best[0]:
            best = (found, edges, run)
        if found[:2] == (excess, late) and near(found[2], lowest):
            break
    if any(best[1] is edges for edges in pruned):
        return best[1:]
    return _without_needless(task, solution, *best[1:], footprint, near)


def _without_needless(task, solution, edges, run, footprint, near):
    """Leaves out edges where neither memory nor time gets more: blocks along the order, then smaller ones. → (edges, worst run).

    What was left out for the orders tried is tried with others; where it fails there, half as much is left out.
    """
    if len(edges) == 0:
        return edges, run
    place = np.empty(task.problem.n_ops, np.int64)
    place[solution.run.start_order] = np.arange(task.problem.n_ops)
    edges = edges[np.argsort(place[edges[:, 1]], kind="stable")]
    planned = int(solution.run.peak.max())

    def figures(run):
        return _figure(task, solution, run)[0], int(run.peak.max()), footprint(run)

    def keeps(trial, before):
        excess, peak, lowest = before
        found = int(trial.peak.max())
        return (found <= peak or near(found, planned)) and _figure(task, solution, trial)[0] <= excess and footprint(trial) <= lowest

    before = figures(run)
    kept, trials = np.ones(len(edges), bool), min(_MOST_TRIALS, _TRIED_OPS // task.problem.n_ops)
    steps = [(kept, run)]
    for blocks in _BLOCKS:
        for block in np.array_split(np.arange(len(edges)), min(blocks, len(edges))):
            if trials == 0 or not kept[block].any():
                continue
            trials -= 1
            without = kept.copy()
            without[block] = False
            for random_runs in (_FEW_RUNS, _RANDOM_RUNS):
                trial = worst_run(task, solution, edges[without], random_runs)
                if trial.makespan > run.makespan or not keeps(trial, before):
                    break
            else:
                kept, run = without, trial
                steps.append((kept, run))
    others = max(_RANDOM_RUNS, min(_OTHER_RUNS, _OTHER_OPS // task.problem.n_ops))
    if len(steps) > 1:
        before = figures(worst_run(task, solution, edges, others, draw=1))
    while len(steps) > 1 and not keeps(worst_run(task, solution, edges[steps[-1][0]], others, draw=1), before):
        del steps[(len(steps) + 1) // 2 :]
    kept, run = steps[-1]
    return edges[kept], run


def _persistent_at_peak(problem, run):
    """Bytes that lie on the device with the largest peak whatever the order: tolerances are shares of the others."""
    device = int(run.peak.argmax())
    return int(problem.persistent[np.asarray(run.device) == device].sum())


def worst_run(task, solution, edges, random_runs=_RANDOM_RUNS, draw=0):
    """The worst run found, by the objective, of the placement under the edges.

    Tried: ready ops first come, last come, heaviest first, in the planned order and its reverse, and in random orders. A sample: an order
    that TensorFlow really takes may still be a little worse. Another `draw`: other random orders.
    """
    simulator = make_simulator(with_edges(task.problem, edges))
    n = task.problem.n_ops
    rng = np.random.default_rng([task.seed, draw] if draw else task.seed)
    none = np.zeros(n, np.float32)
    weight = _weights(task.problem, task.objective, solution.device).astype(np.float32)
    orders = [
        (none, None, "fifo"), (weight, None, "priority"), (-solution.priority, None, "priority"),
        (solution.priority, solution.transfer_priority, "priority"),
    ]  # fmt: skip
    orders += [(rng.random(n, dtype=np.float32), None, "priority") for _ in range(random_runs)]
    if task.objective == "runtime":
        # Arguments, constants and reads of variables go first: TensorFlow's executor runs what is cheap at once, and sends arguments off before anything else.
        free = task.problem.duration[np.arange(n), solution.device] == 0
        orders = [(np.where(free, np.float32(np.inf), order), transfers, name) for order, transfers, name in orders]
    else:
        orders.append((none, None, "lifo"))
    worst = max(orders, key=lambda order: _figure(task, solution, simulator.run(solution.device, order[0], order[1], discipline=order[2])))
    return simulator.run(solution.device, worst[0], worst[1], discipline=worst[2], timeline=True)


def _figure(task, solution, run):
    """(bytes above capacity, objective) of a run of a solution; where the solution itself does not fit, only the objective counts."""
    excess = int(np.maximum(run.peak - task.problem.capacity, 0).sum()) if solution.run.feasible else 0
    return excess, run.makespan if task.objective == "runtime" else int(run.peak.max())


def _weights(problem, objective, device):
    """What an op adds to the objective by itself: ns, or bytes that it allocates."""
    at = np.arange(problem.n_ops)
    if objective == "runtime":
        return problem.duration[at, device].astype(float)
    allocated = problem.scratch[at, device].astype(float)
    own = (problem.view < 0) & np.isin(problem.lifetime, (LIFETIME_NORMAL, LIFETIME_OUTPUT))
    np.add.at(allocated, problem.producer[own], problem.size[own])
    return allocated


def _chain(task, solution, ops, lanes):
    """Edges that start `ops` in the solution's order on every device, at most `lanes` (int, or int [devices]) at a time."""
    problem = task.problem
    lanes = np.broadcast_to(lanes, problem.n_devices)
    first = np.concatenate([[0], np.cumsum(lanes)])  # of each device's chains
    chosen = np.zeros(problem.n_ops, bool)
    chosen[ops] = True
    order, chain, seen = solution.run.start_order.tolist(), np.full(problem.n_ops, -1, np.int64), [0] * problem.n_devices
    for op in order:
        if chosen[op]:
            device = solution.device[op]
            chain[op] = first[device] + seen[device] % lanes[device]
            seen[device] += 1
    return join(task, order, chain)

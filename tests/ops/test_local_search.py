"""The core's local search and list heuristics, through `tf_regal.ops`."""

import dataclasses
import math

import numpy as np
import pytest

from tf_regal import ops
from tf_regal.search import control_edges

from .cases import Graph, random_candidate, random_problem


def _start(problem, simulator):
    """Everything on the first allowed device, in the order of the ops."""
    allowed = np.array([int(mask) & -int(mask) for mask in simulator.allowed]).astype(float)
    device = np.log2(allowed).astype(np.int32)[problem.group]
    return device, np.arange(problem.n_ops, 0, -1, dtype=np.float32), None


def _search(problem, *, evaluations=300, objective="runtime", **options):
    simulator = ops.Simulator(problem)
    search = ops.LocalSearch(simulator, objective=objective, starts=[_start(problem, simulator)], **options)
    search.improve(evaluations)
    return simulator, search


def _problems():
    rng = np.random.default_rng(7)
    return [random_problem(rng, int(rng.integers(1, 40)), int(rng.integers(1, 5))) for _ in range(40)]


@pytest.mark.parametrize("proposals", [1, 8])
@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_best_is_valid_repeats_its_figures_and_is_no_worse_than_the_start(objective, proposals):
    for problem in _problems():
        simulator, search = _search(problem, objective=objective, proposals=proposals)
        assert search.evaluations == 300
        best = search.best
        again = simulator.run(best.device, best.priority, best.transfer_priority)
        assert (again.makespan, again.peak.tolist(), again.transfer_bytes) == (best.makespan, best.peak.tolist(), best.transfer_bytes)
        start = simulator.run(*_start(problem, simulator))

        def key(run, capacity=problem.capacity):
            excess = np.maximum(run.peak - capacity, 0).sum()
            return excess, run.makespan if objective == "runtime" else run.peak.max()

        assert key(best) <= key(start)


@pytest.mark.parametrize("proposals", [1, 8])
def test_result_does_not_depend_on_threads_or_on_how_the_run_is_cut(proposals):
    problem = random_problem(np.random.default_rng(3), 60, 3)
    figures = []
    for threads, cuts in ((1, [1000]), (3, [1000]), (2, [400, 600, 1000])):
        simulator = ops.Simulator(problem)
        search = ops.LocalSearch(simulator, objective="runtime", starts=[_start(problem, simulator)], chains=4, slack=0.02, proposals=proposals,
                                 threads=threads)
        for target in cuts:
            search.improve(1 + target)
        figures.append((search.best.makespan, search.best.device.tolist(), search.best.priority.tolist()))
    assert figures[0] == figures[1]
    assert figures[0] == figures[2]  # cut at whole rounds


def test_finds_the_balanced_placement_and_the_low_peak():
    graph = Graph(devices=2)
    for _ in range(8):
        graph.op(10)
    _, search = _search(graph.problem())
    assert search.best.makespan == 40
    # Two chains of a large and a small tensor: one after the other holds one large tensor, side by side two.
    graph = Graph()
    large = [graph.source(100), graph.source(100)]
    small = [graph.tensor(graph.op(1, inputs=[t]), 1) for t in large]
    graph.op(1, inputs=small)
    _, search = _search(graph.problem(), objective="peak_memory")
    assert search.best.peak.tolist() == [102]


def test_peak_is_lowered_within_the_makespan_limit():
    graph = Graph(devices=2)
    for _ in range(4):
        graph.source(100)
    # Two devices would halve the time; one after the other on one device takes 4, and any way holds 100 bytes at a time.
    _, search = _search(graph.problem(), objective="peak_memory", makespan_limit=2)
    assert (search.best.makespan, search.best.peak.max()) == (2, 100)


@pytest.mark.parametrize("options, message", [
    ({"chains": 0}, "chains is 0"), ({"memory": 0}, "memory is 0"), ({"proposals": 0}, "proposals is 0"),
    ({"threads": 0}, "threads is 0"), ({"slack": 1.0}, "slack is 1"),
    ({"horizon": 0}, "horizon is 0"), ({"makespan_limit": -1}, "makespan_limit is -1"), ({"objective": "speed"}, "objective is 'speed'"),
    ({"starts": []}, "starts is empty"), ({"starts": [(np.zeros(2, np.int32), np.zeros(2, np.float32), None)]}, "has 2 elements"),
])
def test_bad_options(options, message):
    graph = Graph()
    graph.op()
    simulator = ops.Simulator(graph.problem())
    arguments = {"objective": "runtime", "starts": [_start(graph.problem(), simulator)], **options}
    with pytest.raises(ValueError, match=message):
        ops.LocalSearch(simulator, **arguments)


def test_without_ops_there_is_nothing_to_search():
    simulator = ops.Simulator(Graph(devices=2).problem())
    empty = (np.zeros(0, np.int32), np.zeros(0, np.float32), None)
    search = ops.LocalSearch(simulator, objective="runtime", starts=[empty])
    search.improve(100)
    assert search.best.makespan == 0


def test_orders_are_topological_and_ranks_are_longest_paths():
    for problem in _problems():
        simulator = ops.Simulator(problem)
        up, down = ops.upward_rank(simulator, 0.0), ops.downward_rank(simulator, 0.0)
        predecessors = [set(problem.producer[problem.inputs(o)].tolist()) | set(problem.control_inputs(o).tolist()) for o in range(problem.n_ops)]
        for order in (ops.depth_first_order(simulator), ops.memory_greedy_order(simulator, up)):
            position = np.empty(problem.n_ops, int)
            position[order] = np.arange(problem.n_ops)
            assert all(position[before] < position[op] for op in range(problem.n_ops) for before in predecessors[op])
        mean = np.array([row[row >= 0].mean() for row in problem.duration])
        for op in range(problem.n_ops):
            assert down[op] == pytest.approx(max((down[b] + mean[b] for b in predecessors[op]), default=0))
            assert all(up[b] >= mean[b] + up[op] - 1e-9 for b in predecessors[op])


def test_earliest_finish_placement_shares_out_work_and_keeps_within_memory():
    graph = Graph(devices=2)
    for _ in range(6):
        graph.op(5, persistent=10)
    simulator = ops.Simulator(graph.problem())
    device = ops.earliest_finish_placement(simulator, np.arange(6.0))
    assert np.bincount(device).tolist() == [3, 3]
    graph.capacity = np.array([20, 1000])
    device = ops.earliest_finish_placement(ops.Simulator(graph.problem()), np.arange(6.0))
    assert np.bincount(device).tolist() == [2, 4]


def _slow_earliest_start(problem, allowed, rank):
    """All pairs of a ready op and a device, looked at again for every op."""
    n, d = problem.n_ops, problem.n_devices
    free = [[0] * int(lanes) for lanes in problem.lanes]
    device, end, group, order = [-1] * n, [0] * n, {}, []
    while len(order) < n:
        pairs = []
        for op in range(n):
            tensors = problem.inputs(op).tolist()
            before = [int(problem.producer[t]) for t in tensors] + problem.control_inputs(op).tolist()
            if device[op] >= 0 or any(device[b] < 0 for b in before):
                continue
            for q in range(d):
                if not int(allowed[problem.group[op]]) >> q & 1 or group.get(int(problem.group[op]), q) != q:
                    continue
                there = [min(free[q])]
                for t in tensors:
                    p = int(problem.producer[t])
                    moved = device[p] != q
                    cost = int(problem.latency[device[p], q]) + math.ceil(int(problem.size[t]) * float(problem.ns_per_byte[device[p], q])) if moved else 0
                    there.append(end[p] + cost)
                for c in problem.control_inputs(op).tolist():
                    there.append(end[c] + (int(problem.latency[device[c], q]) if device[c] != q else 0))
                pairs.append((max(there), -rank[op], q, op))
        start, _, q, op = min(pairs)
        device[op], group[int(problem.group[op])], end[op] = q, q, start + int(problem.duration[op, q])
        free[q][free[q].index(min(free[q]))] = end[op]
        order.append(op)
    return device, order


@pytest.mark.parametrize("seed", range(30))
def test_earliest_start_schedule(seed):
    problem = random_problem(np.random.default_rng(seed), 40, 1 + seed % 4, blocking=False)
    simulator = ops.Simulator(problem)
    rank = ops.upward_rank(simulator)
    device, order = ops.earliest_start_schedule(simulator, rank)
    assert (device.tolist(), order.tolist()) == _slow_earliest_start(problem, simulator.allowed, rank.tolist())


def test_noise_changes_the_orders():
    problem = random_problem(np.random.default_rng(5), 80, 1)
    simulator, rng = ops.Simulator(problem), np.random.default_rng(0)
    rank = ops.upward_rank(simulator)
    noise = np.exp(rng.normal(0, 1, problem.n_ops))
    assert ops.memory_greedy_order(simulator, rank, noise).tolist() != ops.memory_greedy_order(simulator, rank).tolist()
    assert ops.depth_first_order(simulator, noise).tolist() != ops.depth_first_order(simulator).tolist()
    with pytest.raises(ValueError, match="noise has 3 elements; expected 80"):
        ops.depth_first_order(simulator, np.ones(3))


def test_ops_that_are_held_back_are_as_if_edges_held_them():
    """What the core simulates by itself, against the same candidate on a problem with control edges."""
    rng, held_back = np.random.default_rng(11), 0
    for seed in range(60):
        problem = random_problem(rng, int(rng.integers(8, 40)), int(rng.integers(2, 5)))
        _, search = _search(problem, objective="peak_memory", chains=4, slack=0.05, seed=seed, hold=True)
        best = search.best
        order = np.argsort(-best.priority, kind="stable")
        held_back += best.hold > 0
        edges = np.stack([order[: -best.hold], order[best.hold :]], 1) if best.hold else control_edges.NONE
        again = ops.Simulator(control_edges.with_edges(problem, edges)).run(best.device, best.priority, best.transfer_priority)
        assert (again.makespan, again.peak.tolist(), again.transfer_bytes) == (best.makespan, best.peak.tolist(), best.transfer_bytes)
    assert held_back > 10


def test_ops_are_held_back_for_memory_on_several_devices_and_when_asked_only():
    for problem, options in (
        (random_problem(np.random.default_rng(1), 30, 3), {"objective": "peak_memory"}),
        (random_problem(np.random.default_rng(1), 30, 3), {"objective": "runtime", "hold": True}),
        (random_problem(np.random.default_rng(1), 30, 1), {"objective": "peak_memory", "hold": True}),
    ):
        assert all(_search(problem, seed=seed, **options)[1].best.hold == 0 for seed in range(5))


def test_a_device_waits_where_that_saves_memory():
    """A large value could be made at once, but is needed at the end only; what comes in between needs as much. A device that never waits holds both."""
    graph = Graph(2)
    here, there = (10, -1), (-1, 10)
    begin = graph.source(duration=here)
    middle = graph.tensor(graph.op(here, [begin]))
    large = graph.source(duration=there, size=100)
    between = graph.tensor(graph.op(there, [graph.tensor(graph.op(there, [middle]), size=100)]))
    graph.op(there, [large, between])
    problem = graph.problem()
    simulator = ops.Simulator(problem)
    start = np.array([0, 0, 1, 1, 1, 1], np.int32), np.arange(6, 0, -1, dtype=np.float32), None
    peaks = []
    for hold in (False, True):
        search = ops.LocalSearch(simulator, objective="peak_memory", starts=[start], hold=hold)
        search.improve(500)
        peaks.append(int(search.best.peak.max()))
    assert peaks == [201, 101]


def _estimates(problem, rng):
    """→ (the simulated run, the estimate of its order) of a random candidate."""
    simulator = ops.Simulator(problem)
    device, priority, _ = random_candidate(rng, problem)
    run = simulator.run(device, priority, timeline=True)
    return run, ops.estimate_schedule(simulator, run.start_order, device)


def test_estimates_are_exact_on_one_device_with_one_lane():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(300):
        problem = random_problem(rng, int(rng.integers(1, 40)), 1)
        if problem.lanes[0] > 1 or problem.blocking_transfers:
            continue
        run, estimate = _estimates(problem, rng)
        assert estimate == (run.makespan, run.peak[0])
        seen += 1
    assert seen > 40


def test_estimated_makespans_are_exact_where_transfers_are_free():
    rng = np.random.default_rng(6)
    seen = 0
    for _ in range(300):
        problem = random_problem(rng, int(rng.integers(2, 40)), int(rng.integers(2, 5)))
        if problem.blocking_transfers:
            continue
        problem = dataclasses.replace(problem, latency=np.zeros_like(problem.latency), ns_per_byte=np.zeros_like(problem.ns_per_byte))
        run, (makespan, _) = _estimates(problem, rng)
        assert makespan == run.makespan
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("order, device, message", [
    ([0, 0], [0, 0], "no permutation"), ([0], [0, 0], "order has 1 elements"), ([0, 1], [0, 7], r"device\[1\] is 7"), ([0, 2], [0, 0], "no permutation"),
])
def test_bad_schedules_to_estimate(order, device, message):
    graph = Graph()
    graph.op()
    graph.op()
    simulator = ops.Simulator(graph.problem())
    with pytest.raises(ValueError, match=message):
        ops.estimate_schedule(simulator, np.array(order, np.int32), np.array(device, np.int32))


def test_estimates_choose_better_changes():
    """With the same number of simulations the search gets further where it simulates the most promising of eight changes."""
    rng = np.random.default_rng(8)
    ratios = {"runtime": [], "peak_memory": []}
    for _ in range(4):
        graph = Graph(devices=2, latency=20)
        tensors = [graph.source(int(rng.integers(1, 100))) for _ in range(10)]
        for _ in range(150):
            inputs = rng.choice(len(tensors), 2, replace=False)
            op = graph.op(int(rng.integers(1, 50)), inputs=[tensors[i] for i in inputs])
            tensors.append(graph.tensor(op, int(rng.integers(1, 100))))
        problem = graph.problem()
        for objective, found in ratios.items():
            figures = []
            for proposals in (1, 8):
                _, search = _search(problem, objective=objective, evaluations=500, chains=2, proposals=proposals)
                figures.append(search.best.makespan if objective == "runtime" else search.best.peak.max())
            found.append(figures[1] / figures[0])
    assert np.mean(ratios["runtime"]) < 1
    assert np.mean(ratios["peak_memory"]) < 1


def test_a_device_may_have_more_lanes_than_there_are_ops():
    graph = Graph(devices=2, lanes=2**20 - 1)
    for _ in range(3):
        graph.source(5, duration=7)
    _, search = _search(graph.problem(), proposals=8)
    assert search.best.makespan == 7

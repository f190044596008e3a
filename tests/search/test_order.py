"""Control edges: what they promise holds in whatever order a device takes its ready ops."""

import itertools

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import ops
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, control_edges, order

SEEDS = range(40)
TOLERANCE = 1.02


def solved(seed, objective="peak_memory", n_ops=30, method="memory_greedy"):
    rng = np.random.default_rng(1000 + seed)
    problem = cases.random_problem(rng, n_ops, 1 + seed % 3, max_lanes=1 if objective == "peak_memory" else 3, blocking=False)
    task = Task(problem, objective, default_placement(problem), seed=seed)
    return task, METHODS[method](task, Budget(200))


def all_orderable(task):
    return np.ones(task.problem.n_ops, bool)


def successors_of(problem):
    result = [set() for _ in range(problem.n_ops)]
    for op in range(problem.n_ops):
        for tensor in problem.inputs(op):
            result[problem.producer[tensor]].add(op)
        for source in problem.control_inputs(op):
            result[source].add(op)
    return result


def reaches(successors, source, target):
    seen, queue = {source}, [source]
    while queue:
        for op in successors[queue.pop()]:
            if op == target:
                return True
            if op not in seen:
                seen.add(op)
                queue.append(op)
    return False


def random_runs(task, solution, edges, count=20):
    simulator = ops.Simulator(control_edges.with_edges(task.problem, edges))
    rng = np.random.default_rng(5)
    n = task.problem.n_ops
    runs = [simulator.run(solution.device, np.zeros(n, np.float32), discipline=d, timeline=True) for d in ("fifo", "lifo")]
    return runs + [simulator.run(solution.device, rng.random(n, dtype=np.float32), timeline=True) for _ in range(count)]


@pytest.mark.parametrize("mode", ["needed", "full"])
@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
@pytest.mark.parametrize("seed", SEEDS)
def test_edges_are_acyclic_on_one_device_and_not_implied(seed, objective, mode):
    task, solution = solved(seed, objective, method="regal" if seed % 2 else "memory_greedy")
    edges, _ = order.choose_edges(task, solution, all_orderable(task), mode)
    assert edges.dtype == np.int32
    assert edges.shape == (len(edges), 2)
    started = {op: i for i, op in enumerate(solution.run.start_order.tolist())}
    given, held = successors_of(task.problem), set(map(tuple, solution.held.tolist()))
    for before, after in edges.tolist():
        assert solution.device[before] == solution.device[after] or (before, after) in held
        assert started[before] < started[after]
        assert not reaches(given, before, after), "the graph implies this edge"
    for i, (before, after) in enumerate(edges.tolist()):
        others = [set(s) for s in given]
        for a, b in np.delete(edges, i, 0).tolist():
            others[a].add(b)
        assert not reaches(others, before, after), "the graph and the other edges imply this edge"
        assert not reaches(others, after, before), "a cycle"


@pytest.mark.parametrize("seed", SEEDS)
def test_needed_keeps_the_peak_in_any_order(seed):
    task, solution = solved(seed)
    edges, worst = order.choose_edges(task, solution, all_orderable(task), "needed")
    planned = int(solution.run.peak.max())
    assert int(worst.peak.max()) <= TOLERANCE * planned
    for run in random_runs(task, solution, edges):
        assert int(run.peak.max()) <= TOLERANCE * planned, (planned, run.peak)


@pytest.mark.parametrize("seed", range(10))
def test_needed_keeps_the_makespan(seed):
    task, solution = solved(seed, "runtime", method="regal")
    edges, worst = order.choose_edges(task, solution, all_orderable(task), "needed")
    full, full_worst = order.choose_edges(task, solution, all_orderable(task), "full")
    none, none_worst = order.choose_edges(task, solution, all_orderable(task), "none")
    del full, none
    assert worst.makespan <= max(TOLERANCE * solution.run.makespan, min(full_worst.makespan, none_worst.makespan))
    assert len(edges) <= task.problem.n_ops * 3


@pytest.mark.parametrize("seed", SEEDS)
def test_full_leaves_one_order_only(seed):
    task, solution = solved(seed, method="regal")
    edges, _ = order.choose_edges(task, solution, all_orderable(task), "full")
    want = [[op for op in solution.run.start_order.tolist() if solution.device[op] == q] for q in range(task.problem.n_devices)]
    for run in random_runs(task, solution, edges, 10):
        got = [[op for op in run.start_order.tolist() if solution.device[op] == q] for q in range(task.problem.n_devices)]
        assert got == want


def test_full_chains_a_device_with_lanes_too():
    """The documentation: "full" (every op in one order)."""
    task, solution = solved(1, "runtime", method="regal")
    assert task.problem.lanes.max() > 1
    edges, _ = order.choose_edges(task, solution, all_orderable(task), "full")
    successors = successors_of(control_edges.with_edges(task.problem, edges))
    for q in range(task.problem.n_devices):
        queue = [op for op in solution.run.start_order.tolist() if solution.device[op] == q]
        for a, b in itertools.pairwise(queue):
            assert reaches(successors, a, b)


def test_none_is_empty():
    task, solution = solved(3)
    edges, run = order.choose_edges(task, solution, all_orderable(task), "none")
    assert edges.shape == (0, 2)
    assert run.makespan > 0


@pytest.mark.parametrize("mode", ["needed", "full"])
@pytest.mark.parametrize("seed", range(10))
def test_ops_that_may_not_be_ordered_are_not(seed, mode):
    task, solution = solved(seed)
    orderable = np.random.default_rng(seed).random(task.problem.n_ops) < 0.6
    edges, _ = order.choose_edges(task, solution, orderable, mode)
    assert orderable[edges.ravel()].all()


@pytest.mark.parametrize("seed", range(10))
def test_needed_needs_no_more_than_full(seed):
    task, solution = solved(seed)
    needed, _ = order.choose_edges(task, solution, all_orderable(task), "needed")
    full, _ = order.choose_edges(task, solution, all_orderable(task), "full")
    assert len(needed) <= len(full)


def test_a_chain_needs_no_edges():
    graph = cases.Graph(1)
    t = graph.source(size=8)
    for _ in range(5):
        t = graph.tensor(graph.op(1, [t]), 8)
    task = Task(graph.problem(), "peak_memory", np.zeros(6, np.int32))
    solution = METHODS["memory_greedy"](task, None)
    for mode in ("needed", "full", "none"):
        assert len(order.choose_edges(task, solution, all_orderable(task), mode)[0]) == 0


def test_two_wide_branches_get_the_edge_that_saves_memory():
    """Each branch makes 100 bytes and reduces them to 1: one after the other needs 101, both at once 200."""
    graph = cases.Graph(1)
    for _ in range(2):
        wide = graph.source(size=100, duration=1)
        graph.tensor(graph.op(1, [wide]), 1, lifetime=1)
    problem = graph.problem()
    task = Task(problem, "peak_memory", np.zeros(4, np.int32))
    solution = METHODS["memory_greedy"](task, None)
    assert solution.run.peak.tolist() == [102] or solution.run.peak.tolist() == [101]
    edges, run = order.choose_edges(task, solution, all_orderable(task), "needed")
    assert len(edges) >= 1
    assert run.peak.max() <= TOLERANCE * solution.run.peak.max()
    loose = order.choose_edges(task, solution, all_orderable(task), "none")[1]
    assert loose.peak.max() >= 200


@pytest.mark.parametrize("seed", range(12))
def test_lanes_are_kept_where_the_time_is_limited(seed):
    """Eight branches on a device with two lanes: the more time a plan may take, the less memory; never more time than that."""
    rng = np.random.default_rng(seed)
    graph = cases.Graph(1)
    for _ in range(8):
        wide = graph.source(size=int(rng.integers(50, 150)), duration=int(rng.integers(50, 150)))
        graph.tensor(graph.op(int(rng.integers(50, 150)), [wide]), 1, lifetime=1)
    sequential = graph.problem()
    problem = sequential.replace(lanes=np.array([2], np.int32))
    device = np.zeros(problem.n_ops, np.int32)
    solution = METHODS["memory_greedy"](Task(sequential, "peak_memory", device), None)
    default = METHODS["default"](Task(problem, "peak_memory", device), None)
    peaks, times = [], []
    for slowdown in (1.05, 1.2, 4.0):
        task = Task(problem, "peak_memory", device, makespan_limit=int(slowdown * default.run.makespan))
        _, run = order.choose_edges(task, solution, all_orderable(task), "needed")
        assert run.makespan <= task.makespan_limit or slowdown == 1.05
        peaks.append(int(run.peak.max()))
        times.append(run.makespan)
    assert peaks[2] <= TOLERANCE * solution.run.peak.max()
    assert peaks[2] <= peaks[1] < default.run.peak.max()
    assert times[1] < times[2]


def test_bytes_that_stay_do_not_loosen_the_tolerance():
    """2 % of what the order decides, not of a million bytes of variables: those would allow both branches at once."""
    graph = cases.Graph(1)
    graph.op(1, persistent=1_000_000)
    for _ in range(2):
        wide = graph.source(size=100, duration=1)
        graph.tensor(graph.op(1, [wide]), 1, lifetime=1)
    task = Task(graph.problem(), "peak_memory", np.zeros(5, np.int32))
    solution = METHODS["memory_greedy"](task, None)
    edges, run = order.choose_edges(task, solution, all_orderable(task), "needed")
    assert len(edges) >= 1
    assert run.peak.max() <= 1_000_000 + TOLERANCE * (solution.run.peak.max() - 1_000_000)


def stages(lanes):
    """A stage whose two heavy ops fit beside each other, then one whose four lighter ones do not, beside 150 bytes. → (problem, the first stage's ops).

    At once the first needs 240 bytes and two of the second 350 and more; one at a time the second needs 250 and a little.
    """
    graph = cases.Graph(1)
    heavy = [graph.op(1000) for _ in range(2)]
    ends = [graph.tensor(graph.op(1, [graph.tensor(op, 120)]), 1) for op in heavy]
    join = graph.op(1, ends)
    beside = graph.tensor(join, 150)
    ends = []
    for _ in range(4):
        wide = graph.tensor(graph.op(10, after=[join]), 100)
        ends.append(graph.tensor(graph.op(1, [wide]), 1))
    graph.tensor(graph.op(1, [beside, *ends]), 1, lifetime=1)
    return graph.problem().replace(lanes=np.array([lanes], np.int32)), heavy


@pytest.mark.parametrize("limited", [False, True])
def test_edges_that_save_nothing_are_left_out(limited):
    """The heavier ops are the first to get edges, but memory needs only those of the second stage, and the time that is given allows no others."""
    problem, heavy = stages(lanes=2)
    device = np.zeros(problem.n_ops, np.int32)
    default = METHODS["default"](Task(problem, "peak_memory", device), None).run
    task = Task(problem, "peak_memory", device, makespan_limit=int(1.1 * default.makespan) if limited else None)
    solution = METHODS["memory_greedy"](Task(problem.replace(lanes=np.array([1], np.int32)), "peak_memory", device), None)
    assert default.peak.max() >= 350 and solution.run.peak.max() < 260
    edges, run = order.choose_edges(task, solution, all_orderable(task), "needed")
    assert len(edges) > 0
    assert run.peak.max() <= TOLERANCE * solution.run.peak.max()
    assert not np.isin(edges, heavy).any()
    if limited:
        assert run.makespan <= task.makespan_limit


def test_the_footprint_decides_where_it_is_given():
    task, solution = solved(1)
    seen = []

    def footprint(run):
        seen.append(run)
        return int(run.peak.max())

    edges, run = order.choose_edges(task, solution, all_orderable(task), "needed", footprint)
    assert len(seen) > 1
    same, _ = order.choose_edges(task, solution, all_orderable(task), "needed")
    assert edges.tolist() == same.tolist()
    assert run.peak.max() <= TOLERANCE * solution.run.peak.max()


def test_held_back_are_only_ops_that_may_be_ordered():
    """Of the solution's own edges, too; and where no order will be enforced the search makes none."""
    held = 0
    for seed in range(12):
        task, solution = solved(seed, method="regal")
        held += len(solution.held)
        orderable = np.random.default_rng(seed).random(task.problem.n_ops) < 0.6
        edges, _ = order.choose_edges(task, solution, orderable, "needed")
        assert orderable[edges.ravel()].all()
        task.may_hold = False
        assert len(METHODS["regal"](task, Budget(200)).held) == 0
    assert held > 0

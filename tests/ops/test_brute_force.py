"""The search finds the optimum of graphs that are small enough to try everything, and keeps its promises."""

import functools
import itertools

import numpy as np
import pytest

from tf_regal import ops

from . import cases, core, reference

N_TINY = 110


@functools.cache
def _tiny(seed):
    """(problem, figures of its feasible candidates): at most 5 ops on at most 2 devices, at least one candidate."""
    rng = np.random.default_rng([seed, 17])
    figures = set()
    while not figures:
        problem = cases.random_problem(rng, n_ops=2 + seed % 4, n_devices=1 + seed % 2)
        figures = {figure[:2] for figure in _all_figures(problem) if figure[2]}
    return problem, figures


def _all_figures(problem):
    """{(makespan, largest peak, feasible)} over all placements and all orders of priorities.

    Ops of different devices do not compete, so that the orders of each device's own ops are all that there is to try.
    """
    figures = set()
    for choice in itertools.product(*cases.group_devices(problem)):
        device = np.array(choice, np.int32)[problem.group]
        own_orders = [itertools.permutations(np.flatnonzero(device == p).tolist()) for p in range(problem.n_devices)]
        for orders in itertools.product(*own_orders):
            priority = np.zeros(problem.n_ops, np.float32)
            for order in orders:
                priority[list(order)] = np.arange(len(order))
            result = reference.simulate(problem, device, priority)
            figures.add((result.makespan, max(result.peak), result.feasible))
    return figures


def _search(problem, evaluations=2000, objective="runtime", **options):
    search = ops.Brkga(ops.Simulator(problem), objective=objective, **options)
    search.evolve(evaluations)
    return search


def _best_figures(search):
    best = search.best
    return best.makespan, int(best.peak.max()), best.feasible


def _assert_simulates_to_its_figures(problem, best):
    """The best candidate has the figures that the search says it has, by the core and by the twin."""
    transfer_priority = best.transfer_priority
    if transfer_priority is not None:
        transfer_priority = transfer_priority.reshape(problem.n_tensors, problem.n_devices)
    expected = best.makespan, best.peak.tolist(), best.transfer_bytes, best.feasible
    run = ops.Simulator(problem).run(best.device, best.priority, transfer_priority)
    assert (run.makespan, run.peak.tolist(), run.transfer_bytes, run.feasible) == expected
    twin = reference.simulate(problem, best.device, best.priority, transfer_priority)
    assert (twin.makespan, twin.peak, twin.transfer_bytes, twin.feasible) == expected


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("seed", range(N_TINY))
def test_search_reaches_the_optimum(objective, index, seed):
    problem, figures = _tiny(seed)
    search = _search(problem, objective=objective, seed=seed)
    found = _best_figures(search)
    optimum = min(figure[index] for figure in figures)
    assert found[2] and found[index] <= optimum
    if problem.n_devices == 1:  # else the search may do better by the priorities of transfers
        assert found[index] == optimum
    _assert_simulates_to_its_figures(problem, search.best)


def test_best_is_infeasible_only_if_nothing_fits():
    problem = cases.random_problem(np.random.default_rng(0), 5, 2).replace(capacity=np.zeros(2, np.int64))
    assert not any(figure[2] for figure in _all_figures(problem))
    for objective in ("runtime", "peak_memory"):
        best = _search(problem, 200, objective=objective).best
        assert not best.feasible
        _assert_simulates_to_its_figures(problem, best)


@pytest.mark.parametrize("seed", range(0, N_TINY, 3))
def test_search_for_memory_keeps_the_makespan_limit(seed):
    problem, figures = _tiny(seed)
    limit = sorted(figures)[len(figures) // 2][0]
    found = _best_figures(_search(problem, objective="peak_memory", makespan_limit=limit, seed=seed))
    assert found[0] <= limit and found[2]
    assert found[1] <= min(peak for makespan, peak in figures if makespan <= limit)


# Promises of the search.


def _larger(seed, n_ops=25, n_devices=3):
    return cases.random_problem(np.random.default_rng([seed, 29]), n_ops, n_devices)


def _same(first, second):
    return (all(np.array_equal(getattr(first.best, name), getattr(second.best, name))
                for name in ("device", "priority", "transfer_priority", "peak"))
            and _best_figures(first) == _best_figures(second) and np.array_equal(first.history, second.history))


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
@pytest.mark.parametrize("problem_seed", range(3))
def test_same_seed_gives_the_same_result_with_any_number_of_threads(objective, problem_seed):
    problem = _larger(problem_seed)
    one = _search(problem, 1500, objective=objective, seed=7)
    for threads in (1, 2, 4):
        assert _same(one, _search(problem, 1500, objective=objective, seed=7, threads=threads))


def test_seeds_differ():
    problem = _larger(0)
    assert not _same(_search(problem, 300, seed=1), _search(problem, 300, seed=2))


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
@pytest.mark.parametrize("problem_seed", range(12))
def test_quality_of_a_seed_solution_is_not_lost(objective, index, problem_seed):
    problem = _larger(problem_seed)
    if problem_seed % 2:
        problem = problem.replace(capacity=np.full(3, cases.UNLIMITED))
    rng = np.random.default_rng(problem_seed)
    simulator = ops.Simulator(problem)
    # The best of many, so that few random individuals could hide its loss.
    candidates = [cases.random_candidate(rng, problem) for _ in range(300)]
    runs = [simulator.run(*core.arrays(*candidate)) for candidate in candidates]
    ranks = [(not run.feasible, (run.makespan, int(run.peak.max()))[index]) for run in runs]
    rank, chosen = min((rank, i) for i, rank in enumerate(ranks))
    if rank[0]:
        pytest.skip("no candidate fits into memory")
    for evaluations in (10, 100, 400):
        search = _search(problem, evaluations, objective=objective, population=10, elites=2, mutants=3,
                         seeds=[core.arrays(*candidates[chosen])])
        found = _best_figures(search)
        assert (not found[2], found[index]) <= rank


def test_seed_solutions_without_transfer_priority_and_several_of_them_are_taken():
    problem = _larger(4)
    rng = np.random.default_rng(4)
    seeds = []
    for _ in range(3):
        device, priority, _ = cases.random_candidate(rng, problem)
        seeds.append((device, priority, None))
    simulator = ops.Simulator(problem)
    runs = [simulator.run(*seed) for seed in seeds]
    search = _search(problem, 3, population=3, elites=1, mutants=1, seeds=seeds)
    assert (not search.best.feasible, search.best.makespan) == min((not run.feasible, run.makespan) for run in runs)


@pytest.mark.parametrize("evaluations", [1, 7, 100, 101, 185, 1234])
def test_number_of_evaluations_is_exact(evaluations):
    search = _search(_larger(0), evaluations)
    assert search.evaluations == evaluations


def test_evolve_goes_on_to_a_total_of_evaluations():
    problem = _larger(1)
    parts = ops.Brkga(ops.Simulator(problem), objective="runtime", seed=3)
    for total in (50, 51, 400, 300, 1000):
        before = parts.evaluations
        parts.evolve(total)
        assert parts.evaluations == max(before, total)


@pytest.mark.parametrize("objective, index", [("runtime", 0), ("peak_memory", 1)])
def test_history_is_best_and_mean_by_generation_and_best_never_gets_worse(objective, index):
    problem = _larger(2).replace(capacity=np.full(3, cases.UNLIMITED))
    search = _search(problem, 2000, objective=objective)
    history = search.history
    assert history.dtype == np.float64 and history.ndim == 2 and history.shape[1] == 2
    assert (np.diff(history[:, 0]) <= 0).all()
    assert (history[:, 0] <= history[:, 1]).all()
    assert history[-1, 0] == _best_figures(search)[index]


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
@pytest.mark.parametrize("problem_seed", range(10))
def test_reported_best_simulates_to_its_figures(objective, problem_seed):
    problem = _larger(problem_seed)
    search = _search(problem, 500, objective=objective)
    _assert_simulates_to_its_figures(problem, search.best)
    for group in range(problem.n_groups):
        assert len(set(search.best.device[problem.group == group].tolist())) == 1


def test_reported_transfer_priority_is_by_tensor_and_destination():
    problem = _larger(0)
    assert _search(problem, 100).best.transfer_priority.shape == (problem.n_tensors, problem.n_devices)

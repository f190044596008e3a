"""Proposals: the Betas themselves against scipy, what BRKGA draws from them, and what is refused."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import errors, ops
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, brkga, method, proposal, uses_proposals

stats = pytest.importorskip("scipy.stats", reason="scipy comes with spektral")


def task_of(problem, objective="runtime", seed=0, **more):
    return Task(problem, objective, default_placement(problem), seed=seed, **more)


def problem_of(seed=0, n_ops=40, n_devices=2):
    return cases.random_problem(np.random.default_rng(seed), n_ops, n_devices)


def uniform(problem):
    return proposal.Proposal(np.full((problem.n_ops, problem.n_devices), proposal.UNIFORM), np.full(problem.n_ops, proposal.UNIFORM))


def test_the_table_is_that_of_beta_distributions():
    at = np.linspace(0, 1, 257)[1:-1]
    for level, nu in enumerate(proposal.CONCENTRATIONS):
        for i, mean in enumerate(proposal.MEANS):
            row = proposal.table()[level * len(proposal.MEANS) + i]
            assert np.all(np.diff(row) >= 0)
            np.testing.assert_allclose(row[1:-1], stats.beta.ppf(at, mean * nu, (1 - mean) * nu), atol=2e-3)


@pytest.mark.parametrize("choice", [0, 40, 100, 200, 223])
def test_mean_and_variance_of_what_is_drawn(choice):
    level, i = divmod(choice, len(proposal.MEANS))
    mean, nu = proposal.MEANS[i], proposal.CONCENTRATIONS[level]
    drawn = np.interp(np.random.default_rng(0).random(100_000), np.linspace(0, 1, 257), proposal.table()[choice])
    assert drawn.mean() == pytest.approx(mean, abs=0.005)
    assert drawn.var() == pytest.approx(mean * (1 - mean) / (nu + 1), rel=0.1)


def test_nearest_choice():
    means = len(proposal.MEANS)
    assert proposal.choice([0.0, 0.5, 1.0], [1, 1, 1]).tolist() == [0, means // 2, means - 1]
    assert proposal.choice([0.9], [0.4]).tolist() == [proposal.UNIFORM]
    assert proposal.choice([0.0], [99]).tolist() == [means * (len(proposal.CONCENTRATIONS) - 1)]


@pytest.mark.parametrize("n_devices", [1, 2, 5])
@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_all_uniform_is_brkga_to_the_bit(n_devices, objective):
    problem = problem_of(3, 30, n_devices)
    plain = METHODS["brkga"](task_of(problem, objective), Budget(400))
    proposed = METHODS["brkga"](task_of(problem, objective, proposal=uniform(problem)), Budget(400))
    assert plain.device.tobytes() + plain.priority.tobytes() == proposed.device.tobytes() + proposed.priority.tobytes()
    assert plain.history.tolist() == proposed.history.tolist()


def test_a_proposal_that_knows_the_answer_finds_it_at_once():
    """Ten independent ops on two devices, five long ones of which must be apart from five short ones."""
    graph = cases.Graph(2)
    for i in range(10):
        graph.op([1, 100] if i < 5 else [100, 1])
    problem = graph.problem()
    affinity = proposal.choice(np.where((np.arange(10) < 5)[:, None] == [True, False], 0.95, 0.05), np.full((10, 2), 7))
    known = proposal.Proposal(affinity, np.full(10, proposal.UNIFORM))
    assert METHODS["idrs"](task_of(problem, proposal=known), Budget(1)).run.makespan == 5
    assert METHODS["random"](task_of(problem, proposal=known), Budget(1)).run.makespan > 5  # random search stays uniform
    device, _ = known.centre(problem)
    assert device.tolist() == [0] * 5 + [1] * 5


def misleading():
    """Twelve equal ops on two devices, and a proposal that puts them all on the first one."""
    graph = cases.Graph(2)
    for _ in range(12):
        graph.op([5, 5])
    affinity = proposal.choice(np.tile([0.95, 0.05], (12, 1)), np.full((12, 2), 7))
    return graph.problem(), proposal.Proposal(affinity, np.full(12, proposal.UNIFORM))


def test_mutants_are_drawn_from_the_proposal():
    """Children have their parents' keys: everything that this BRKGA ever sees comes from the proposal."""
    problem, narrow = misleading()
    search = brkga.run(task_of(problem, proposal=narrow), Budget(2000), proposal_share=1.0)
    assert search.run.makespan == 60  # all on one device: no key for the other one was ever drawn


def test_a_misleading_proposal_is_got_away_from():
    problem, narrow = misleading()
    assert METHODS["brkga"](task_of(problem, proposal=narrow), Budget(2000)).run.makespan == 30
    assert METHODS["brkga"](task_of(problem), Budget(2000)).run.makespan == 30


@pytest.mark.parametrize(("share", "proposed"), [(0.0, 0), (0.25, 10), (0.5, 20), (1.0, 40)])
def test_the_share_of_candidates_that_are_drawn_from_the_proposal(share, proposed):
    """In a first population of 40 those from the proposal have all twelve ops on one device and take 60; the mean tells how many there are."""
    problem, narrow = misleading()
    plain, mixed = (
        brkga.run(task_of(problem, proposal=p), Budget(40), population=40, elites=1, mutants=0, proposal_share=share).history[0, 1] for p in (None, narrow)
    )
    assert mixed == pytest.approx((60 * proposed + plain * (40 - proposed)) / 40, rel=0.04)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none(share):
    problem, narrow = misleading()
    with pytest.raises(ValueError, match="proposal_share"):
        brkga.run(task_of(problem, proposal=narrow), Budget(2), proposal_share=share)


def test_threads_do_not_change_what_is_drawn():
    problem = problem_of(5, 50, 3)
    rng = np.random.default_rng(0)
    some = proposal.Proposal(rng.integers(0, proposal.CHOICES, (50, 3)), rng.integers(0, proposal.CHOICES, 50))
    one, four = (METHODS["brkga"](task_of(problem, proposal=some), Budget(500, threads=threads)) for threads in (1, 4))
    assert one.priority.tobytes() == four.priority.tobytes()


def test_the_largest_op_of_a_group_decides():
    graph = cases.Graph(2)
    first = graph.op([1, 1], group=0)
    graph.tensor(first, size=10)
    second = graph.op([1, 1], group=0)
    graph.tensor(second, size=900)
    graph.op([1, 1])
    problem = graph.problem()
    assert proposal.deciders(problem)[problem.group].tolist() == [1, 1, 2]
    affinity = proposal.choice([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]], np.full((3, 2), 7))
    device, _ = proposal.Proposal(affinity, np.zeros(3, np.uint16)).centre(problem)
    assert device.tolist() == [1, 1, 0]


def test_the_centre_keeps_to_allowed_devices():
    problem = problem_of(11, 60, 4)
    rng = np.random.default_rng(1)
    device, _ = proposal.Proposal(rng.integers(0, proposal.CHOICES, (60, 4)), rng.integers(0, proposal.CHOICES, 60)).centre(problem)
    assert np.all(problem.duration[np.arange(60), device] >= 0)


def test_save_and_load(tmp_path):
    made = proposal.Proposal(np.array([[0, 224]]), np.array([7]), "by hand")
    proposal.save(made, tmp_path / "p.npz")
    again = proposal.load(tmp_path / "p.npz")
    assert (again.affinity.tolist(), again.priority.tolist(), again.name) == ([[0, 224]], [7], "by hand")


@pytest.mark.parametrize(
    ("affinity", "priority"),
    [([[225, 0]], [0]), ([[-1, 0]], [0]), ([[0.5, 0.5]], [0]), ([0, 0], [0]), ([[0, 0]], [[0]])],
)
def test_bad_proposals(affinity, priority):
    with pytest.raises(errors.InvalidArgumentError, match="of a proposal: expected"):
        proposal.Proposal(np.array(affinity), np.array(priority))


def test_a_proposal_for_another_problem():
    with pytest.raises(errors.InvalidArgumentError, match="the proposal is for 40 ops on 2 devices; the problem has 41 on 2"):
        METHODS["brkga"](task_of(problem_of(0, 41), proposal=uniform(problem_of(0, 40))), Budget(10))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((np.zeros(3, np.uint16), np.zeros((1, 2), np.float32)), "choice has 3 elements; expected"),
        ((np.full(120, 1, np.uint16), np.zeros((1, 2), np.float32)), "is 1; the table has 1 rows"),
        ((np.zeros(120, np.uint16), np.full((1, 2), 1.5, np.float32)), "expected 0 to 1"),
        ((np.zeros(120, np.uint16), np.full((1, 2), np.nan, np.float32)), "expected 0 to 1"),
        ((np.zeros(120, np.uint16), np.zeros((3, 1), np.float32)), "expected 2 or more"),
        ((np.zeros((120, 1), np.uint16), np.zeros((1, 2), np.float32)), "one dimension"),
        ((np.zeros(120, np.uint16),), "expected .choice, table."),
    ],
)
def test_the_core_refuses_what_does_not_fit(given, message):
    graph = cases.Graph(2)
    for _ in range(40):
        graph.op([1, 1])
    with pytest.raises(ValueError, match=message):
        ops.Brkga(ops.Simulator(graph.problem()), objective="runtime", proposal=given)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"cp_sat", "gp_dfs"}))  # these need optional packages
def test_who_draws_from_proposals(name):
    """What a method does not use must not change it, and what it uses must."""
    problem = problem_of(10, 200, 3)
    rng = np.random.default_rng(2)
    some = proposal.Proposal(rng.integers(0, 32, (200, 3)) + 192, rng.integers(0, 32, 200) + 192)
    with_it, without = (method(name)(task_of(problem, "peak_memory", proposal=p), Budget(1000)) for p in (some, None))
    same = with_it.device.tobytes() + with_it.priority.tobytes() == without.device.tobytes() + without.priority.tobytes()
    assert same != uses_proposals(name)

"""Tuned BRKGA: the parameters are those of the stored search, for the objective at hand."""

import json
import pathlib

import numpy as np
import pytest

from tests.ops import cases
from tf_regal import ops
from tf_regal.plans.planner import default_placement
from tf_regal.search import METHODS, Budget, Task, brkga, tuned_brkga

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/results/tune_brkga.json"

# bazel: manual (reads a file of results)


def task_of(objective="runtime", seed=0):
    problem = cases.random_problem(np.random.default_rng(21), 40, 3)
    return Task(problem, objective, default_placement(problem), seed=seed)


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_parameters_are_what_was_found(objective):
    if not RESULTS.is_file():
        pytest.skip(f"{RESULTS} is not here: the results are not in the package")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))["objectives"][objective]
    assert tuned_brkga.PARAMETERS[objective] == found["best"]


@pytest.mark.parametrize("objective", ["runtime", "peak_memory"])
def test_is_brkga_with_these_parameters(objective):
    solution = METHODS["tuned_brkga"](task_of(objective), Budget(700))
    search = ops.Brkga(task_of(objective).simulator, objective=objective, **tuned_brkga.PARAMETERS[objective])
    search.evolve(700)
    assert solution.priority.tolist() == np.asarray(search.best.priority).tolist()
    assert solution.history.tolist() == search.history.tolist()


@pytest.mark.parametrize("population", [10, 37, 100])
def test_a_run_in_steps_is_the_same_as_one_in_one_go(population):
    task = task_of()
    options = {"population": population, "elites": 3, "mutants": 2, "rho": 0.8}
    solution = brkga.run(task, Budget(555), **options)
    search = ops.Brkga(task.simulator, objective="runtime", **options)
    search.evolve(555)
    assert solution.evaluations == 555
    assert solution.history.tolist() == search.history.tolist()


def test_seconds_end_early():
    solution = brkga.run(task_of(), Budget(50_000_000, seconds=0.2), population=50, elites=10, mutants=5)
    assert 50 <= solution.evaluations < 50_000_000

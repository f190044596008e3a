"""The Python simulator of the benchmarks gives the core's figures: else its speed would say nothing."""

import hypothesis
import numpy as np
import pytest

from tests.ops import cases
from tf_regal import ops, problem
from tf_regal.bench import graphs, simulator
from tf_regal.bench.python_simulator import PythonSimulator


def assert_same(built, candidate):
    device, priority, transfer_priority = candidate
    run = ops.Simulator(built).run(device, priority, transfer_priority)
    if transfer_priority is None:
        transfer_priority = np.zeros((built.n_tensors, built.n_devices), np.float32)
    found = PythonSimulator(built).run(device.tolist(), priority.tolist(), transfer_priority.tolist())
    assert found == (run.makespan, run.peak.tolist())


@hypothesis.given(cases.random_cases())
@hypothesis.settings(max_examples=120, deadline=None, derandomize=True)
def test_random_cases(case):
    assert_same(case.problem, case.candidate)


@pytest.mark.parametrize("n_devices", [1, 2, 5])
def test_a_larger_graph(n_devices):
    built, _ = problem.build(graphs.layered(500), simulator.topology(n_devices))
    assert_same(built, simulator.random_candidate(ops.Simulator(built), built, 1))


def test_one_simulator_for_many_candidates():
    built, _ = problem.build(graphs.layered(80), simulator.topology(2))
    python, core = PythonSimulator(built), ops.Simulator(built)
    for seed in range(5):
        device, priority, transfer_priority = simulator.random_candidate(core, built, seed)
        run = core.run(device, priority, transfer_priority)
        assert python.run(device.tolist(), priority.tolist(), transfer_priority.tolist()) == (run.makespan, run.peak.tolist())

"""The order in which a pool of threads runs the ops of a device."""

import numpy as np
import pytest

from tests.ops import cases
from tf_regal.search import executor


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("seed", range(20))
def test_every_op_starts_once_after_its_inputs(seed, threads):
    problem = cases.random_problem(np.random.default_rng(seed), 30, 1)
    order = executor.thread_pool_order(problem, threads)
    assert sorted(order.tolist()) == list(range(problem.n_ops))
    place = np.argsort(order)
    for op in range(problem.n_ops):
        sources = problem.producer[problem.input_idx[problem.input_ptr[op] : problem.input_ptr[op + 1]]]
        control = problem.control_idx[problem.control_ptr[op] : problem.control_ptr[op + 1]]
        assert all(place[source] < place[op] for source in [*sources, *control])


def branches(lengths, duration=10):
    """Chains from a common root: op 0, then branch by branch."""
    graph = cases.Graph(1)
    root = graph.tensor(graph.op(1), size=1)
    for length in lengths:
        inputs = [root]
        for _ in range(length):
            inputs = [graph.tensor(graph.op(duration, inputs), size=1)]
    return graph.problem()


def test_one_thread_works_depth_first_from_the_last_that_became_ready():
    assert executor.thread_pool_order(branches([2, 2, 2]), 1).tolist() == [0, 5, 6, 3, 4, 1, 2]


def test_another_thread_takes_the_oldest():
    """Thread 0 goes on with the last branch, thread 1 steals the first; the middle one is left for whoever is ready first."""
    assert executor.thread_pool_order(branches([2, 2, 2]), 2).tolist() == [0, 5, 1, 6, 2, 3, 4]


def test_a_thread_without_work_sleeps_until_there_is_some():
    assert executor.thread_pool_order(branches([3]), 4).tolist() == [0, 1, 2, 3]
    assert executor.thread_pool_order(branches([]), 2).tolist() == [0]

"""The robust choice: of several good candidates the one that holds where costs and links are otherwise."""

import numpy as np
import pytest

from tests.ops.cases import Graph
from tf_regal.plans.planner import default_placement
from tf_regal.search import Budget, Task, method, robust
from tf_regal.search.task import make_simulator


def tight():
    """Work for two devices that exchange a tensor after each of many short ops: worth it only while the link is exactly as fast as promised."""
    graph = Graph(2, latency=0, ns_per_byte=0.9)
    left, right = graph.source(size=100, duration=100), graph.source(size=100, duration=100)
    for _ in range(20):
        left, right = graph.tensor(graph.op(100, [left, right]), size=100), graph.tensor(graph.op(100, [right]), size=100)
    graph.op(1, [left, right])
    return graph.problem()


def task_of(problem):
    return Task(problem, "runtime", default_placement(problem), seed=1)


def test_the_robust_plan_is_better_where_things_are_otherwise():
    problem = tight()
    plain = method("regal")(task_of(problem), Budget(1000))
    chosen = robust.search(method("regal"), task_of(problem), Budget(1000), 0.3)
    others = list(robust.scenarios(problem, 0.3, seed=99, count=200))

    def mean(solution):
        runs = [make_simulator(p).run(solution.device, solution.priority, solution.transfer_priority) for p in others]
        return np.mean([run.makespan for run in runs])

    assert mean(chosen) <= mean(plain)
    assert chosen.run.makespan >= plain.run.makespan  # it pays where everything is as promised
    assert chosen.evaluations <= 1000 + 12 * robust.SCENARIOS


def test_scenarios():
    problem = tight()
    some, again = (list(robust.scenarios(problem, 0.2, seed=3)) for _ in range(2))
    assert len(some) == robust.SCENARIOS
    assert all((a.duration == b.duration).all() and (a.ns_per_byte == b.ns_per_byte).all() for a, b in zip(some, again, strict=True))
    ratios = np.concatenate([(p.duration / problem.duration)[:, 0] for p in some])
    assert np.log(ratios).std() == pytest.approx(0.2, rel=0.15)
    # Devices stay as fast to each other as they are: what is uncertain is the op.
    assert all((p.duration[:, 0] == p.duration[:, 1]).all() for p in some)
    forbidden = problem.replace(duration=np.where(np.arange(problem.n_ops)[:, None] == 3, [[5, -1]], problem.duration))
    assert all((p.duration[3] >= 0).tolist() == [True, False] for p in robust.scenarios(forbidden, 0.2, seed=3))

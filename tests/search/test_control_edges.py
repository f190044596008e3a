"""Control edges that are added to a problem."""

import numpy as np

from tests.ops import cases
from tf_regal.search import Task, control_edges


def _task(graph):
    return Task(graph.problem(), "peak_memory", np.zeros(len(graph.ops), np.int32))


def test_an_edge_is_implied_by_what_leads_to_its_own_beginning_only():
    """Two ops at a time: the third waits for the first. That it needs the second, which ran beside the first, says nothing about that."""
    graph = cases.Graph(lanes=2)
    graph.op()
    second = graph.source()
    graph.op(inputs=[second])
    assert control_edges.join(_task(graph), [0, 1, 2], [0, 1, 0]).tolist() == [[0, 2]]


def test_an_edge_that_the_graph_or_another_edge_implies_is_left_out():
    graph = cases.Graph(2)
    first = graph.source()
    graph.op(inputs=[first])
    graph.op()
    assert control_edges.join(_task(graph), [0, 1, 2], [0, 0, 0]).tolist() == [[1, 2]]
    edges = np.array([[0, 2], [1, 2]], np.int32)
    assert control_edges.without_implied(_task(graph), edges, control_edges.NONE, [0, 1, 2]).tolist() == [[1, 2]]
    assert control_edges.without_implied(_task(graph), edges[:1], edges[1:], [0, 1, 2]).tolist() == []
    assert control_edges.without_implied(_task(graph), edges[:1], control_edges.NONE, [0, 1, 2]).tolist() == [[0, 2]]


def test_held_ops_follow_at_a_distance():
    graph = cases.Graph(2)
    for _ in range(5):
        graph.op()
    order = np.array([4, 2, 0, 3, 1])
    assert control_edges.hold_back(_task(graph), order, 2).tolist() == [[4, 0], [2, 3], [0, 1]]
    assert len(control_edges.hold_back(_task(graph), order, 0)) == 0


def test_with_edges_adds_to_what_there_is():
    graph = cases.Graph()
    graph.op()
    graph.op(after=[0])
    graph.op()
    problem = control_edges.with_edges(graph.problem(), np.array([[0, 1], [1, 2], [0, 2]]))
    assert [problem.control_inputs(op).tolist() for op in range(3)] == [[], [0], [0, 1]]
    assert control_edges.with_edges(problem, control_edges.NONE) is problem

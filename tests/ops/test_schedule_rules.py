"""Each rule of docs/simulator.md about time, on cases small enough to be worked out by hand."""

import numpy as np
import pytest

from .cases import LIFETIME_PERSISTENT, Graph

# Ready ops and the order in which they start.


def test_nothing_happens_without_ops(run):
    result = run(Graph(devices=2))
    assert (result.makespan, result.peak, result.transfer_bytes, result.feasible) == (0, [0, 0], 0, True)


def test_op_without_inputs_is_ready_at_time_0(run):
    graph = Graph(devices=2)
    graph.op(3), graph.op(5)
    result = run(graph, [0, 1])
    assert (result.start, result.end, result.makespan) == ([0, 0], [3, 5], 5)


def test_duration_is_that_of_the_ops_device(run):
    graph = Graph(devices=2)
    graph.op([3, 8])
    assert [run(graph, [0]).makespan, run(graph, [1]).makespan] == [3, 8]


def test_op_starts_when_the_last_of_its_inputs_and_predecessors_is_there(run):
    graph = Graph(lanes=4)
    first = graph.source(duration=2)
    second = graph.source(duration=7)
    control = graph.op(5)
    graph.op(1, inputs=[first, second], after=[control])
    assert run(graph).start == [0, 0, 0, 7]


def test_predecessor_on_the_same_device_costs_nothing(run):
    graph = Graph(latency=9)
    graph.op(4, after=[1]), graph.op(2)
    assert run(graph).start == [2, 0]


def test_lanes_are_the_ops_that_a_device_runs_at_once(run):
    graph = Graph(devices=2, lanes=[2, 1])
    for _ in range(5):
        graph.op(10)
    assert run(graph, [0, 0, 0, 1, 1]).start == [0, 0, 10, 0, 10]


def test_highest_priority_starts_first_and_ties_go_to_the_lower_index(run):
    graph = Graph()
    for _ in range(4):
        graph.op(1)
    assert run(graph, priority=[-1, 0, 2, 0]).start_order == [2, 1, 3, 0]


def test_priorities_are_float32(run):
    graph = Graph()
    graph.op(), graph.op()
    assert run(graph, priority=[1.0, 1.0 + 1e-9]).start_order == [0, 1]
    assert run(graph, priority=[1.0, 1.0 + 1e-6]).start_order == [1, 0]


def test_running_op_is_not_interrupted_by_a_higher_priority(run):
    graph = Graph(devices=2)
    graph.op(10), graph.op(5), graph.op(1, after=[1])
    assert run(graph, [0, 1, 0], [0, 0, 9]).start == [0, 0, 10]


def test_fifo_and_lifo_ignore_priority_and_join_in_rising_index(run):
    graph = Graph()
    for _ in range(3):
        graph.op()
    assert run(graph, priority=[0, 9, 5], discipline="fifo").start_order == [0, 1, 2]
    assert run(graph, priority=[0, 9, 5], discipline="lifo").start_order == [2, 1, 0]


@pytest.mark.parametrize("discipline, order", [("fifo", [0, 3, 4, 2, 1]), ("lifo", [0, 3, 4, 1, 2])])
def test_fifo_and_lifo_go_by_the_time_of_becoming_ready(run, discipline, order):
    graph = Graph(devices=2, lanes=[1, 2])
    graph.op(5)  # keeps device 0 busy until both others are ready: op 2 at 1 ns, op 1 at 2 ns
    graph.op(1, after=[3]), graph.op(1, after=[4])
    graph.op(2), graph.op(1)
    result = run(graph, [0, 0, 0, 1, 1], discipline=discipline)
    assert sorted(result.start_order[:3]) == [0, 3, 4] and result.start_order[3:] == order[3:]


@pytest.mark.parametrize("discipline, start", [("fifo", [0, 1, 0]), ("lifo", [1, 1, 0])])
def test_op_that_a_later_batch_of_the_same_time_makes_ready_joins_later(run, discipline, start):
    graph = Graph()
    graph.op(0), graph.op(1, after=[0]), graph.op(1)
    assert run(graph, discipline=discipline).start == start


@pytest.mark.parametrize("discipline, order", [("fifo", [0, 1, 2]), ("lifo", [0, 2, 1])])
def test_signal_of_no_time_arrives_in_the_next_batch_together_with_transfers_of_no_time(run, discipline, order):
    graph = Graph(devices=2)
    graph.op(1, inputs=[graph.source()])
    graph.op(1, after=[0])
    # Step 3 of the page: both are events of this time, left for the next batch. So both ops join in rising index.
    assert run(graph, [0, 1, 1], discipline=discipline).start_order == order


@pytest.mark.parametrize("by_signal, by_tensor", [(2, 3), (3, 2)])
@pytest.mark.parametrize("discipline", ["fifo", "lifo", "priority"])
def test_all_events_of_a_time_are_one_batch(run, by_signal, by_tensor, discipline):
    # At 7 ns op 1 ends, which makes one op ready, and a transfer ends, which makes the other ready.
    graph = Graph(devices=2, latency=2)
    graph.op(5), graph.op(7)
    tensor = graph.tensor(0)
    for op in (2, 3):
        graph.op(1, inputs=[tensor] if op == by_tensor else [], after=[1] if op == by_signal else [])
    order = run(graph, [1, 0, 0, 0], [0, 0, 1, 2], discipline=discipline).start_order
    assert order == [1, 0] + ([2, 3] if discipline == "fifo" else [3, 2])


def test_ops_of_a_batch_start_device_by_device(run):
    graph = Graph(devices=2, lanes=2)
    for _ in range(4):
        graph.op()
    assert run(graph, [1, 0, 1, 0], [9, 0, 0, 1]).start_order == [3, 1, 0, 2]


# Zero durations.


def test_successor_of_an_op_without_duration_competes_at_the_same_time(run):
    graph = Graph()
    graph.op(0), graph.op(5), graph.op(2, after=[0])
    result = run(graph, priority=[3, 1, 2])
    assert (result.start, result.makespan) == ([0, 2, 0], 7)


def test_op_without_duration_keeps_its_lane_until_the_batch_of_starts_is_over(run):
    graph = Graph(lanes=2)
    graph.op(0), graph.op(5), graph.op(5), graph.op(2, after=[0])
    assert run(graph, priority=[3, 2, 1, 9]).start == [0, 0, 2, 0]


def test_chain_of_ops_without_duration_takes_no_time(run):
    graph = Graph(devices=2)
    first = graph.source(duration=0)
    second = graph.tensor(graph.op(0, inputs=[first]))
    graph.op(0, inputs=[second])
    result = run(graph, [0, 1, 0])
    assert (result.start, result.makespan) == ([0, 0, 0], 0)
    assert result.transfers == [(0, 0, 1, 0, 0), (1, 1, 0, 0, 0)]


# Transfers.


def test_transfer_takes_latency_and_bytes(run):
    graph = Graph(devices=2, latency=5, ns_per_byte=0.5)
    graph.op(2, inputs=[graph.source(size=3)])
    result = run(graph, [0, 1])
    assert result.transfers == [(0, 0, 1, 1, 8)]  # 5 + ceil(1.5)
    assert (result.start, result.makespan, result.transfer_bytes) == ([0, 8], 10, 3)


def test_transfer_time_is_computed_in_float64(run):
    graph = Graph(devices=2, ns_per_byte=1.1)
    graph.op(1, inputs=[graph.source(size=50)])
    assert run(graph, [0, 1]).transfers == [(0, 0, 1, 1, 57)]  # 50 · 1.1 is a little more than 55 in float64: 56 ns


def test_link_costs_are_those_from_row_to_column(run):
    graph = Graph(devices=2, latency=[[0, 3], [7, 0]], ns_per_byte=[[0, 1], [2, 0]])
    graph.op(1, inputs=[graph.source(size=10)])
    assert [run(graph, device).start[1] for device in ([0, 1], [1, 0])] == [1 + 3 + 10, 1 + 7 + 20]


def test_transfer_happens_once_per_destination(run):
    graph = Graph(devices=3, latency=1)
    tensor = graph.source(size=10)
    for _ in range(4):
        graph.op(1, inputs=[tensor])
    result = run(graph, [0, 0, 1, 1, 2])
    assert result.transfers == [(0, 0, 1, 1, 2), (0, 0, 2, 1, 2)]
    assert result.transfer_bytes == 20
    assert result.start == [0, 1, 2, 3, 2]


def test_tensor_without_remote_consumer_is_not_sent(run):
    graph = Graph(devices=2)
    graph.op(1, inputs=[graph.source()])
    graph.op()
    assert run(graph, [0, 0, 1]).transfers == []


def test_persistent_tensor_is_sent_like_others(run):
    graph = Graph(devices=2, latency=3)
    graph.op(1, inputs=[graph.source(size=4, lifetime=LIFETIME_PERSISTENT)])
    result = run(graph, [0, 1])
    assert (result.transfers, result.transfer_bytes) == ([(0, 0, 1, 1, 4)], 4)


def _two_outputs(devices=2, **links):
    """Op 0 outputs tensors 0 and 1 of 4 bytes at 1 ns; each other device has an op that takes both."""
    graph = Graph(devices, **links)
    graph.op()
    tensors = [graph.tensor(0, 4), graph.tensor(0, 4)]
    for _ in range(1, devices):
        graph.op(1, inputs=tensors)
    return graph


def test_link_carries_one_transfer_at_a_time_lower_tensor_first(run):
    result = run(_two_outputs(latency=1, ns_per_byte=1.0), [0, 1])
    assert result.transfers == [(0, 0, 1, 1, 6), (1, 0, 1, 6, 11)]


def test_highest_transfer_priority_goes_first(run):
    result = run(_two_outputs(latency=1), [0, 1], transfer_priority=[[0, 0], [0, 1]])
    assert result.transfers == [(1, 0, 1, 1, 2), (0, 0, 1, 2, 3)]


def test_transfer_priority_is_by_destination(run):
    result = run(_two_outputs(devices=3, latency=1), [0, 1, 2], transfer_priority=[[0, 1, 0], [0, 0, 1]])
    assert result.transfers == [(0, 0, 1, 1, 2), (1, 0, 2, 1, 2), (1, 0, 1, 2, 3), (0, 0, 2, 2, 3)]


def test_running_transfer_is_not_interrupted(run):
    graph = Graph(devices=2, latency=10)
    slow, urgent = graph.source(), graph.source()
    graph.op(1, inputs=[slow]), graph.op(1, inputs=[urgent])
    result = run(graph, [0, 0, 1, 1], transfer_priority=[[0, 0], [9, 9]])
    assert result.transfers == [(0, 0, 1, 1, 11), (1, 0, 1, 11, 21)]


def test_directions_of_a_pair_are_two_links(run):
    graph = Graph(devices=2, latency=10)
    there, back = graph.source(), graph.source()
    graph.op(1, inputs=[there]), graph.op(1, inputs=[back])
    assert run(graph, [0, 1, 1, 0]).transfers == [(0, 0, 1, 1, 11), (1, 1, 0, 1, 11)]


def test_transfer_does_not_occupy_lanes(run):
    graph = Graph(devices=2, latency=10)
    graph.op(1, inputs=[graph.source()])
    graph.op(4), graph.op(4)
    result = run(graph, [0, 1, 0, 1], [1, 1, 0, 0])
    assert result.start == [0, 11, 1, 0]


def test_transfer_of_no_time_arrives_before_ops_start(run):
    graph = Graph(devices=2)
    tensor = graph.source(duration=4)
    graph.op(4), graph.op(1, after=[1]), graph.op(1, inputs=[tensor])
    assert run(graph, [0, 1, 1, 1], [0, 0, 1, 2]).start == [0, 0, 5, 4]


def test_transfers_of_no_time_follow_each_other_before_ops_start(run):
    graph = _two_outputs()
    graph.op(1, after=[3]), graph.op(1)
    result = run(graph, [0, 1, 1, 1], [0, 2, 1, 0])
    assert result.transfers == [(0, 0, 1, 1, 1), (1, 0, 1, 1, 1)]
    assert result.start == [0, 1, 2, 0]


# Control edges.


def test_control_edge_across_devices_costs_one_latency(run):
    graph = Graph(devices=2, latency=[[0, 3], [7, 0]], ns_per_byte=1.0)
    graph.op(2), graph.op(1, after=[0])
    assert [run(graph, device).start[1] for device in ([0, 1], [1, 0])] == [2 + 3, 2 + 7]
    assert run(graph, [0, 1]).transfers == []


def test_signal_does_not_wait_for_the_link(run):
    graph = Graph(devices=2, latency=2, ns_per_byte=1.0)
    graph.op(1, inputs=[graph.source(size=100)])
    graph.op(1, after=[0]), graph.op(1, after=[0])
    result = run(graph, [0, 1, 1, 1])
    assert (result.transfers, result.start) == ([(0, 0, 1, 1, 103)], [0, 103, 3, 4])


def test_signal_of_no_time_arrives_before_ops_start(run):
    graph = Graph(devices=2)
    graph.op(4), graph.op(4), graph.op(1, after=[1]), graph.op(1, after=[0])
    assert run(graph, [0, 1, 1, 1], [0, 0, 1, 2]).start == [0, 0, 5, 4]


# Blocking transfers.


def _transfer_beside_work(**options):
    """Op 0 on device 0 feeds op 1 on device 1; op 2 is other work of device 0, op 3 of device 1."""
    graph = Graph(devices=2, latency=4, **options)
    graph.op(1, inputs=[graph.source()])
    graph.op(10), graph.op(3)
    return graph, [0, 1, 0, 1], [1, 1, 0, 0]


def test_blocking_transfer_waits_for_and_takes_a_lane_of_both_devices(run):
    graph, *candidate = _transfer_beside_work(blocking=True)
    result = run(graph, *candidate)
    assert result.transfers == [(0, 0, 1, 3, 7)]  # op 3 runs until 3 ns
    assert result.start == [0, 7, 7, 0]  # op 2 has to wait although device 0 is idle from 1 ns
    graph, *candidate = _transfer_beside_work()
    result = run(graph, *candidate)
    assert (result.transfers, result.start) == ([(0, 0, 1, 1, 5)], [0, 5, 1, 0])


def test_blocking_transfer_leaves_the_other_lanes(run):
    graph, *candidate = _transfer_beside_work(blocking=True, lanes=2)
    graph.op(1, after=[0])
    result = run(graph, candidate[0] + [0], candidate[1] + [0])
    assert result.transfers == [(0, 0, 1, 1, 5)]
    assert result.start == [0, 5, 0, 0, 5]  # op 2 has one lane of device 0 from the start, the transfer the other


def test_blocking_transfers_go_in_the_order_of_links(run):
    result = run(_two_outputs(devices=3, latency=1, blocking=True), [0, 1, 2],
                 transfer_priority=np.array([[0, 0, 9], [0, 1, 9]]))
    # The one lane of device 0 serves one link at a time, whatever the priorities of the other.
    assert result.transfers == [(1, 0, 1, 1, 2), (0, 0, 1, 2, 3), (0, 0, 2, 3, 4), (1, 0, 2, 4, 5)]
    result = run(_two_outputs(devices=3, latency=1, blocking=True, lanes=[2, 1, 1]), [0, 1, 2])
    assert result.transfers == [(0, 0, 1, 1, 2), (0, 0, 2, 1, 2), (1, 0, 1, 2, 3), (1, 0, 2, 2, 3)]


def test_no_op_starts_on_the_destination_of_a_queued_blocking_transfer(run):
    graph = Graph(devices=3, lanes=[1, 1, 2], latency=4, blocking=True)
    tensor = graph.source()
    graph.op(1, inputs=[tensor]), graph.op(1, inputs=[tensor])
    graph.op(2), graph.op(1, after=[3])
    result = run(graph, [0, 1, 2, 2, 2])
    assert result.transfers == [(0, 0, 1, 1, 5), (0, 0, 2, 5, 9)]
    assert result.start == [0, 5, 9, 0, 5]  # op 4 is ready at 2 ns, and device 2 idle

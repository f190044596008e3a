"""Each rule of docs/simulator.md about memory, on cases small enough to be worked out by hand."""

import pytest

from .cases import LIFETIME_OUTPUT, LIFETIME_PERSISTENT, Graph


def _later(graph, after, size):
    """An op with one output without consumers, so that the peak shows what else is alive then. Returns the op."""
    op = graph.op(1, after=[after])
    graph.tensor(op, size)
    return op


# Life of a buffer.


def test_peak_of_a_chain(run):
    graph = Graph()
    first = graph.source(size=10)
    second = graph.tensor(graph.op(1, inputs=[first]), 20)
    graph.tensor(graph.op(1, inputs=[second]), 5)
    assert run(graph).peak == [30]


def test_output_without_consumers_lives_while_its_op_runs(run):
    graph = Graph()
    _later(graph, graph.source(size=6), 5)
    assert run(graph).peak == [6]


def test_tensor_lives_until_its_last_consumer_ends(run):
    graph = Graph()
    tensor = graph.source(size=6)
    between = _later(graph, graph.op(1, inputs=[tensor]), 50)
    last = graph.op(1, inputs=[tensor], after=[between])
    _later(graph, last, 55)
    assert run(graph).peak == [56]  # 6 + 50, then 55 alone


def test_kept_tensor_lives_to_the_end(run):
    graph = Graph()
    graph.op(1, inputs=[graph.source(size=6, lifetime=LIFETIME_OUTPUT)])
    _later(graph, 1, 5)
    assert run(graph).peak == [11]


def test_frees_of_a_batch_come_before_its_starts(run):
    graph = Graph(lanes=2)
    graph.source(size=8, duration=4), graph.source(size=8, duration=4)
    _later(graph, 0, 8), _later(graph, 1, 8)
    assert run(graph).peak == [16]


def test_peak_is_sampled_after_all_starts_of_a_batch(run):
    graph = Graph(lanes=3)
    graph.source(size=5, duration=0), graph.source(size=7, duration=0)
    assert run(graph).peak == [12]


def test_peak_counts_devices_apart(run):
    graph = Graph(devices=2)
    graph.source(size=5), graph.source(size=7)
    assert run(graph, [1, 0]).peak == [7, 5]


# Scratch and persistent memory.


def test_scratch_lives_with_the_outputs_while_the_op_runs(run):
    graph = Graph(devices=2)
    graph.op(1, scratch=[10, 3])
    graph.tensor(0, 4)
    graph.op(1, after=[0], scratch=[9, 2])
    assert [run(graph, [0, 0]).peak, run(graph, [1, 1]).peak] == [[14, 0], [0, 7]]


def test_persistent_memory_is_there_from_the_beginning_on_the_ops_device(run):
    graph = Graph(devices=2)
    graph.op(1, persistent=7)
    graph.op(1, persistent=4, after=[0])
    assert [run(graph, [0, 1]).peak, run(graph, [1, 1]).peak] == [[7, 4], [0, 11]]
    graph.tensor(1, 2)
    assert run(graph, [0, 0]).peak == [13, 0]


def test_persistent_tensor_is_paid_for_by_its_op(run):
    graph = Graph()
    graph.op(1, persistent=7)
    graph.op(1, inputs=[graph.tensor(0, 100, lifetime=LIFETIME_PERSISTENT)])
    assert run(graph).peak == [7]
    _later(graph, 1, 30)  # nothing was freed with the last use of the tensor
    assert run(graph).peak == [37]


def test_copy_of_a_persistent_tensor_is_a_buffer(run):
    graph = Graph(devices=2)
    graph.op(1, persistent=7)
    graph.op(1, inputs=[graph.tensor(0, 100, lifetime=LIFETIME_PERSISTENT)])
    _later(graph, 1, 60)  # after the copy is freed
    assert run(graph, [0, 1, 1]).peak == [7, 100]


def _view_of_persistent():
    """Op 1 makes a view of the persistent tensor of op 0; op 3 takes it after op 2 has made 5 bytes."""
    graph = Graph(devices=2)
    graph.op(1, persistent=7)
    view = graph.tensor(graph.op(1, inputs=[graph.tensor(0, 100, lifetime=LIFETIME_PERSISTENT)]), 100, view=0)
    graph.op(1, inputs=[view], after=[_later(graph, 1, 5)])
    return graph


def test_view_of_a_persistent_tensor_is_persistent_on_its_producers_device(run):
    assert run(_view_of_persistent(), [0, 0, 0, 0]).peak == [12, 0]


def test_view_of_a_copy_of_a_persistent_tensor_holds_the_copy(run):
    assert run(_view_of_persistent(), [0, 1, 1, 1]).peak == [7, 105]


def test_persistent_buffer_is_never_reused(run):
    graph = _view_of_persistent()
    graph.tensor(1, 100, reuse=[0])
    assert run(graph).peak == [107, 0]
    graph = _view_of_persistent()
    graph.tensor(3, 100, reuse=[1])
    assert run(graph).peak == [107, 0]


# Transfers.


def _sent(latency=2, size=6, **tensor):
    """Op 0 on device 0 (until 1 ns) sends 6 bytes to op 1 on device 1 (from 3 to 4 ns)."""
    graph = Graph(devices=2, latency=latency)
    graph.op(1, inputs=[graph.source(size, **tensor)])
    return graph


def test_copy_on_the_receiving_device_is_counted(run):
    graph = _sent()
    graph.tensor(1, 10)
    assert run(graph, [0, 1]).peak == [6, 16]


def test_copy_is_allocated_when_the_transfer_starts(run):
    graph = _sent()
    graph.tensor(graph.op(2), 5)  # ends at 2 ns, before the copy is complete
    assert run(graph, [0, 1, 1]).peak == [6, 11]


def test_copy_is_freed_when_its_last_consumer_there_ends(run):
    graph = _sent()
    between = _later(graph, 1, 5)
    graph.op(1, inputs=[0], after=[between])
    _later(graph, 3, 10)
    assert run(graph, [0, 1, 1, 1, 1]).peak == [6, 11]


@pytest.mark.parametrize("wait, peak", [(1, 11), (2, 6)])
def test_source_lives_until_its_transfer_ends(run, wait, peak):
    graph = _sent()
    _later(graph, graph.op(wait, after=[0]), 5)  # starts at 2 ns, or with the end of the transfer at 3 ns
    assert run(graph, [0, 1, 0, 0]).peak == [peak, 6]


def test_source_lives_until_the_transfers_to_all_destinations_end(run):
    graph = Graph(devices=3, latency=[[0, 1, 5], [0, 0, 0], [0, 0, 0]])
    graph.op(1, inputs=[graph.source(6)]), graph.op(1, inputs=[0])
    _later(graph, graph.op(3, after=[0]), 5)
    assert run(graph, [0, 1, 2, 0, 0]).peak == [11, 6, 6]


def test_only_the_original_is_kept_not_the_copies(run):
    graph = _sent(lifetime=LIFETIME_OUTPUT)
    _later(graph, 1, 5), _later(graph, 1, 5)
    assert run(graph, [0, 1, 1, 0]).peak == [11, 6]


def test_transfer_of_no_time_counts_for_the_peak(run):
    graph = _sent(latency=0)
    graph.ops[1]["duration"] = [0, 0]
    assert run(graph, [0, 1]).peak == [6, 6]


# Views.


def _viewed(view_size=8):
    """Op 1 makes a view of the 8 bytes of op 0; op 3 takes it after op 2 has made 5 bytes."""
    graph = Graph(devices=2, latency=4)
    view = graph.tensor(graph.op(1, inputs=[graph.source(8)]), view_size, view=0)
    graph.op(1, inputs=[view], after=[_later(graph, 1, 5)])
    return graph


@pytest.mark.parametrize("view_size", [3, 8, 100])
def test_view_allocates_nothing_and_keeps_the_viewed_buffer(run, view_size):
    graph = _viewed(view_size)
    _later(graph, 3, 12)  # the buffer is freed with the view
    assert run(graph).peak == [13, 0]


def test_chain_of_views_keeps_the_first_buffer(run):
    graph = _viewed()
    outer = graph.tensor(3, 8, view=1)
    graph.op(1, inputs=[outer], after=[_later(graph, 3, 9)])
    assert run(graph).peak == [17, 0]


def test_kept_view_keeps_the_viewed_buffer(run):
    graph = _viewed()
    graph.tensors[1]["lifetime"] = LIFETIME_OUTPUT
    _later(graph, 3, 9)
    assert run(graph).peak == [17, 0]


def test_sent_view_has_a_buffer_of_its_own_size_there_and_keeps_the_viewed_until_sent(run):
    result = run(_viewed(view_size=3), [0, 0, 0, 1])  # the transfer runs from 2 to 6 ns, op 2 from 2 to 3 ns
    assert (result.peak, result.transfer_bytes) == ([13, 3], 3)


def test_view_made_on_another_device_keeps_the_copy(run):
    assert run(_viewed(), [0, 1, 1, 1]).peak == [8, 13]


def test_view_rule_comes_before_reuse(run):
    graph = Graph()
    viewed, other = graph.source(8), graph.source(4)
    output = graph.tensor(graph.op(1, inputs=[viewed, other]), 4, view=viewed, reuse=[other])
    graph.op(1, inputs=[output], after=[_later(graph, 2, 20)])
    assert run(graph).peak == [28]  # the viewed 8 bytes, not the other 4, are alive beside the 20


# In-place reuse.


def _in_place(size=8, latency=0, **tensor):
    """Op 1 takes the 8 bytes of op 0 (tensor 0), and its output (tensor 1) may take over their buffer."""
    graph = Graph(devices=2, latency=latency)
    graph.tensor(graph.op(1, inputs=[graph.source(8, **tensor)]), size, reuse=[0])
    return graph


def test_output_takes_over_the_buffer_of_an_input(run):
    assert run(_in_place()).peak == [8, 0]


def test_taken_over_buffer_lives_as_long_as_the_output(run):
    graph = _in_place()
    graph.op(1, inputs=[1], after=[_later(graph, 1, 5)])
    _later(graph, 3, 12)
    assert run(graph).peak == [13, 0]


def test_buffer_is_taken_over_again_and_again(run):
    graph = _in_place()
    graph.tensor(graph.op(1, inputs=[1]), 8, reuse=[1])
    assert run(graph).peak == [8, 0]


@pytest.mark.parametrize("size", [7, 9])
def test_reuse_needs_the_same_size(run, size):
    assert run(_in_place(size)).peak == [8 + size, 0]


def test_reuse_waits_for_no_other_consumer(run):
    graph = _in_place()
    graph.op(1, inputs=[0])
    assert run(graph, priority=[0, 1, 0]).peak == [16, 0]
    assert run(graph, priority=[0, 0, 1]).peak == [8, 0]  # the other consumer has ended before


def test_kept_input_is_not_reused(run):
    assert run(_in_place(lifetime=LIFETIME_OUTPUT)).peak == [16, 0]


@pytest.mark.parametrize("wait, peak", [(3, 16), (4, 8)])
def test_input_that_is_still_being_sent_is_not_reused(run, wait, peak):
    graph = _in_place(latency=4)
    graph.op(1, inputs=[0])
    graph.op(wait, after=[0])
    graph.ops[1]["control"] = [3]  # op 1 starts before, or with, the end of the transfer at 5 ns
    assert run(graph, [0, 0, 1, 0]).peak == [peak, 8]


def test_received_copy_is_reused(run):
    assert run(_in_place(), [0, 1]).peak == [8, 8]


def test_input_with_a_living_view_is_not_reused(run):
    graph = Graph()
    tensor = graph.source(8)
    view = graph.tensor(graph.op(1, inputs=[tensor]), 8, view=tensor)
    graph.tensor(graph.op(1, inputs=[tensor], after=[1]), 8, reuse=[tensor])
    graph.op(1, inputs=[view], after=[2])
    assert run(graph).peak == [16]


@pytest.mark.parametrize("size, peak", [(8, 8), (3, 11)])
def test_reuse_of_a_view_goes_by_the_allocated_size(run, size, peak):
    graph = Graph()
    tensor = graph.source(8)
    view = graph.tensor(graph.op(1, inputs=[tensor]), 3, view=tensor)
    graph.tensor(graph.op(1, inputs=[view]), size, reuse=[view])
    assert run(graph).peak == [peak]


def test_buffer_of_two_inputs_is_not_reused(run):
    graph = Graph()
    tensor = graph.source(8)
    view = graph.tensor(graph.op(1, inputs=[tensor]), 8, view=tensor)
    graph.tensor(graph.op(1, inputs=[tensor, view]), 8, reuse=[tensor, view])
    assert run(graph).peak == [16]


def test_earlier_view_of_the_same_op_prevents_reuse(run):
    graph = Graph()
    tensor = graph.source(8)
    graph.op(1, inputs=[tensor])
    graph.tensor(1, 8, view=tensor), graph.tensor(1, 8, reuse=[tensor])
    assert run(graph).peak == [16]


def _two_inputs(first_reuse, second_reuse, second_size=8):
    """Op 2 takes tensors 0 and 1 of 8 bytes and has two outputs."""
    graph = Graph()
    graph.op(1, inputs=[graph.source(8), graph.source(8)])
    graph.tensor(2, 8, reuse=first_reuse), graph.tensor(2, second_size, reuse=second_reuse)
    return graph


@pytest.mark.parametrize("first, second, peak", [
    ([0], [1], 16),
    ([0], [0], 24),  # a buffer is taken over once
    ([0, 1], [0], 24),  # the first output takes its first choice
    ([1, 0], [0], 16),
    ([0], [0, 1], 16),  # outputs choose in rising index, and the next choice is used if the first is gone
])
def test_reuse_is_chosen_in_order(run, first, second, peak):
    assert run(_two_inputs(first, second)).peak == [peak]


# Feasible or not.


@pytest.mark.parametrize("capacity, feasible", [([6, 16], True), ([5, 16], False), ([6, 15], False), ([99, 99], True)])
def test_feasible_if_no_peak_exceeds_the_capacity_of_its_device(run, capacity, feasible):
    graph = _sent()
    graph.tensor(1, 10)
    graph.capacity = capacity
    assert run(graph, [0, 1]).feasible is feasible

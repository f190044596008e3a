"""The lower bounds of docs/simulator.md, by hand."""

import pytest

from . import core
from .cases import LIFETIME_OUTPUT, LIFETIME_PERSISTENT, Graph


def _bounds(simulator, graph):
    return simulator.bounds(graph.problem())


def test_no_ops(simulator):
    assert _bounds(simulator, Graph(devices=3)) == (0, 0)


def test_critical_path_takes_each_op_on_its_fastest_device_and_transfers_free(simulator):
    graph = Graph(devices=3, lanes=4, latency=100)
    tensor = graph.source(duration=[5, 3, -1], size=0)
    graph.op([-1, 9, 4], inputs=[tensor])
    graph.op(6, after=[1])
    graph.op(8)
    assert _bounds(simulator, graph)[0] == 3 + 4 + 6


def test_work_is_divided_by_all_lanes_rounded_up(simulator):
    graph = Graph(devices=2, lanes=[1, 2])
    for _ in range(8):
        graph.op([5, 2])
    assert _bounds(simulator, graph)[0] == 6  # 16 / 3


def _modules(simulator, *widths):
    """The bound of modules one after the other on two devices: a split, as many ops of 10 ns side by side as its width says, a join."""
    graph = Graph(devices=2)
    last = []
    for width in widths:
        split = graph.source(1, duration=1) if not last else graph.tensor(graph.op(1, inputs=last), 1)
        last = [graph.tensor(graph.op(10, inputs=[split]), 1) for _ in range(width)]
    graph.op(1, inputs=last)
    return _bounds(simulator, graph)[0]


def test_what_an_op_waits_for_is_divided_by_the_lanes_before_it_starts(simulator):
    """The critical path alone is 1 + 10 per module and 1, all the work divided by two devices is 6 and 31, or 43 with both modules."""
    assert _modules(simulator, 6) == 1 + 30 + 1
    assert _modules(simulator, 6, 1) == 1 + 30 + 1 + 10 + 1  # 36.5 of work, critical path 23
    assert _modules(simulator, 6, 1, 5) == 1 + 30 + 1 + 10 + 1 + 25 + 1


def test_what_comes_after_an_op_is_divided_by_the_lanes_too(simulator):
    """A chain, then six ops side by side without a join; all work divided by two devices is 45."""
    graph = Graph(devices=2)
    first = graph.source(1, duration=30)
    for _ in range(6):
        graph.op(10, inputs=[first])
    assert _bounds(simulator, graph)[0] == 30 + 30


def test_work_that_need_not_be_done_before_an_op_does_not_delay_it(simulator):
    graph = Graph(devices=2)
    graph.op(10, after=[graph.op(1), graph.op(1)])
    for _ in range(4):
        graph.op(1)
    assert _bounds(simulator, graph)[0] == 11


def test_of_a_large_graph_only_so_much_of_what_ops_wait_for_is_looked_at():
    """Three times five thousand ops side by side. All of it would give 3 * 2,500 ns and 2 for the joins; what is left out may only make the bound lower."""
    graph = Graph(devices=2)
    joins = []
    for _ in range(3):
        side_by_side = [graph.op(1, after=joins[-1:]) for _ in range(5000)]
        joins.append(graph.op(1, after=side_by_side))
    bound = core.bounds(graph.problem())[0]
    assert 2500 + 2 * 500 < bound < 7503
    graph.op(100_000, after=joins[-1:])
    assert bound + 100_000 - 2500 <= core.bounds(graph.problem())[0] <= 107_503


def _working_set():
    """Op 3 takes two buffers of 10 and 20 bytes (one of them twice), makes 4 bytes and needs 2 of scratch."""
    graph = Graph()
    ten, twenty = graph.source(10), graph.source(20)
    view = graph.tensor(graph.op(1, inputs=[ten]), 10, view=ten)
    graph.op(1, inputs=[ten, twenty, view], scratch=2)
    graph.tensor(3, 4)
    graph.tensor(3, 20, reuse=[twenty])
    graph.tensor(3, 10, view=ten)
    return graph


def test_peak_is_the_largest_working_set_of_an_op(simulator):
    assert _bounds(simulator, _working_set())[1] == 10 + 20 + 4 + 2


def test_peak_on_one_device_includes_all_persistent_memory(simulator):
    graph = _working_set()
    graph.op(1, persistent=1000)
    assert _bounds(simulator, graph)[1] == 1036


def test_persistent_inputs_and_outputs_are_not_counted_again(simulator):
    graph = Graph()
    graph.op(1, persistent=7)
    tensor = graph.tensor(0, 7, lifetime=LIFETIME_PERSISTENT)
    view = graph.tensor(graph.op(1, inputs=[tensor]), 7, view=tensor)
    graph.tensor(graph.op(1, inputs=[tensor, view]), 3)
    assert _bounds(simulator, graph)[1] == 10


@pytest.mark.parametrize("holders, bound", [(9, 14), (15, 21), (16, 22)])
def test_peak_on_several_devices_is_the_larger_of_working_set_and_share(simulator, holders, bound):
    graph = Graph(devices=5)
    graph.op(1, inputs=[graph.source(10)], scratch=[4] * graph.devices)
    for _ in range(holders):
        graph.op(1, persistent=6)
    assert _bounds(simulator, graph)[1] == bound


def test_peak_on_several_devices_counts_what_the_group_of_an_op_holds(simulator):
    graph = Graph(devices=2)
    first, second = graph.op(1, persistent=7, group=0), graph.op(1, persistent=5, group=1)
    graph.op(1, inputs=[graph.source(10)], scratch=[4, 4], group=0)
    assert (first, second) == (0, 1)
    assert _bounds(simulator, graph)[1] == 10 + 4 + 7


def test_peak_on_several_devices_counts_what_may_only_be_on_one_of_them(simulator):
    graph = Graph(devices=2)
    for _ in range(3):
        graph.op([1, -1], persistent=10)
    graph.op([-1, 1], persistent=4)
    assert _bounds(simulator, graph)[1] == 30
    graph.op([1, -1], inputs=[graph.source(7)], scratch=[2, 0])
    assert _bounds(simulator, graph)[1] == 30 + 7 + 2


def test_an_op_that_may_run_beside_less_is_taken_to_run_there(simulator):
    graph = Graph(devices=2)
    graph.op([1, -1], persistent=10)
    graph.op([-1, 1], persistent=4)
    graph.op(1, inputs=[graph.source(7)], scratch=[2, 2])
    assert _bounds(simulator, graph)[1] == 4 + 7 + 2


def test_scratch_is_the_smallest_of_the_allowed_devices(simulator):
    graph = Graph(devices=3)
    graph.op([1, 1, -1], scratch=[8, 5, 2])
    assert _bounds(simulator, graph)[1] == 5


@pytest.mark.parametrize("devices, bound", [(1, 1200), (2, 203)])
def test_with_other_devices_any_tensor_of_a_chain_of_views_may_be_the_one_that_was_sent(simulator, devices, bound):
    graph = Graph(devices)
    viewed = graph.source(1000 if devices == 1 else 100)
    middle = graph.tensor(graph.op(1, inputs=[viewed]), 3, view=viewed)
    outer = graph.tensor(graph.op(1, inputs=[middle]), 50, view=middle)
    graph.tensor(graph.op(1, inputs=[outer]), 200)
    assert _bounds(simulator, graph)[1] == bound
    device = [0, 0, devices - 1, devices - 1]
    assert max(simulator.simulate(graph.problem(), device, [0] * 4).peak) == bound


def test_bound_holds_if_one_output_takes_over_what_a_later_one_views(simulator):
    graph = Graph()
    tensor = graph.source(8)
    op = graph.op(1, inputs=[tensor])
    graph.op(1, inputs=[graph.tensor(op, 8, reuse=[tensor]), graph.tensor(op, 8, view=tensor)])
    assert simulator.simulate(graph.problem(), [0, 0, 0], [0, 0, 0]).peak[0] >= _bounds(simulator, graph)[1]


def _step(devices=1):
    """A training step: three layers keep 10, 20 and 30 bytes for their gradients; beside, a branch that may run before or after all of it."""
    graph = Graph(devices=devices)
    kept = []
    for size in (10, 20, 30):
        kept.append(graph.tensor(graph.op(1, inputs=kept[-1:]), size))
    gradient = graph.tensor(graph.op(1, inputs=kept[-1:]), 1)
    for tensor in reversed(kept):
        gradient = graph.tensor(graph.op(1, inputs=[gradient, tensor]), 1)
    graph.op(1, inputs=[graph.source(500)])
    return graph


def test_peak_counts_what_is_kept_for_ops_that_come_later_in_every_order(simulator):
    """The last gradient of the first layer's output: 60 bytes are kept, and 2 are of gradients. The branch alone needs 500."""
    graph = _step()
    assert _bounds(simulator, graph)[1] == 500
    graph.op(1, inputs=[], after=[3], scratch=0)
    long = graph.tensor(graph.op(1), 1000)
    graph.op(1, inputs=[long], after=[6])
    graph.ops[0]["control"] = [graph.tensors[long]["producer"]]
    assert _bounds(simulator, graph)[1] == 1000 + 60 + 2


def test_peak_on_several_devices_is_what_is_kept_divided_by_them(simulator):
    graph = _step(devices=2)
    long = graph.tensor(graph.op(1), 1000)
    graph.op(1, inputs=[long], after=[6])
    graph.ops[0]["control"] = [graph.tensors[long]["producer"]]
    graph.op(1, persistent=7)
    assert _bounds(simulator, graph)[1] == max(1000, -(-(1000 + 60 + 2 + 7) // 2))
    graph.op(1, persistent=2000)
    assert _bounds(simulator, graph)[1] == max(2000, -(-(1000 + 60 + 2 + 2007) // 2))


def test_an_output_is_kept_to_the_end_and_its_views_live_in_its_buffer(simulator):
    graph = Graph()
    tensor = graph.source(10)
    graph.tensor(graph.op(1, inputs=[tensor]), 10, view=tensor, lifetime=LIFETIME_OUTPUT)
    graph.tensor(graph.op(1, after=[1]), 100)
    assert _bounds(simulator, graph)[1] == 110


def test_a_buffer_that_is_taken_over_is_counted_once(simulator):
    graph = Graph()
    tensor = graph.source(10)
    for _ in range(3):
        tensor = graph.tensor(graph.op(1, inputs=[tensor]), 10, reuse=[tensor])
    assert _bounds(simulator, graph)[1] == 10

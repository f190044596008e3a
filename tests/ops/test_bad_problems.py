"""Problems and candidates that the core must refuse, with a word that tells where to look."""

import numpy as np
import pytest

from tf_regal import ops

from .cases import LIFETIME_PERSISTENT, Graph

LARGE = 2**62  # the sum of two does not fit int64


def _problem():
    """A valid problem of 4 ops, 4 tensors and 2 devices in which no array is empty."""
    graph = Graph(devices=2, latency=1)
    first = graph.source(8)
    second = graph.tensor(graph.op(1, inputs=[first], scratch=2), 8, reuse=[first])
    graph.tensor(graph.op(1, inputs=[second], after=[0], persistent=3), 8, view=second)
    graph.tensor(graph.op(1, after=[1, 2]), 4, lifetime=LIFETIME_PERSISTENT)
    return graph.problem()


def _changed(name, index, value):
    array = getattr(_problem(), name).copy()
    array[index] = value
    return _problem().replace(**{name: array})


def _refused(problem, match):
    with pytest.raises(ValueError, match=f"(?i){match}"):
        ops.Simulator(problem)


def test_the_unchanged_problem_is_accepted():
    ops.Simulator(_problem())


# Graph.


@pytest.mark.parametrize("control", [[[0]], [[1], [0]], [[], [3], [1], [2]], [[1], [], [2]]])
def test_control_cycle(control):
    graph = Graph()
    for after in control:
        graph.op(after=after)
    _refused(graph.problem(), "cycl")


def test_data_cycle():
    graph = Graph()
    graph.op(inputs=[1]), graph.op(inputs=[0])
    graph.tensor(0), graph.tensor(1)
    _refused(graph.problem(), "cycl")


def test_cycle_of_data_and_control():
    graph = Graph()
    graph.op(after=[1])
    graph.op(inputs=[graph.tensor(0)])
    _refused(graph.problem(), "cycl")


@pytest.mark.parametrize("name, index, outside", [
    ("producer", 1, 4), ("input_idx", 0, 4), ("control_idx", 0, 4), ("view", 2, 4), ("reuse_idx", 0, 4)])
def test_dangling_index(name, index, outside):
    for value in (outside, 2**31 - 1, -2, -2**31):
        _refused(_changed(name, index, value), name.removesuffix("_idx"))
    if name != "view":
        _refused(_changed(name, index, -1), name.removesuffix("_idx"))


@pytest.mark.parametrize("group", [[-1, 0, 1, 2], [0, 1, 2, 4], [0, 1, 2, 2**31 - 1], [-2**31, 0, 1, 2]])
def test_groups_are_numbered_from_0_and_no_more_than_ops(group):
    _refused(_problem().replace(group=np.array(group)), "group")


def test_view_must_be_of_an_input_of_the_producer():
    _refused(_changed("view", 2, 0), "view")
    _refused(_changed("view", 2, 2), "view")


def test_reuse_must_be_of_an_input_of_the_producer():
    _refused(_changed("reuse_idx", 0, 2), "reuse")


@pytest.mark.parametrize("field", ["inputs", "control"])
def test_edges_are_listed_once(field):
    graph = Graph()
    graph.op(1, inputs=[graph.source()], after=[0])
    graph.ops[1][field] *= 2
    _refused(graph.problem(), field.removesuffix("s"))


def test_lifetime_is_0_1_or_2():
    _refused(_changed("lifetime", 0, 3), "lifetime")


# Placement.


def test_op_that_no_device_may_run():
    _refused(_changed("duration", 1, [-1, -5]), "duration|device")


def test_group_without_a_common_device():
    problem = _changed("duration", 1, [-1, 1])
    duration = problem.duration.copy()
    duration[2] = [1, -1]
    _refused(problem.replace(duration=duration, group=np.array([0, 1, 1, 2])), "group")
    ops.Simulator(problem.replace(duration=duration, group=np.array([0, 1, 2, 1])))  # with another op it has one


# Numbers.


@pytest.mark.parametrize("name, index", [
    ("size", 1), ("scratch", (2, 1)), ("persistent", 2), ("latency", (0, 1)), ("ns_per_byte", (1, 0)), ("lanes", 0)])
def test_negative_number(name, index):
    _refused(_changed(name, index, -1), name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bandwidth_is_a_finite_number(value):
    _refused(_changed("ns_per_byte", (0, 1), value), "ns_per_byte")


def test_device_without_lanes():
    _refused(_changed("lanes", 1, 0), "lanes")


@pytest.mark.parametrize("changes", [
    {"size": [LARGE] * 4}, {"persistent": [LARGE] * 4}, {"scratch": [[LARGE, 0]] * 4},
    {"size": [2**63 - 1, 1, 0, 0]}, {"size": [LARGE, 0, 0, 0], "persistent": [LARGE, 0, 0, 0]}])
def test_sum_of_bytes_that_does_not_fit_int64(changes):
    _refused(_problem().replace(**{name: np.array(value, np.int64) for name, value in changes.items()}),
             "overflow|too large|exceed|int64|" + "|".join(changes))


# Shapes.


@pytest.mark.parametrize("name", ["scratch", "persistent", "size", "view", "lifetime", "reuse_ptr", "input_ptr",
                                  "control_ptr", "capacity", "latency", "ns_per_byte"])
@pytest.mark.parametrize("longer", [False, True])
def test_length_of_array(name, longer):
    array = getattr(_problem(), name)
    _refused(_problem().replace(**{name: np.concatenate([array, array[-1:]]) if longer else array[:-1]}), name)


@pytest.mark.parametrize("name", ["duration", "group", "producer", "lanes"])
@pytest.mark.parametrize("longer", [False, True])
def test_length_of_array_that_defines_the_size_of_the_problem(name, longer):
    array = getattr(_problem(), name)
    # These lengths are n, m and d, so that it may well be another array that seems to be wrong.
    _refused(_problem().replace(**{name: np.concatenate([array, array[-1:]]) if longer else array[:-1]}), "[a-z_]{4,}")


@pytest.mark.parametrize("name", ["duration", "scratch", "latency", "ns_per_byte"])
def test_tables_have_two_axes_and_a_column_per_device(name):
    table = getattr(_problem(), name)
    _refused(_problem().replace(**{name: table[:, :1]}), name)
    _refused(_problem().replace(**{name: table.ravel()}), name)
    if len(table) != 2:
        _refused(_problem().replace(**{name: table.T}), name)


@pytest.mark.parametrize("name", ["input", "control", "reuse"])
def test_pointers_rise_from_0_to_the_length_of_the_indices(name):
    ptr = getattr(_problem(), f"{name}_ptr")
    falling, late, short, long = (ptr.copy() for _ in range(4))
    falling[2] = ptr[-1] + 1
    late[0] = 1
    short[-1] -= 1
    long[-1] += 1
    for wrong in (falling, late, short, long, -ptr):
        _refused(_problem().replace(**{f"{name}_ptr": wrong}), f"{name}_(ptr|idx)")


def test_at_most_64_devices():
    graph = Graph(devices=64)
    graph.op()
    ops.Simulator(graph.problem()).run(np.array([63], np.int32), np.zeros(1, np.float32))
    graph = Graph(devices=65)
    graph.op()
    _refused(graph.problem(), "64|device")


# Candidates.


def _run_refused(match, **changes):
    candidate = {"device": np.zeros(4, np.int32), "priority": np.zeros(4, np.float32),
                 "transfer_priority": np.zeros((4, 2), np.float32)}
    simulator = ops.Simulator(_problem())
    simulator.run(**candidate)
    with pytest.raises(ValueError, match=match):
        simulator.run(**(candidate | changes))


@pytest.mark.parametrize("name, shapes", [
    ("device", [3, 5, 0]), ("priority", [3, 5, 0]), ("transfer_priority", [(3, 2), (4, 1), (4, 3), (2, 4), (0, 2)])])
def test_candidate_of_wrong_length(name, shapes):
    for shape in shapes:
        _run_refused(name, **{name: np.zeros(shape, np.int32 if name == "device" else np.float32)})


@pytest.mark.parametrize("device", [-1, 2, 2**31 - 1, -2**31])
def test_candidate_with_a_device_that_does_not_exist(device):
    _run_refused("device", device=np.array([0, 0, device, 0], np.int32))


def test_candidate_with_a_device_that_may_not_run_the_op():
    simulator = ops.Simulator(_changed("duration", 1, [-1, 1]))
    with pytest.raises(ValueError, match=r"device|duration"):
        simulator.run(np.zeros(4, np.int32), np.zeros(4, np.float32))


def test_candidate_with_a_device_that_int32_cannot_hold():
    _run_refused("device", device=np.array([0, 0, 2**32, 0]))  # cut to 32 bits it would be device 0


def test_candidate_that_splits_a_group():
    simulator = ops.Simulator(_problem().replace(group=np.array([0, 1, 2, 0])))
    with pytest.raises(ValueError, match="group"):
        simulator.run(np.array([0, 0, 0, 1], np.int32), np.zeros(4, np.float32))


def test_candidate_with_nan():
    _run_refused("priority", priority=np.array([0, np.nan, 0, 0], np.float32))
    transfer_priority = np.zeros((4, 2), np.float32)
    transfer_priority[3, 1] = np.nan
    _run_refused("transfer_priority", transfer_priority=transfer_priority)


def test_unknown_discipline():
    _run_refused("discipline", discipline="random")

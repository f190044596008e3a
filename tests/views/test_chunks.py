"""The pieces that the front end draws, against the plan that they are made of."""

import dataclasses
import json

import numpy as np
import pytest

from tf_regal.views import chunks, measured

from .plans_for_views import plan_of


@pytest.fixture(scope="module", params=["2xA100-40GB", "2xCPU"])
def plan(request):
    return plan_of(topology=request.param)


def pieces_of(plan, *more):
    found = chunks.chunks(plan, *more)
    return {name: json.loads(content) if name.endswith(".json") else chunks.unpack(content) for name, content in found.items()}


def test_arrays_come_back_and_are_aligned():
    arrays = {"a": np.arange(3, dtype=np.uint8), "b": np.array([1.5, -2]), "c": np.array([], np.int32), "d": np.array([7], np.int32)}
    found = chunks.unpack(chunks.pack(arrays))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert found[name].ctypes.data % array.itemsize == 0


def test_every_op_and_transfer_is_a_bar_with_its_times(plan):
    pieces = pieces_of(plan)
    for name, schedule in (("planned", plan.details.planned), ("default", plan.details.default)):
        columns = pieces[f"{name}.bin"]
        rows = pieces["overview.json"]["schedules"][name]["rows"]
        bars = sorted(zip(columns["op"].tolist(), columns["start"].tolist(), columns["end"].tolist(), columns["transfer"].tolist(), strict=True))
        tensors = columns["tensor"][columns["transfer"] == 1]
        assert sorted(tensors.tolist()) == sorted(schedule.transfer_tensors.tolist())
        np.testing.assert_array_equal(plan.details.producer[tensors], columns["op"][columns["transfer"] == 1])
        assert np.all(columns["tensor"][columns["transfer"] == 0] == -1)
        expected = [(op, schedule.start_ns[op], schedule.end_ns[op], 0) for op in range(len(plan.ops))]
        expected += [(t[0], t[3], t[4], 1) for t in schedule.transfers]
        assert bars == sorted(expected)
        for number, row in enumerate(rows):
            lo, hi = columns["row_ptr"][number:number + 2]
            assert np.all(np.diff(columns["start"][lo:hi]) >= 0)
            assert np.all(columns["end"][lo:hi][:-1] <= columns["start"][lo:hi][1:]), "bars of a row do not overlap"
            if row["kind"] == "device":
                assert np.all(schedule.device[columns["op"][lo:hi]] == row["device"])
        assert columns["row_ptr"][-1] == len(bars)


def test_memory_peaks_and_owners(plan):
    pieces = pieces_of(plan)
    outline = pieces["overview.json"]["schedules"]["planned"]
    columns = pieces["planned.bin"]
    for q, name in enumerate(plan.topology.names):
        lo, hi = columns["memory_ptr"][q:q + 2]
        curve = list(zip(columns["memory_ns"][lo:hi].tolist(), columns["memory_bytes"][lo:hi].tolist(), strict=True))
        assert curve == [tuple(step) for step in plan.memory[q]]
        if curve:
            assert outline["peaks"][q][0] == plan.predicted.peak_bytes[name] == max(b for _, b in curve)
            assert max(outline["memory"][q]) == outline["peaks"][q][0]
        assert outline["persistent"][q] == plan.persistent_bytes[plan.device == q].sum()


def test_bins_cover_what_runs(plan):
    pieces = pieces_of(plan)
    outline, columns = pieces["overview.json"]["schedules"]["planned"], pieces["planned.bin"]
    width = outline["end_ns"] / chunks.BINS
    for number, runs in enumerate(outline["bins"]):
        lo, hi = columns["row_ptr"][number:number + 2]
        covered = np.zeros(chunks.BINS, bool)
        for first, last, _ in runs:
            covered[first:last + 1] = True
        for start, end in zip(columns["start"][lo:hi], columns["end"][lo:hi], strict=True):
            if end > start:
                assert covered[min(int(start / width), chunks.BINS - 1)]


def test_overview_is_small_and_says_what_the_plan_says(plan):
    raw = chunks.chunks(plan)["overview.json"]
    found = json.loads(raw)
    assert found["figures"]["predicted"] == dataclasses.asdict(plan.predicted)
    assert found["bounds"] == dataclasses.asdict(plan.bounds)
    assert found["ops"] == len(plan.ops)
    assert sum(len(run) for rows in found["schedules"].values() for run in rows["bins"]) <= 2 * chunks.BINS * 12
    trace = found["trace"]
    assert trace["points"][-1][1] == plan.search.evaluations
    best = [point[2] for point in trace["points"] if point[2] is not None]
    assert best == sorted(best, reverse=True), "the best so far never gets worse"
    assert {row[0] for row in trace["seeds"]} >= {"default placement, first come, first served"}


def test_a_plan_without_details_still_has_its_schedule(plan):
    pieces = pieces_of(dataclasses.replace(plan, details=None))
    assert set(pieces) == {"overview.json", "names.json", "graph.bin", "planned.bin"}
    assert not pieces["overview.json"]["has_details"]
    np.testing.assert_array_equal(pieces["planned.bin"]["op_start"], plan.start_ns)


def test_a_recorded_call_is_a_schedule_beside_the_predicted_one(plan):
    process = plan.topology.names[0].partition("/device")[0]
    events = {process: [(plan.ops[3], 1_000_100, 1_000_400), (plan.ops[5], 1_000_500, 1_000_900), ("unknown", 1_000_000, 1_000_001)]}
    found = measured.from_events(plan, events, began_ns=1_000_000, step_ns=1000)
    pieces = pieces_of(plan, found)
    columns = pieces["measured.bin"]
    assert sorted(zip(columns["op"].tolist(), columns["start"].tolist(), columns["end"].tolist(), strict=True)) == [(3, 100, 400), (5, 500, 900)]
    figures = pieces["overview.json"]["measured"]
    lengths = plan.end_ns - plan.start_ns
    assert figures["ops"] == [[3, lengths[3], 300], [5, lengths[5], 400]]
    assert figures["step_ns"] == 1000
    assert figures["median_error"] == pytest.approx(np.median([abs(lengths[3] / 300 - 1), abs(lengths[5] / 400 - 1)]))

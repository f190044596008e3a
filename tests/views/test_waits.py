"""Why ops wait, against an explanation op by op in plain Python."""

import itertools

import numpy as np
import pytest

from tf_regal.views import waits

from .plans_for_views import plan_of


def by_hand(plan, schedule, edges, op):
    """(ready ns, {(reason, cause)} of what came last) of one op, from the definitions."""
    details, latency = plan.details, plan.topology.arrays()["latency"]
    here, events = schedule.device[op], []
    for tensor in details.input_idx[details.input_ptr[op]:details.input_ptr[op + 1]]:
        producer = int(details.producer[tensor])
        if schedule.device[producer] == here:
            events.append((int(schedule.end_ns[producer]), waits.INPUT, producer))
        else:
            arrivals = [
                row[4] for row, t in zip(schedule.transfers, schedule.transfer_tensors, strict=True) if t == tensor and row[2] == here
            ]
            assert len(arrivals) == 1
            events.append((arrivals[0], waits.TRANSFER, producer))
    before = details.control_idx[details.control_ptr[op]:details.control_ptr[op + 1]].tolist() + [a for a, b in edges if b == op]
    events += [(int(schedule.end_ns[a] + latency[schedule.device[a], here]), waits.CONTROL, a) for a in before]
    ready = max((event[0] for event in events), default=0)
    return ready, {event[1:] for event in events if event[0] == ready} or {(waits.START, -1)}


@pytest.mark.parametrize("settings", [{}, {"objective": "peak_memory"}, {"topology": "2xCPU"}, {"topology": "1xA100-40GB"}], ids=str)
def test_reasons_are_what_the_definitions_say(settings):
    plan = plan_of(**settings)
    for schedule, edges in ((plan.details.planned, plan.edges.tolist()), (plan.details.default, [])):
        found = waits.explain(plan.details, schedule, plan.topology.arrays()["latency"], edges)
        for op in range(len(plan.ops)):
            ready, reasons = by_hand(plan, schedule, edges, op)
            assert found.ready_ns[op] == ready <= schedule.start_ns[op]
            if schedule.start_ns[op] > ready:
                assert found.reason[op] == waits.LANE
            else:
                assert (found.reason[op], found.cause[op]) in reasons


@pytest.mark.parametrize("topology", ["2xA100-40GB", "2xCPU"])
def test_lanes_hold_one_op_at_a_time_and_no_more_than_the_device_has(topology):
    plan = plan_of(topology=topology)
    lane, before = waits.lanes(plan.device, plan.start_ns, plan.end_ns, plan.topology.n_devices)
    for q, spec in enumerate(plan.topology.devices):
        mine = np.flatnonzero((plan.device == q) & (plan.end_ns > plan.start_ns))
        assert lane[mine].max(initial=0) < spec.lanes
        for number in set(lane[mine].tolist()):
            ops = sorted((op for op in mine.tolist() if lane[op] == number), key=lambda op: plan.start_ns[op])
            assert all(plan.end_ns[a] <= plan.start_ns[b] for a, b in itertools.pairwise(ops))
    followed = np.flatnonzero(before >= 0)
    assert np.all(plan.end_ns[before[followed]] <= plan.start_ns[followed])
    assert np.all(lane[before[followed]] == lane[followed])

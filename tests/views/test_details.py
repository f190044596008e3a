"""What holds the memory at its peak, against the simulator's own account of allocations."""

import dataclasses
import json

import numpy as np
import pytest

import tf_regal.errors
from tf_regal.plans import details as details_lib
from tf_regal.plans import plan as plan_lib

from .plans_for_views import plan_of


@pytest.mark.parametrize("settings", [{}, {"objective": "peak_memory"}, {"topology": "2xCPU"}], ids=str)
def test_buffers_at_the_peak_add_up_to_it(settings):
    plan = plan_of(**settings)
    for which, figures in (("planned", plan.predicted), ("default", plan.default)):
        schedule = getattr(plan.details, which)
        for q, name in enumerate(plan.topology.names):
            rows = schedule.held[q]
            persistent = int(plan.persistent_bytes[schedule.device == q].sum())
            held = sum(row[1] for row in rows)
            if len(rows) < 200:
                assert held + persistent == figures.peak_bytes[name]
            peak_ns = max(schedule.memory[q], key=lambda step: step[1], default=(0, 0))[0]
            for op, size, since, until, keeper, kind in rows:
                assert size > 0
                assert since <= peak_ns
                assert until < 0 or until >= peak_ns
                assert (keeper < 0) == (until < 0)
                if kind == details_lib.OUTPUT:
                    assert schedule.device[op] == q
                if kind == details_lib.SCRATCH:
                    assert keeper == op
                elif until >= 0 and schedule.device[keeper] == q:
                    # It is freed when its keeper has ended, or when a transfer of what that made has.
                    sent = [t[4] for t in schedule.transfers if t[0] == keeper and t[1] == q]
                    assert until in {int(schedule.end_ns[keeper]), *sent}


def test_most_keepers_take_what_they_keep():
    plan = plan_of()
    d = plan.details
    takes = 0
    rows = [row for rows in d.planned.held for row in rows if row[3] >= 0 and row[5] != details_lib.SCRATCH]
    for op, _, _, _, keeper, _ in rows:
        inputs = d.input_idx[d.input_ptr[keeper]:d.input_ptr[keeper + 1]]
        takes += op in d.producer[inputs] or keeper == op
    assert takes >= 0.6 * len(rows) > 0  # the others take a view, or what was made in its place


DAMAGE = {
    "a type too few": lambda d: d["types"].pop(),
    "an edge to nowhere": lambda d: d["input_idx"].__setitem__(0, 10**6),
    "half an edge": lambda d: d["control_ptr"].__setitem__(-1, 10**6),
    "a device too many": lambda d: d["default"]["device"].__setitem__(0, 99),
    "an op that ends before it starts": lambda d: d["default"]["end_ns"].__setitem__(0, -1),
    "a curve too few": lambda d: d["default"]["memory"].pop(),
    "text for a number": lambda d: d["default"]["start_ns"].__setitem__(0, "soon"),
    "a time before the beginning": lambda d: d["default"]["memory"][0].__setitem__(0, [-1, 5]),
    "a transfer's tensor too many": lambda d: d["planned"]["transfer_tensors"].append(0),
    "a buffer of no op": lambda d: d["planned"]["held"].__setitem__(0, [[10**6, 1, 0, 0, 0, 0]]),
    "no schedule": lambda d: d.pop("default"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_details_are_a_damaged_plan(damage):
    data = json.loads(json.dumps(plan_of().to_json()))
    damage(data["details"])
    with pytest.raises(tf_regal.errors.PlanFileError, match=r"damaged.*Plan again"):
        plan_lib.Plan.from_json(data)


def test_plans_of_older_versions_are_read():
    data = json.loads(json.dumps(plan_of().to_json()))
    del data["details"]
    plan = plan_lib.Plan.from_json(data)
    assert plan.details is None
    assert plan.predicted == plan_of().predicted


def test_details_come_back():
    plan = plan_of()
    again = plan_lib.Plan.from_json(json.loads(json.dumps(plan.to_json()))).details
    for field in dataclasses.fields(again):
        if isinstance(getattr(again, field.name), np.ndarray):
            np.testing.assert_array_equal(getattr(again, field.name), getattr(plan.details, field.name))
    assert json.dumps(again.to_json()) == json.dumps(plan.details.to_json())

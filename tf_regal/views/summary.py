"""A plan, or a function without one, in a few lines of JSON: what lists of plans show."""

import dataclasses

VERSION = 1


def of_plan(plan, identity, function="", status="saved", reason="", measured=None, file=""):
    """A dict of JSON values.

    identity: what the plan is called among others. function, status, reason, measured: as of `Report`; "saved": the plan was written by hand.
    """
    return {
        "version": VERSION, "id": identity, "function": function or f"plan {plan.fingerprint[:8]}", "status": status, "reason": reason, "has_plan": True,
        "objective": plan.objective, "topology": plan.topology.name, "ops": len(plan.ops), "pays": plan.pays, "fingerprint": plan.fingerprint,
        "predicted": dataclasses.asdict(plan.predicted), "default": dataclasses.asdict(plan.default), "file": file,
        "measured": None if measured is None else dataclasses.asdict(measured),
    }  # fmt: skip


def of_report(report, identity):
    """The same of a Report, with or without a plan."""
    if report.plan is not None:
        return of_plan(report.plan, identity, report.function, report.status, report.reason, report.measured)
    return {
        "version": VERSION, "id": identity, "function": report.function, "status": report.status, "reason": report.reason, "has_plan": False,
        "objective": None, "topology": None, "ops": None, "predicted": None, "default": None, "measured": None, "file": "",
    }  # fmt: skip

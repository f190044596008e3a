"""Runnable → Plan, with the settings of `enable`: what the hook, `tf_regal.plan` and the command line share."""

import time

from tf_regal.costs import analytic, measured
from tf_regal.devices import Topology, detection
from tf_regal.graph import builder
from tf_regal.hook import variables
from tf_regal.plans import PlanCache, planner
from tf_regal.policy import inference
from tf_regal.rewrite import graphdef


def plan_runnable(source, settings, report, began, move_variables=False):
    """Runnable → (Capture, Plan), or None where the default is kept; fills the report."""
    topology = Topology.parse(settings.topology)
    capture = builder.capture(source, settings.batch_size, topology.names[0], move_variables)
    report.seconds["capture"] = round(time.monotonic() - began, 3)
    plan = plan_capture(capture, topology, settings, report.seconds)
    report.plan = plan
    report.reason = verdict(plan)
    if settings.mode == "record":
        report.status, report.reason = "default_kept", f"{report.reason}; mode='record' writes plans and applies none"
        return None
    if settings.apply == "never" or (settings.apply == "if_better" and not plan.pays):
        report.status = "default_kept"
        return None
    graphdef.check_devices(plan, detection.visible_devices())
    report.status = "planned"
    return capture, plan


def plan_capture(capture, topology, settings, seconds=None, show_progress=False):
    """Capture → Plan, from the cache where it is there. `seconds`: dict that gets {stage: seconds}."""
    seconds = {} if seconds is None else seconds
    cache = PlanCache(settings.cache_dir)
    began = time.monotonic()
    plan = cache.load(capture.graph, topology, settings)
    if plan is not None:
        plan.variables = variables.describe(capture, plan) if settings.move_variables else None
        seconds["cached"] = round(time.monotonic() - began, 3)
        return plan
    notes = add_costs(capture, topology, settings)
    seconds["costs"] = round(time.monotonic() - began, 3)
    began = time.monotonic()
    plan = planner.make_plan(capture.graph, topology, settings, show_progress, inference.proposer(settings))
    seconds["plan"] = round(time.monotonic() - began, 3)
    plan.variables = variables.describe(capture, plan) if settings.move_variables else None
    plan.notes += notes
    cache.save(capture.graph, topology, settings, plan)
    return plan


def add_costs(capture, topology, settings):
    """Fills the graph's durations and scratch, as the settings say; returns notes for the plan."""
    analytic.add_costs(capture, topology)
    known = settings.measured_costs()
    return [] if known is None else [measured.add_costs(capture, topology, known)]


def verdict(plan):
    """The plan's objective against the default plan's, in words."""
    if plan.objective == "runtime":
        new, old, unit = plan.predicted.makespan_s * 1e3, plan.default.makespan_s * 1e3, "ms"
    else:
        new, old, unit = max(plan.predicted.peak_bytes.values()) / 1e6, max(plan.default.peak_bytes.values()) / 1e6, "MB"
    figures = f"{plan.objective} {new:.3f} {unit} predicted, default {old:.3f} {unit}"
    if plan.pays:
        return figures
    if new > (1 - planner.MARGIN) * old:
        return f"{figures}: less than {planner.MARGIN:.0%} better than the default"
    for note in plan.notes:
        if note.startswith(planner.THREADS_NOTE):
            return f"{figures}, but {note}"
    slowdown = plan.predicted.makespan_s / plan.default.makespan_s
    return f"{figures}: it would take {slowdown:.2f} times as long as the default, which is more than max_slowdown"

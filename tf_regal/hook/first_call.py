"""What stands in for a function until it has been planned.

The first call runs the function as it was traced and collects the graphs that TensorFlow makes for it. That graph, which is exactly
what runs, is planned, and the planned function takes over from the second call on. Whatever goes wrong on our side, the function
goes on as it was.
"""

import dataclasses
import threading
import time
import weakref

import tensorflow as tf
from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal import errors, rewrite
from tf_regal.costs import analytic
from tf_regal.devices import Topology, detection
from tf_regal.graph import builder, runnable
from tf_regal.plans import PlanCache, Report, planner
from tf_regal.rewrite import graphdef, readback

# Errors of TensorFlow's placer and instantiation: they come before any op has run, so the call can be made again.
_NOT_STARTED = (
    "Cannot assign a device", "Cannot place the graph", "Could not satisfy", "No OpKernel was registered", "unknown device",
    "Cannot colocate", "is not a valid device", "Failed to find device", "All edges must",
)

# TensorFlow collects graphs for the whole process at once: one first call at a time.
_COLLECTING = threading.Lock()


class FirstCall:
    """Takes the place of `ConcreteFunction._inference_function`; behaves like it, and plans after the first successful call."""

    def __init__(self, concrete, settings, reports):
        self._concrete = weakref.ref(concrete)
        self._original = concrete._inference_function
        self._settings = settings
        self._reports = reports
        self._name = function_name(concrete)
        self._graphs = []

    def __getattr__(self, name):
        return getattr(self._original, name)

    def call_preflattened(self, args):
        if not _COLLECTING.acquire(blocking=False):
            return self._original.call_preflattened(args)  # somebody's first call is being collected: this function's turn is later
        try:
            # A call that fails may have made the graphs already; they are kept for the next one.
            with tfp.collect_graphs() as graphs:
                try:
                    result = self._original.call_preflattened(args)
                finally:
                    self._graphs.append(graphs)
        finally:
            _COLLECTING.release()
        concrete = self._concrete()
        if concrete is not None and concrete._inference_function is self:
            self._plan(concrete, args)
        return result

    def _plan(self, concrete, args):
        graphs = [g for graphs in self._graphs for g in graphs]
        concrete._inference_function = self._original
        report = Report(self._name, "failed", "")
        try:
            capture_seconds = time.monotonic()
            source = runnable.from_runtime(concrete, graphs, args)
            planned = plan_runnable(source, self._settings, report, capture_seconds)
            if planned is not None:
                capture, plan = planned
                concrete._inference_function = PlannedFunction(concrete, self._original, capture, plan, report)
        except Exception as error:
            report.status, report.reason = "failed", f"{type(error).__name__}: {error}"
            self._reports.append(report)
            if self._settings.on_error == "raise":
                raise
            logging.warning("tf_regal: %s is not planned and runs as it is: %s", self._name, report.reason)
            return
        self._reports.append(report)
        logging.info("tf_regal: %s", report)


def plan_runnable(source, settings, report, began):
    """Runnable → (Capture, Plan), or None where the default is kept; fills the report."""
    topology = Topology.parse(settings.topology)
    capture = builder.capture(source, settings.batch_size, default_device=topology.names[0])
    report.seconds["capture"] = round(time.monotonic() - began, 3)
    plan = plan_capture(capture, topology, settings, report.seconds)
    report.plan = plan
    _, report.reason = verdict(plan, settings)
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
    plan = cache.load(capture.graph, topology, settings)
    if plan is not None:
        seconds["cached"] = 0.0
        return plan
    began = time.monotonic()
    analytic.add_costs(capture, topology)
    seconds["costs"] = round(time.monotonic() - began, 3)
    began = time.monotonic()
    plan = planner.make_plan(capture.graph, topology, settings, show_progress)
    seconds["plan"] = round(time.monotonic() - began, 3)
    cache.save(capture.graph, topology, settings, plan)
    return plan


def verdict(plan, settings):
    """(better, text): the plan's objective against the default plan's."""
    if plan.objective == "runtime":
        new, old, unit = plan.predicted.makespan_s * 1e3, plan.default.makespan_s * 1e3, "ms"
    else:
        new, old, unit = max(plan.predicted.peak_bytes.values()) / 1e6, max(plan.default.peak_bytes.values()) / 1e6, "MB"
    figures = f"{plan.objective} {new:.3f} {unit} predicted, default {old:.3f} {unit}"
    if plan.pays:
        return True, figures
    return False, f"{figures}: less than {planner.MARGIN:.0%} better than the default"


class PlannedFunction:
    """Takes the place of `ConcreteFunction._inference_function`: runs the planned definition, without another Grappler run."""

    def __init__(self, concrete, original, capture, plan, report):
        self._original = original
        self._concrete = weakref.ref(concrete)
        self._report = report
        self._options = tfp.planned_call_options()
        definition = rewrite.planned_function_def(rewrite.planned_graph_def(capture, plan), original.definition)
        self._planned = tfp.atomic_function.from_function_def(definition, original.function_type)
        # Errors are explained with the user's own lines: node names are those of the traced graph.
        self._planned._cached_graph = concrete.graph
        self._unverified = (capture, plan)

    def __getattr__(self, name):
        return getattr(self._original, name)

    def call_preflattened(self, args):
        if self._unverified is not None:
            return self._first(args)
        with tfp.call_options(self._options):
            return self._planned.call_preflattened(args)

    def _first(self, args):
        """The first planned call: TensorFlow places and partitions the function now; what it made of the plan is read back."""
        if not _COLLECTING.acquire(blocking=False):
            return self._original.call_preflattened(args)
        try:
            with tfp.collect_graphs() as graphs, tfp.call_options(self._options):
                result = self._planned.call_preflattened(args)
        except tf.errors.OpError as error:
            if not any(text in str(error) for text in _NOT_STARTED):
                raise
            self._give_up(error)
            return self._original.call_preflattened(args)
        finally:
            _COLLECTING.release()
        if self._unverified is not None:
            capture, plan = self._unverified
            self._report.applied = readback.read_back(capture, plan, graphs)
            self._unverified = None
        return result

    def _give_up(self, error):
        self._report.status = "failed"
        self._report.reason = f"TensorFlow could not place the planned function: {error}"
        logging.warning("tf_regal: %s runs as it was traced: %s", self._report.function, self._report.reason)
        concrete = self._concrete()
        if concrete is not None and concrete._inference_function is self:
            concrete._inference_function = self._original


def function_name(concrete):
    """The Python name of a ConcreteFunction."""
    return concrete.graph.name


def attach(concrete, settings, reports):
    """Plans `concrete` on its first call."""
    concrete._inference_function = FirstCall(concrete, settings, reports)


def apply_plan(concrete, capture, plan, reports):
    """Makes `concrete` run `plan` from the next call on."""
    graphdef.check_devices(plan, detection.visible_devices())
    report = Report(function_name(concrete), "planned", "applied by the caller", plan=plan)
    concrete._inference_function = PlannedFunction(concrete, concrete._inference_function, capture, plan, report)
    reports.append(report)



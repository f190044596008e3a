"""What stands in for a function until its first call, and then plans it.

On the first call TensorFlow is made to place and optimize the function without running it; that graph, which is exactly what would run,
is planned; TensorFlow is made to place the planned function, again without running it, and what it made of the plan is read back. Only
then the call goes on, planned or as it was. Whatever goes wrong on our side, the function goes on as it was.
"""

import contextlib
import threading
import time
import weakref

from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal import errors, rewrite
from tf_regal.costs import analytic
from tf_regal.devices import Topology, detection
from tf_regal.graph import builder, runnable
from tf_regal.plans import PlanCache, Report, planner
from tf_regal.policy import inference
from tf_regal.rewrite import graphdef, readback

_ATTEMPTS = 4


class FirstCall:
    """Takes the place of `ConcreteFunction._inference_function`; plans on the first call and gives way to what was chosen."""

    def __init__(self, concrete, settings, reports):
        self._concrete = weakref.ref(concrete)
        self._original = concrete._inference_function
        self._settings = settings
        self._reports = reports
        self._lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(self._original, name)

    def call_preflattened(self, args):
        # Another thread's call that comes while the function is being planned runs it as it was traced.
        if not self._lock.acquire(blocking=False):
            return self._original.call_preflattened(args)
        try:
            concrete = self._concrete()
            if concrete is not None and concrete._inference_function is self:
                concrete._inference_function = self._original
                planned = self._plan(concrete, args)
                if planned is not None:
                    concrete._inference_function = planned
                    return planned.call_preflattened(args)
        finally:
            self._lock.release()
        return self._original.call_preflattened(args)

    def _plan(self, concrete, args):
        report = Report(function_name(concrete), "failed", "")
        planned = None
        try:
            began = time.monotonic()
            source = _runtime_graph(concrete, self._original, args)
            chosen = plan_runnable(source, self._settings, report, began)
            if chosen is not None:
                capture, plan = chosen
                planned = PlannedFunction(concrete, self._original, capture, plan)
                report.applied = planned.verify(args)
        except Exception as error:
            report.status, report.reason = "failed", f"{type(error).__name__}: {error}"
            self._reports.append(report)
            if self._settings.on_error == "raise":
                raise
            logging.warning("tf_regal: %s is not planned and runs as it is: %s", report.function, report.reason)
            return None
        self._reports.append(report)
        logging.info("tf_regal: %s", report)
        return planned


def _runtime_graph(concrete, function, args):
    """The graph that TensorFlow makes for the function, as a Runnable.

    TensorFlow merges what it collects: where another thread's function is instantiated at the same time, the two can't be told apart, and
    it is tried again.
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(errors.GraphError):
            return runnable.from_runtime(concrete, tfp.instantiate(function, args), args)
    return runnable.from_runtime(concrete, tfp.instantiate(function, args), args)


def plan_runnable(source, settings, report, began):
    """Runnable → (Capture, Plan), or None where the default is kept; fills the report."""
    topology = Topology.parse(settings.topology)
    capture = builder.capture(source, settings.batch_size, default_device=topology.names[0])
    report.seconds["capture"] = round(time.monotonic() - began, 3)
    plan = plan_capture(capture, topology, settings, report.seconds)
    report.plan = plan
    report.reason = verdict(plan)
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
        seconds["cached"] = round(time.monotonic() - began, 3)
        return plan
    analytic.add_costs(capture, topology)
    seconds["costs"] = round(time.monotonic() - began, 3)
    began = time.monotonic()
    plan = planner.make_plan(capture.graph, topology, settings, show_progress, inference.proposer(settings))
    seconds["plan"] = round(time.monotonic() - began, 3)
    cache.save(capture.graph, topology, settings, plan)
    return plan


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
    slowdown = plan.predicted.makespan_s / plan.default.makespan_s
    return f"{figures}: it would take {slowdown:.2f} times as long as the default, which is more than max_slowdown"


class PlannedFunction:
    """Takes the place of `ConcreteFunction._inference_function`: runs the planned definition, without another Grappler run."""

    def __init__(self, concrete, original, capture, plan):
        self._original = original
        self._options = tfp.planned_call_options()
        self._capture, self._plan = capture, plan
        definition = rewrite.planned_function_def(rewrite.planned_graph_def(capture, plan), original.definition)
        self._planned = tfp.atomic_function.from_function_def(definition, original.function_type)
        # Errors are explained with the user's own lines: node names are those of the traced graph.
        self._planned._cached_graph = concrete.graph

    def __getattr__(self, name):
        return getattr(self._original, name)

    def verify(self, args):
        """Makes TensorFlow place and partition the planned function for such arguments and reads back what it made of the plan → Applied."""
        applied = None
        for _ in range(_ATTEMPTS):  # see `_runtime_graph`: another thread's graph has nodes of the same names
            graphs = tfp.instantiate(self._planned, args, self._options)
            found = readback.read_back(self._capture, self._plan, graphs)
            if applied is None or found.ops_on_planned_device > applied.ops_on_planned_device:
                applied = found
            if applied.ops_on_planned_device == applied.ops_planned:
                break
        self._capture = None  # the captured graph is large and not needed any more
        return applied

    def call_preflattened(self, args):
        with tfp.call_options(self._options):
            return self._planned.call_preflattened(args)


def function_name(concrete):
    """The Python name of a ConcreteFunction."""
    return concrete.graph.name


def attach(concrete, settings, reports):
    """Plans `concrete` on its first call."""
    concrete._inference_function = FirstCall(concrete, settings, reports)


def apply_plan(concrete, capture, plan, reports):
    """Makes `concrete` run `plan`."""
    graphdef.check_devices(plan, detection.visible_devices())
    report = Report(function_name(concrete), "planned", "applied by the caller", plan=plan)
    planned = PlannedFunction(concrete, concrete._inference_function, capture, plan)
    args = runnable.stand_in_arguments(concrete, capture.runnable.arg_shapes)
    if args is not None:
        report.applied = planned.verify(args)
    concrete._inference_function = planned
    reports.append(report)

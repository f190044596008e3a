"""What stands in for a function until its first call, and then plans it.

On the first call TensorFlow is made to place and optimize the function without running it; that graph, which is exactly what would run,
is planned; TensorFlow is made to place the planned function, again without running it, and what it made of the plan is read back. Only
then the call goes on, planned or as it was; with mode="background" it goes on at once, and the planned function takes over between two
later calls. Whatever goes wrong on our side, the function goes on as it was.
"""

import contextlib
import threading
import time
import weakref

from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.graph import runnable
from tf_regal.hook import background, eligibility, planning
from tf_regal.hook.planned import ATTEMPTS, PlannedFunction
from tf_regal.plans import Report


class FirstCall:
    """Stands for an AtomicFunction that is an attribute of something; plans on the first call and gives way to what was chosen."""

    def __init__(self, owner, attribute, name, settings, reports, free_results=frozenset()):
        """
        owner, attribute: where the function is, and this object will be: replaced by what was chosen.
        name: of the function, for its report.
        free_results: see `graph.runnable.Runnable`.
        """
        self._owner, self._attribute = weakref.ref(owner), attribute
        self._original = getattr(owner, attribute)
        self._name = name
        self._settings = settings
        self._reports = reports
        self._free_results = free_results
        self._lock = threading.Lock()
        self._is_waiting = False  # for the thread that plans in the background
        self._failure = None  # of the planning in the background, for the next call to raise
        setattr(owner, attribute, self)

    def __getattr__(self, name):
        return getattr(self._original, name)

    def call_preflattened(self, args):
        return self._chosen(args).call_preflattened(args)

    def call_flat(self, *args):
        """Called of a forward function, and where another function is being traced: that one takes it as it was."""
        return (self._chosen(args) if tfp.executing_eagerly() else self._original).call_flat(*args)

    def _chosen(self, args):
        """What runs this call."""
        # A call that comes while the function is being planned runs it as it was traced.
        if self._is_waiting or not self._lock.acquire(blocking=False):
            return self._original
        try:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self._replace(self._original)
                raise failure
            if not self._in_place():
                return self._original
            if self._settings.mode == "background":
                return self._plan_later(args)
            return self._plan_and_replace(tfp.Call(args))
        finally:
            self._lock.release()

    def _in_place(self):
        owner = self._owner()
        return owner is not None and getattr(owner, self._attribute) is self

    def _replace(self, chosen):
        owner = self._owner()
        if owner is not None and getattr(owner, self._attribute) is self:
            setattr(owner, self._attribute, chosen)

    def _plan_later(self, args):
        state = eligibility.state_in_kernels(self._original.graph)
        if state:
            # A kernel made anew would begin its stream again.
            reason = f"its {state} has a state of its own, which would begin again where a planned function took over later; plan it with mode='first_call'"
            self._reports.append(Report(self._name, "skipped", reason))
            self._replace(self._original)
        else:
            self._is_waiting = True  # before the other thread may say that it is done
            if not background.submit(self, "_plan_in_background", tfp.Call(args)):
                self._is_waiting = False
        return self._original

    def _plan_in_background(self, call):
        try:
            self._replace(self._plan(call) or self._original)
        except Exception as error:  # with on_error="raise" only
            self._failure = error
        finally:
            self._is_waiting = False

    def _plan_and_replace(self, call):
        """The function that runs from now on."""
        chosen = self._original
        try:
            chosen = self._plan(call) or self._original
        finally:
            self._replace(chosen)
        return chosen

    def _plan(self, call):
        report = Report(self._name, "failed", "")
        planned = None
        try:
            began = time.monotonic()
            with call.context():
                source = self._runtime_graph(call.args)
                chosen = planning.plan_runnable(source, self._settings, report, began)
                if chosen is not None:
                    planned = PlannedFunction(self._original, *chosen)
                    report.applied = planned.verify(call.args)
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

    def _runtime_graph(self, args):
        """The graph that TensorFlow makes for the function, as a Runnable."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(errors.GraphError):
                return runnable.from_runtime(self._original, tfp.instantiate(self._original, args), args, self._free_results)
        return runnable.from_runtime(self._original, tfp.instantiate(self._original, args), args, self._free_results)

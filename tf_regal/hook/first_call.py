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
from tf_regal.devices import detection
from tf_regal.graph import runnable
from tf_regal.hook import background, eligibility, logbook, measuring, planning, trial, variables
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
        self._measurement = None  # with costs="measured"
        self._failure = None  # of the planning in the background, for the next call to raise
        setattr(owner, attribute, self)

    def __getattr__(self, name):
        return getattr(self._original, name)

    @property
    def traced(self):
        """The function as it was traced."""
        return self._original

    def call_preflattened(self, args):
        chosen, args = self._chosen(args)
        return chosen.call_preflattened(args)

    def call_flat(self, *args):
        """Called of a forward function, and where another function is being traced: that one takes it as it was."""
        chosen, args = self._chosen(args) if tfp.executing_eagerly() else (self._original, args)
        return chosen.call_flat(*args)

    def _chosen(self, args):
        """What runs this call, and its arguments: variables may have been moved."""
        # A call that comes while the function is being planned runs it as it was traced.
        if self._is_waiting or not self._lock.acquire(blocking=False):
            return self._original, args
        try:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self._replace(self._original)
                raise failure
            if not self._in_place():
                return self._original, args
            call = tfp.Call(args)
            if self._settings.costs == "measured" and not self._costs_are_known(call):
                return self._original, args
            if self._settings.mode == "background":
                return self._plan_later(call), args
            return self._plan_and_replace(call), call.args
        finally:
            self._lock.release()

    def _in_place(self):
        owner = self._owner()
        return owner is not None and getattr(owner, self._attribute) is self

    def _replace(self, chosen):
        owner = self._owner()
        if owner is not None and getattr(owner, self._attribute) is self:
            setattr(owner, self._attribute, chosen)

    def _costs_are_known(self, call):
        """With costs="measured": whether this call may be planned; until then calls run as traced, and some are recorded."""
        try:
            is_first = self._measurement is None
            if is_first:
                self._measurement = measuring.Measurement(self._settings)
            with call.context():
                is_known = self._measurement.ready(lambda: self._runtime_graph(call.args))
            if is_first and not is_known:
                self._is_skipped_for_its_state("mode='first_call' and costs='analytic'")
            return is_known
        except Exception as error:
            self._replace(self._original)
            self._report_failure(Report(self._name, "failed", ""), error)
            return False

    def _is_skipped_for_its_state(self, instead):
        """Whether the function cannot be replaced later than on its first call; then it is left alone."""
        state = eligibility.state_in_kernels(self._original.graph)
        if state:
            # A kernel made anew would begin its stream again.
            reason = f"its {state} has a state of its own, which would begin again where a planned function took over later; plan it with {instead}"
            report = Report(self._name, "skipped", reason)
            self._reports.append(report)
            logbook.write(report, self._settings)
            self._replace(self._original)
        return bool(state)

    def _plan_later(self, call):
        if not self._is_skipped_for_its_state("mode='first_call'"):
            self._is_waiting = True  # before the other thread may say that it is done
            if not background.submit(self, "_plan_in_background", call):
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
                # What a tape has recorded knows a variable by where it was then.
                may_move = self._settings.move_variables and not self._free_results and tfp.no_tape()
                chosen = planning.plan_runnable(source, self._settings, report, began, may_move)
                if chosen is not None:
                    planned = self._put_on(*chosen, call, report)
        except Exception as error:
            self._report_failure(report, error)
            return None
        self._reports.append(report)
        logging.info("tf_regal: %s", report)
        logbook.write(report, self._settings)
        return planned

    def _report_failure(self, report, error):
        """One warning, or the error itself with on_error="raise"."""
        report.status, report.reason = "failed", f"{type(error).__name__}: {error}"
        self._reports.append(report)
        logbook.write(report, self._settings)
        if self._settings.on_error == "raise":
            raise error
        logging.warning("tf_regal: %s is not planned and runs as it is: %s", report.function, report.reason)

    def _put_on(self, capture, plan, call, report):
        """The planned function, its variables moved, and read back; variables are where they were if that fails."""
        recording = logbook.Recording(plan, report, self._settings)
        planned = PlannedFunction(self._original, capture, plan, again=self._again, on_loss=self._lose, recording=recording)
        moves = [(variable, device) for variable, device in variables.moves(capture, plan) if variable.device != device]
        before = [(variable, variable.device) for variable, _ in moves]
        replaced = variables.move(moves)
        try:
            call.args = variables.current(call.args, replaced)
            report.applied = planned.verify(call.args)
        except Exception:
            call.args = variables.current(call.args, variables.move(before))
            raise
        if not trial.is_wanted(self._settings, plan):
            return planned
        if state := eligibility.state_in_kernels(self._original.graph):
            report.reason += f"; not verified: its {state} has a state of its own, which two functions would not share"
            return planned

        recording.is_waiting = True

        def finish(chosen):
            self._finish_trial(chosen)
            recording.is_waiting = False
            logbook.write(report, self._settings)

        return trial.Trial(self._original, planned, plan, report, finish, moves, before, self._settings.max_slowdown, self._again)

    def _lose(self):
        """A device of the plan is gone: the traced function is in place again."""
        owner = self._owner()
        if owner is not None:
            setattr(owner, self._attribute, self._original)

    def _finish_trial(self, chosen):
        owner = self._owner()
        if owner is not None and isinstance(getattr(owner, self._attribute), trial.Trial):
            setattr(owner, self._attribute, chosen)

    def _again(self, owner):
        """Plans the function once more on its next call."""
        FirstCall(owner, self._attribute, self._name, self._settings, self._reports, self._free_results)

    def _runtime_graph(self, args):
        """The graph that TensorFlow makes for the function, as a Runnable."""
        # TensorFlow would wait for them without end when it hands over the graphs.
        lost = [process for process in tfp.process_addresses() if not detection.answers(process)]
        if lost:
            raise errors.PlanMismatchError(
                f"{', '.join(lost)} of the cluster does not answer, and TensorFlow gives no graphs without: connect to the processes that are left to have "
                "functions planned again"
            )
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(errors.GraphError):
                return runnable.from_runtime(self._original, tfp.instantiate(self._original, args), args, self._free_results)
        return runnable.from_runtime(self._original, tfp.instantiate(self._original, args), args, self._free_results)

"""What `logdir` is for: reports and plans go to a log directory for TensorBoard, and with them one recorded call of each planned function."""

import itertools
import time

import tensorflow as tf
from absl import logging

from tf_regal.costs import profile
from tf_regal.hook import measuring
from tf_regal.tensorboard import writer
from tf_regal.views import measured

_MOST_WITHOUT_PLAN = 1000  # of a process: a program may trace without end
_without_plan = itertools.count()

_RECORD_FROM = 3  # calls of a planned function before: the first ones make things ready
_LONGEST_CALL_S = 3.0  # predicted; longer ones are not recorded
_LEAST_SECONDS = 0.3  # of a recording on workers, which is by the clock


def write(report, settings, recorded=None):
    """Writes a report, again where more is known by now; one warning where that fails. Of functions without a plan only the first thousand are written."""
    if settings.logdir is None or (report.plan is None and next(_without_plan) >= _MOST_WITHOUT_PLAN):
        return
    try:
        report.entry = writer.write_report(report, settings.logdir, report.entry, recorded)
    except Exception as error:  # a full disk must not end a training
        logging.warning("tf_regal: %s was not written to logdir=%r: %s", report.function, settings.logdir, error)


class Recording:
    """Records one call of a planned function whose devices are CPUs; ops on others go on after their kernels are launched."""

    def __init__(self, plan, report, settings):
        self._plan, self._report, self._settings = plan, report, settings
        self._calls = 0
        self.is_waiting = False  # while the plan is tried, whose steps are timed
        seconds = plan.predicted.makespan_s
        # Where workers take part the recording is by the clock, and the call waits for its end.
        self.is_done = settings.logdir is None or set(plan.topology.kinds) != {"CPU"} or seconds > _LONGEST_CALL_S

    def call(self, run):
        """Calls `run` and returns its result; whatever goes wrong with the recording, it runs once."""
        if self.is_waiting or self._report.status != "planned":
            return run()
        self._calls += 1
        if self._calls < _RECORD_FROM or not measuring.one_at_a_time.acquire(blocking=False):
            return run()  # not yet, or another recording is going on
        try:
            if self.is_done:  # by another thread, meanwhile
                return run()
            self.is_done = True
            recorder, began = self._start(), time.time_ns()
            try:
                result = run()
                tf.test.experimental.sync_devices()
            finally:
                took = time.time_ns() - began
                found = self._stop(recorder, began, took)
            if found is not None:
                write(self._report, self._settings, found)
            return result
        finally:
            measuring.one_at_a_time.release()

    def _start(self):
        try:
            recorder = profile.Profiler(measuring.cores(self._plan.topology))
            recorder.start(_LEAST_SECONDS + 3 * self._report.plan.predicted.makespan_s)
            recorder.wait_until_recording()
            return recorder
        except Exception as error:  # someone else is profiling, perhaps
            logging.info("tf_regal: %s is not recorded: %s", self._report.function, error)
            return None

    def _stop(self, recorder, began, took):
        if recorder is None:
            return None
        try:
            return measured.from_events(self._plan, recorder.stop_events(self._plan.ops), began, took)
        except Exception as error:
            logging.warning("tf_regal: the recording of %s failed: %s", self._report.function, error)
            return None

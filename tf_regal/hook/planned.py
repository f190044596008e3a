"""What takes the place of a function once it is planned."""

import contextlib
import re

import tensorflow as tf
from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal import rewrite
from tf_regal.devices import detection
from tf_regal.devices.spec import process_of
from tf_regal.graph import runnable
from tf_regal.hook import eligibility
from tf_regal.plans import Report
from tf_regal.rewrite import graphdef, readback

ATTEMPTS = 4  # TensorFlow merges what it collects; where another thread's function is instantiated at the same time, it is tried again


class PlannedFunction:
    """Stands for an AtomicFunction: runs the planned definition, without another Grappler run."""

    def __init__(self, original, capture, plan, again=None, on_loss=None, recording=None):
        """again: called with this function's owner where it must be planned anew, the original in place. on_loss: called where a device is gone.
        recording: a `logbook.Recording` of one of its calls, or None."""
        self._original = original
        self._options = tfp.planned_call_options()
        self._capture, self._plan = capture, plan
        self._again, self._on_loss = again, on_loss
        self._recording = recording
        definition = rewrite.planned_function_def(rewrite.planned_graph_def(capture, plan), original.definition)
        self._planned = tfp.atomic_function.from_function_def(definition, original.function_type)
        # Errors are explained with the user's own lines: node names are those of the traced graph.
        self._planned._cached_graph = original.graph
        self._planned._children = original.children

    def __getattr__(self, name):
        return getattr(self._original, name)

    @property
    def traced(self):
        """The function as it was traced."""
        return self._original

    def plan_again(self, owner):
        """Gives way to the original, which is planned anew on its next call where the hook planned this one: devices of its variables have changed."""
        owner._inference_function = self._original
        if self._again is not None:
            self._again(owner)

    def verify(self, args):
        """Makes TensorFlow place and partition the planned function for such arguments and reads back what it made of the plan → Applied."""
        applied = None
        for attempt in range(ATTEMPTS):
            graphs = tfp.instantiate(self._planned, args, self._options, copy=attempt > 0)
            found = readback.read_back(self._capture, self._plan, graphs)
            if applied is None or found.ops_on_planned_device > applied.ops_on_planned_device:
                applied = found
            if applied.ops_on_planned_device == applied.ops_planned:
                break
        self._capture = None  # the captured graph is large and not needed any more
        return applied

    def call_preflattened(self, args):
        return self._call(lambda function: function.call_preflattened(args))

    def call_flat(self, *args):
        """Called of a forward function. While another function is traced, that one takes the function as it was."""
        if not tfp.executing_eagerly():
            return self._original.call_flat(*args)
        return self._call(lambda function: function.call_flat(*args))

    def _call(self, call):
        recording = self._recording
        if recording is None:
            return self._run(call)
        if recording.is_done:
            self._recording = None
            return self._run(call)
        return recording.call(lambda: self._run(call))

    def _run(self, call):
        try:
            with tfp.from_here(), tfp.call_options(self._options), _errors_of_one_device():
                return call(self._planned)
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError) as error:
            lost = self._lost_processes()
            if not lost:
                raise
            if self._on_loss is not None:
                self._on_loss()
            text = f"tf_regal: {', '.join(lost)}, where a part of {self._original.graph.name} was planned to run, does not answer any more"
            if not eligibility.only_reads(self._original.graph):
                error._message = f"{text}. The step may be half done; from the next call on the function does without. TensorFlow says: {error.message}"
                raise
            logging.warning("%s: the function does without from now on", text)
        return call(self._original)

    def _lost_processes(self):
        """Processes of the plan's devices that do not answer."""
        names = self._plan.topology.names
        processes = sorted({process_of(names[q]) for q in set(self._plan.device.tolist()) if not tfp.is_local(names[q])})
        return [process for process in processes if not detection.answers(process)]


# Of a function on several devices each tells the error that stopped it, and TensorFlow lists them all; the first one is where it began.
_ROOT_ERRORS = re.compile(r"\d+ root error\(s\) found\.\n\s*\(0\) [A-Z_]+: *(.*?)(?:\n\t \[\[[^{}]*\]\])?\n\s*\(1\) .*?\d+ derived errors ignored\.", re.DOTALL)
_SAME_NODE_TWICE = re.compile(r"(Detected at node (?:(?!Detected at node ).)*)\1+", re.DOTALL)


@contextlib.contextmanager
def _errors_of_one_device():
    """An error in the body reads as it does where all ops are on one device."""
    try:
        yield
    except tf.errors.OpError as error:
        error._message = _SAME_NODE_TWICE.sub(r"\1", _ROOT_ERRORS.sub(r"\1", error.message))
        raise


def apply_plan(concrete, capture, plan, reports):
    """Makes a ConcreteFunction run `plan`."""
    graphdef.check_devices(plan, detection.visible_devices())
    report = Report(concrete.graph.name, "planned", "applied by the caller", plan=plan)
    planned = PlannedFunction(concrete._inference_function, capture, plan)
    args = runnable.stand_in_arguments(concrete, capture.runnable.arg_shapes)
    if args is not None:
        report.applied = planned.verify(args)
    concrete._inference_function = planned
    reports.append(report)

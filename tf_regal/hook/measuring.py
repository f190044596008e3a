"""Profiling a function while it runs as it was traced, so that it can be planned with what its ops really take."""

import statistics
import threading
import time

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.costs import analytic, measured, profile
from tf_regal.devices import Topology
from tf_regal.devices.spec import process_of
from tf_regal.graph import builder, models, runnable

_ENOUGH = 0.9  # of the modelled time: with so much measured nothing is profiled again
_CALLS = 5  # recorded at least, where time allows
_CALLS_ALONE = 4  # before and after, each, to tell what recording costs
_MIN_SECONDS, _MAX_SECONDS = 1.0, 20.0

one_at_a_time = threading.Lock()  # TensorFlow profiles the process as a whole


class Measurement:
    """Goes with the first calls of a function: the first warms it up, the next ones are recorded; then its costs are known."""

    def __init__(self, settings):
        self._settings = settings
        self._topology = Topology.parse(settings.topology)
        self._profiler = None
        self._capture = None
        self._calls = 0
        self._began = None
        self._is_done, self._failure = False, None

    def ready(self, source):
        """Whether the function may be planned now. Called before each call. source: () → its Runnable."""
        if self._calls == 0:
            self._capture = builder.capture(source(), self._settings.batch_size, self._topology.names[0])
            analytic.add_costs(self._capture, self._topology)
            known = self._settings.measured_costs()
            if measured.coverage(self._capture, self._topology, known) >= _ENOUGH:
                return True
            self._began = time.monotonic()
        elif self._profiler is None:
            if not one_at_a_time.acquire(blocking=False):
                return False  # another function is being profiled: it is this one's turn on a later call
            try:
                self._start((time.monotonic() - self._began) / self._calls)
            except BaseException:
                one_at_a_time.release()
                raise
        elif self._is_done:
            if self._failure is not None:
                raise self._failure
            return True
        self._calls += 1
        return False

    def _start(self, seconds_per_call):
        self._profiler = profile.Profiler(cores(self._topology))
        seconds = min(max(_MIN_SECONDS, _CALLS * seconds_per_call), _MAX_SECONDS)
        self._profiler.start(seconds)
        # By the clock and not by the next call, which may never come: others wait for their turn.
        timer = threading.Timer(seconds, self._finish)
        timer.daemon = True
        timer.start()

    def _finish(self):
        try:
            samples = self._profiler.stop(_names(self._capture))
            measured.keep(_costs(self._capture, samples, self._topology), self._settings.cache_dir)
        except Exception as error:  # for the next call of the function
            self._failure = error
        finally:
            self._is_done = True
            one_at_a_time.release()


def _names(capture):
    return [name for members in capture.graph.members for name in members]


def cores(topology):
    """{process: how many ops its CPU devices run at once}."""
    found = {}
    for spec in topology.devices:
        process = process_of(spec.name)
        found[process] = found.get(process, 0) + (spec.lanes if spec.kind == "CPU" else 0)
    return {process: max(1, count) for process, count in found.items()}


def _costs(capture, samples, topology):
    cpus = {process_of(spec.name): spec.model for spec in topology.devices if spec.kind == "CPU"}
    return measured.from_profile(capture, samples, cpus)


def profile_function(function, *args, topology="local", seconds=2.0, costs=None, cache_dir=None, batch_size=None, **kwargs):
    """Runs a function again and again and records what its ops take on the devices where they run.

    The calls are real ones: a training step trains. What recording itself costs is taken off, going by calls that are not
    recorded. Ops on CPUs are recorded, of this process and of connected workers.

    Args:
        function: a tf.function or ConcreteFunction. *args, **kwargs: of its calls.
        topology: see `Settings`; costs are kept per device model of it.
        seconds: how long to go on, at least one call.
        costs: path of a cost file to write, for `costs=PATH` of any later plan; None: what costs="measured" uses, in cache_dir.

    Returns:
        the `tf_regal.costs.measured.Costs` of this function.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 3600:
        raise errors.InvalidArgumentError(f"seconds={seconds!r} is not valid; expected a number above 0, at most 3600")
    parsed = Topology.parse(topology)
    if isinstance(function, tfp.polymorphic_function.Function):
        concrete = function.get_concrete_function(*args, **kwargs)
    else:
        concrete = models.concrete_function(function)
    recorder = _Arguments(concrete)
    try:
        function(*args, **kwargs)
    finally:
        recorder.remove()
    if recorder.args is None:
        raise errors.InvalidArgumentError(f"function={function!r} did not run its trace when it was called; is a GradientTape active? Call it outside.")
    graphs = tfp.instantiate(recorder.traced, recorder.args)
    capture = builder.capture(runnable.from_runtime(recorder.traced, graphs, recorder.args), batch_size, parsed.names[0])
    analytic.add_costs(capture, parsed)

    def timed():
        began = time.perf_counter()
        function(*args, **kwargs)
        tf.test.experimental.sync_devices()  # calls on other processes return before they are done
        return time.perf_counter() - began

    alone = [timed() for _ in range(_CALLS_ALONE)]
    with one_at_a_time:
        profiler, recorded = profile.Profiler(cores(parsed)), []
        profiler.start(seconds)
        try:
            while not recorded or profiler.is_recording:
                recorded.append(timed())
        finally:
            samples = profiler.stop(_names(capture))
    alone += [timed() for _ in range(_CALLS_ALONE)]
    # Recording takes time of its own, which is no op's.
    found = _costs(capture, samples, parsed).scaled(min(1.0, statistics.median(alone) / statistics.median(recorded)))
    if not len(found):
        raise errors.TfRegalError("no op of the function was seen while it ran: profile it where no other profiler is active, and on the devices of topology=…")
    if costs is None:
        measured.keep(found, cache_dir)
    else:
        found.save(costs)
    return found


class _Arguments:
    """Stands for a ConcreteFunction's AtomicFunction during one call, to see its flat arguments."""

    def __init__(self, concrete):
        self._concrete, self._function = concrete, concrete._inference_function
        self.args = None
        concrete._inference_function = self

    @property
    def traced(self):
        """The AtomicFunction as it was traced, whatever the hook has put in its place."""
        return getattr(self._function, "traced", self._function)

    def __getattr__(self, name):
        return getattr(self._function, name)

    def call_preflattened(self, args):
        self.args = list(args)
        return self._function.call_preflattened(args)

    def remove(self):
        if self._concrete._inference_function is self:
            self._concrete._inference_function = self._function

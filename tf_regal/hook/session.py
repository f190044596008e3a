"""The global switch, and the functions that are planned without it."""

import threading

import tensorflow as tf
from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.devices import Topology
from tf_regal.hook import eligibility, gradients, logbook
from tf_regal.plans import Report
from tf_regal.settings import Settings
from tf_regal.tensorboard import writer

_MARK = "_tf_regal_settings"
_MAX_REPORTS = 10_000

_lock = threading.RLock()
_enabled = []  # stack of Settings: the innermost enable() counts
_reports = []


class _Enabled:
    """What `enable` returns: leaving it as a context manager undoes this enable, whatever was enabled inside."""

    def __init__(self, settings):
        self._settings = settings

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        with _lock:
            for depth, settings in enumerate(_enabled):
                if settings is self._settings:
                    del _enabled[depth:]
                    break


def enable(**settings):
    """From now on every tf.function that TensorFlow traces is planned on its first call, where it is worth it.

    Takes the settings of `tf_regal.settings.Settings` as keywords. Also a context manager: functions traced inside are planned. Functions
    that were traced before stay as they are. Nothing of the planning breaks the program: a function that cannot be planned runs as it is,
    with one warning (on_error="raise" for those who want the error).

    Raises InvalidArgumentError for a setting that is not valid, UnsupportedVersionError only with on_error="raise".
    """
    chosen = Settings.make(settings)
    with _lock:
        try:
            _install()
            Topology.parse(chosen.topology)  # errors in the topology show here, not at the first call
            if chosen.logdir is not None:
                writer.check(chosen.logdir)
        except errors.UnsupportedVersionError as error:
            if chosen.on_error == "raise":
                raise
            logging.warning("tf_regal is not active: %s", error)
            return _Enabled(None)
        _enabled.append(chosen)
        return _Enabled(chosen)


def disable():
    """Functions traced from now on are left alone; those already planned go on as planned."""
    with _lock:
        _enabled.clear()


def is_enabled():
    """Whether `enable` is in force."""
    return bool(_enabled)


def reports():
    """One `Report` per function seen so far, oldest first: planned, default kept, skipped or failed, and why."""
    with _lock:
        return list(_reports)


def function(fn=None, *, input_signature=None, autograph=True, reduce_retracing=False, **settings):
    """A tf.function that is planned, without enable(); use as `@tf_regal.function` or `@tf_regal.function(topology=…)`.

    input_signature, autograph and reduce_retracing are tf.function's own.
    """
    Settings.make(settings)

    def decorate(python_function):
        traced = tf.function(python_function, input_signature=input_signature, autograph=autograph, reduce_retracing=reduce_retracing)
        return optimize(traced, **settings)

    return decorate if fn is None else decorate(fn)


def optimize(fn, **settings):
    """Something that behaves like `fn` and is planned on its first call.

    Args:
        fn: Python function, tf.function, ConcreteFunction or SavedModel signature.
        **settings: see `tf_regal.settings.Settings`.

    Returns:
        a tf.function for the first two, a ConcreteFunction for the others; `fn` itself stays as it is.

    Raises:
        InvalidArgumentError for another kind of `fn` or a setting that is not valid.
    """
    chosen = Settings.make(settings)
    Topology.parse(chosen.topology)
    if chosen.logdir is not None:
        writer.check(chosen.logdir)
    with _lock:
        _install()
    if isinstance(fn, tfp.concrete_function.ConcreteFunction):
        copy = copy_concrete(fn)
        _consider(copy, chosen)
        return copy
    if isinstance(fn, tfp.polymorphic_function.Function):
        python_function = fn.python_function
        return tfp.tf_decorator.make_decorator(python_function, fn._clone(_marked(python_function, chosen)), "tf_regal.optimize")
    if callable(fn):
        return optimize(tf.function(fn), **settings)
    raise errors.InvalidArgumentError(
        f"fn={fn!r} cannot be optimized; expected a Python function, tf.function, ConcreteFunction or SavedModel signature"
    )


def copy_concrete(concrete):
    """A ConcreteFunction of its own over the same traced graph, captures and signature.

    Its definition has a name of its own, so that one can be planned and the other not.
    """
    copy = tfp.concrete_function.ConcreteFunction(tfp.copy_function(concrete._delayed_rewrite_functions.forward()))
    copy._captured_inputs = concrete._captured_inputs
    copy._arg_keywords = concrete._arg_keywords
    copy._num_positional_args = concrete._num_positional_args
    copy._tf_regal_source = concrete  # the traced graph belongs to it: it must not be collected first
    return copy


def _marked(python_function, settings):
    """`python_function`, which while it is traced leaves its settings on the graph for `_on_new_function` to find."""

    def traced(*args, **kwargs):
        graph = tfp.ops.get_default_graph()
        if isinstance(graph, tfp.func_graph.FuncGraph):
            setattr(graph, _MARK, settings)
        return traced.__wrapped__(*args, **kwargs)  # AutoGraph puts the converted function there

    return tfp.tf_decorator.make_decorator(python_function, traced, "tf_regal.optimize")


def _install():
    tfp.check()
    if _on_new_function not in tfp.transform.CONCRETE_FUNCTION_CALLBACKS:
        tfp.transform.CONCRETE_FUNCTION_CALLBACKS.append(_on_new_function)


def _on_new_function(concrete):
    """TensorFlow calls this with every new ConcreteFunction."""
    settings = getattr(concrete.graph, _MARK, None) or (_enabled[-1] if _enabled else None)
    if settings is None or tfp.is_own():
        return
    try:
        _consider(concrete, settings)
    except Exception as error:
        if settings.on_error == "raise":
            raise
        name = concrete.graph.name
        report_list().append(Report(name, "failed", f"{type(error).__name__}: {error}"))
        logging.warning("tf_regal: %s is left alone: %r", name, error)


def _consider(concrete, settings):
    reason = eligibility.reason_to_skip(concrete, settings)
    if reason is None:
        gradients.attach(concrete, settings, _Reports())
    else:
        report = Report(concrete.graph.name, "skipped", reason)
        _Reports().append(report)
        logbook.write(report, settings)


def report_list():
    """Something with `append` that adds to `reports()`."""
    return _Reports()


class _Reports:
    """Appends to the list of reports; the oldest go where a program traces without end."""

    def append(self, report):
        with _lock:
            _reports.append(report)
            del _reports[:-_MAX_REPORTS]

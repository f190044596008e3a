"""Writes plans where TensorBoard finds them."""

import json
import os
import socket
import threading
import time
import uuid

from tf_regal import errors, storage
from tf_regal.tensorboard import metadata
from tf_regal.views import archive, chunks, summary

_TENSOR = 2  # DATA_CLASS_TENSOR: without it TensorBoard does not see the value

_lock = threading.Lock()
_writers = {}  # (process, log directory) → TFRecordWriter


def _begin_anew():
    """In a process that was forked, perhaps while another thread wrote."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def write_plan(plan, logdir):
    """Writes a plan for TensorBoard's tab REGAL: `tensorboard --logdir LOGDIR`.

    Args:
        plan: a `tf_regal.Plan`.
        logdir: a directory, made where it is missing; anything that tf.io.gfile can write to.

    Returns:
        the path of the plan's file in it, str.
    """
    if not hasattr(plan, "topology") or not hasattr(plan, "fingerprint"):
        raise errors.InvalidArgumentError(f"plan={plan!r} is not a tf_regal.Plan. Make one with tf_regal.plan, or read one with tf_regal.load_plan.")
    identity = _new_identity()
    path = _write_assets(plan, logdir, identity)
    _write_summary(summary.of_plan(plan, identity, file=path), logdir, 0)
    return path


def write_report(report, logdir, identity=None, measured=None):
    """Writes what became of a function, and its plan. Returns the id under which it can be written again, when more is known.

    identity: of an earlier writing of the same report. measured: a `views.measured.Measured`, or None.
    """
    again = identity is not None
    identity = identity or _new_identity()
    found = summary.of_report(report, identity)
    if report.plan is not None:
        if not again or measured is not None:
            found["file"] = _write_assets(report.plan, logdir, identity, measured)
        else:
            found["file"] = _path(logdir, identity, archive.PLAN)
    _write_summary(found, logdir, 1 if again else 0)
    return identity


def _new_identity():
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:12]}"


def check(logdir):
    """Raises InvalidArgumentError where nothing can be written to `logdir`."""
    from tensorflow import errors as tf_errors

    if not (isinstance(logdir, (str, os.PathLike)) and os.fspath(logdir)):
        raise errors.InvalidArgumentError(f"logdir={logdir!r} is not valid; expected a directory")
    try:
        with _lock:
            _writer(logdir)
    except (OSError, tf_errors.OpError) as error:
        text = getattr(error, "message", None) or error
        raise errors.InvalidArgumentError(f"logdir={os.fspath(logdir)!r} cannot be written to: {text}. Give a directory where files can be made.") from error


def _path(logdir, identity, ending):
    return os.path.join(os.fspath(logdir), metadata.ASSETS, identity + ending)


def _write_assets(plan, logdir, identity, measured=None):
    _write_atomically(_path(logdir, identity, archive.VIEW), archive.pack(chunks.chunks(plan, measured)))
    path = _path(logdir, identity, archive.PLAN)
    _write_atomically(path, storage.checked_json(plan.to_json()).encode())
    return path


def _write_atomically(path, content):
    """A whole file or none, on any file system of tf.io.gfile."""
    from tensorflow import io as tf_io

    tf_io.gfile.makedirs(os.path.dirname(path))
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with tf_io.gfile.GFile(temporary, "wb") as file:
            file.write(content)
        tf_io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        if tf_io.gfile.exists(temporary):
            tf_io.gfile.remove(temporary)
        raise


def _write_summary(found, logdir, step):
    """Appends to this process's event file: what a killed writer leaves is a record less."""
    import tensorflow as tf

    found["time"] = time.time()
    event = tf.compat.v1.Event(wall_time=found["time"], step=step)
    value = event.summary.value.add(tag=f"{found['function']}/{found['id']}")
    value.metadata.plugin_data.plugin_name = metadata.PLUGIN_NAME
    value.metadata.plugin_data.content = metadata.content()
    value.metadata.data_class = _TENSOR
    value.tensor.CopyFrom(tf.make_tensor_proto(json.dumps(found)))
    with _lock:
        writer = _writer(logdir)
        try:
            writer.write(event.SerializeToString())
            writer.flush()
        except BaseException:
            # What follows half a record is never read: the next entry begins a new file.
            _writers.pop((os.getpid(), os.fspath(logdir)), None)
            raise


def _writer(logdir):
    """The event file of this process in a log directory, opened once.

    In a directory of its own: of several files in one, TensorBoard may read the last one only.
    """
    import tensorflow as tf

    key = os.getpid(), os.fspath(logdir)
    if key not in _writers:
        run = os.path.join(os.fspath(logdir), metadata.RUNS, f"{time.strftime('%Y%m%d-%H%M%S')}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}")
        tf.io.gfile.makedirs(run)
        tf.io.gfile.makedirs(os.path.join(os.fspath(logdir), metadata.ASSETS))
        name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{os.getpid()}.tf_regal"
        writer = tf.io.TFRecordWriter(os.path.join(run, name))
        writer.write(tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        writer.flush()
        _writers[key] = writer
    return _writers[key]

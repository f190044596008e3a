"""TensorFlow's import without the lines that it prints on every machine without a GPU."""

import contextlib
import os
import subprocess
import sys

from tf_regal import errors

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"

# The lines that come before TensorFlow has read its own log level, or that are errors only to a machine with a GPU
# ("303": there is no driver library at all; other numbers are faults that their owner must see).
_FILTER = r"""
import re, sys
dropped = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
    rb"|.*\bcudart_stub\.cc:\d+\] Could not find cuda drivers on your machine"
    rb"|.*\bcuda_platform\.cc:\d+\] failed call to cuInit: .*\(303\)"
    rb"|.*\bport\.cc:\d+\] oneDNN custom operations are on"
)
for line in sys.stdin.buffer:
    if not dropped.match(line):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


def load_tensorflow():
    """Imports TensorFlow and looks for its devices; does not set its context up.

    The log level is "errors only", unless the user's environment says otherwise: then nothing is held back.
    Raises UnsupportedVersionError where TensorFlow cannot be imported.
    """
    if sys.modules.get("tensorflow") is not None:
        return
    users_level = _LEVEL in os.environ
    os.environ.setdefault(_LEVEL, "2")
    with contextlib.nullcontext() if users_level else _without_startup_lines():
        try:
            import tensorflow as tf
        except ImportError as error:
            raise errors.UnsupportedVersionError(
                f"TensorFlow cannot be imported ({error}). Install it: pip install tf-regal"
            ) from error
        tf.config.list_physical_devices()  # where the driver is looked for


@contextlib.contextmanager
def _without_startup_lines():
    """Passes stderr through a process of its own that leaves the known lines out.

    A process, not a thread or a file: should TensorFlow abort (a processor that it was not built for), its last words
    get through.
    """
    try:
        real = os.dup(2)
        # A session of its own: Ctrl-C is for us, and the filter lives until we are done.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _FILTER], stdin=subprocess.PIPE, stdout=real, start_new_session=True
        )
    except OSError:
        yield
        return
    sys.stderr.flush()
    os.dup2(process.stdin.fileno(), 2)
    process.stdin.close()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)
        # It ends with its input; a process that TensorFlow may have started could still hold that open.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)

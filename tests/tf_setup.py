"""TensorFlow as the tests want it: two logical CPUs, few threads. Import before anything initialises TensorFlow.

Every test folder that runs TensorFlow imports this from its conftest.py: pytest loads conftests while it collects, before the
first test of the process runs, whichever folder that belongs to.
"""

import os
import subprocess
import sys
import textwrap

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import numpy as np
import pytest

import tf_regal

CPU0 = "/job:localhost/replica:0/task:0/device:CPU:0"
CPU1 = "/job:localhost/replica:0/task:0/device:CPU:1"


def _configure():
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(cpu) is None:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


_configure()

# Applies whatever was found, quickly, to every function however small.
ALWAYS = {"topology": "local", "apply": "always", "min_ops": 0, "evaluations": 100, "cache_dir": False, "on_error": "raise"}
# The same, with the ops certainly spread over both devices and in one order per device.
SPREAD = {**ALWAYS, "method": "topological", "order": "full"}


class Reports:
    """The reports since this test began."""

    def __init__(self):
        self._known = {id(r) for r in tf_regal.reports()}
        self._kept = list(tf_regal.reports())  # so that no id is used again

    def __call__(self, name=None):
        """New reports, oldest first; `name`: only those of functions whose name contains it."""
        return [r for r in tf_regal.reports() if id(r) not in self._known and (name is None or name in r.function)]

    def only(self, name=None):
        """The new report, of which there must be exactly one."""
        found = self(name)
        assert len(found) == 1, [str(r) for r in found]
        return found[0]


@pytest.fixture
def seen():
    return Reports()


@pytest.fixture(autouse=True)
def clean_hook(tmp_path_factory, monkeypatch):
    """No test sees another's cache or enable()."""
    monkeypatch.setenv("TF_REGAL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    tf_regal.disable()
    yield
    tf_regal.disable()


def run_python(code, *args, devices=2, timeout=120):
    """Runs code in another process with TensorFlow as `tf` on logical CPUs; its stdout. Fails with its stderr."""
    prelude = f"""
        import os
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        import sys
        import tensorflow as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {devices})
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", text, *map(str, args)], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def assert_same(a, b):
    """Equal structure, dtype, shape and, to the bit, values."""
    tf.nest.assert_same_structure(a, b, expand_composites=True)
    for x, y in zip(tf.nest.flatten(a, expand_composites=True), tf.nest.flatten(b, expand_composites=True), strict=True):
        if isinstance(x, tf.Tensor):
            assert x.dtype == y.dtype
            assert x.shape == y.shape
            x, y = np.asarray(x.numpy()), np.asarray(y.numpy())
            assert x.tolist() == y.tolist() if x.dtype == object else x.tobytes() == y.tobytes(), (x, y)
        else:
            assert x is y or x == y


def calls(fn, *args, times=4):
    """Results of a first call (as traced), the first planned call (read back) and later ones."""
    return [fn(*args) for _ in range(times)]

"""CP-SAT cannot be solved in a process that has imported TensorFlow (see `tf_regal/search/cp_sat_process.py`)."""

import subprocess
import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests that reach into the solver's model run in a fresh pytest where another test of this process has imported TensorFlow."""
    if pyfuncitem.get_closest_marker("without_tensorflow") is None or "tensorflow" not in sys.modules:
        return None
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{pyfuncitem.path}::{pyfuncitem.name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return True

"""What holds for every test: fixed seeds, the user's plan cache out of reach, TensorFlow quiet."""

import os
import pathlib
import random
import signal
import sys
import threading

import numpy as np
import pytest

# For the helpers that test folders share. Last, so that a folder here hides no installed package of the same name.
sys.path.append(str(pathlib.Path(__file__).parent))

# Before anything imports TensorFlow, and inherited by the processes that tests start.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A shell starts what runs in the background with Ctrl-C ignored, and what tests start would inherit that.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _plan_cache(tmp_path_factory):
    """Plans are cached in a new directory per session (per worker of xdist): none is read from or written to the user's."""
    before = os.environ.get("TF_REGAL_CACHE_DIR")
    os.environ["TF_REGAL_CACHE_DIR"] = str(tmp_path_factory.mktemp("plan_cache"))
    yield
    if before is None:
        del os.environ["TF_REGAL_CACHE_DIR"]
    else:
        os.environ["TF_REGAL_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def _seeds():
    """Python's and numpy's global generators. TensorFlow is not seeded here: most tests do not import it."""
    random.seed(0)
    np.random.seed(0)

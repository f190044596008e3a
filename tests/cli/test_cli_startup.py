"""TensorFlow's start-up lines stay away; everything else that it says gets through, its last words included."""

import os
import sys

import pytest

from .conftest import BATCH

SAYS = """
import os, sys
from tf_regal.cli import startup
with startup._without_startup_lines():
    for line in {lines!r}:
        os.write(2, line.encode() + b"\\n")
    {then}
os.write(2, b"after\\n")
"""
DROPPED = [
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1.2   18446 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not",
    "E0000 00:00:1.2   18446 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: UNKNOWN ERROR (303)",
    "I0000 00:00:1.2   18505 port.cc:153] oneDNN custom operations are on. You may see slightly different",
]
KEPT = [
    "E0000 00:00:1.2   18446 cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error (999)",
    "F0000 00:00:1.2   18446 cpu_feature_guard.cc:41] The TensorFlow library was compiled to use AVX instructions",
    "terminate called after throwing an instance of 'std::bad_alloc'",
]


def says(process, then):
    return process(program=(sys.executable, "-c", SAYS.format(lines=[*DROPPED, *KEPT], then=then)))


def test_known_lines_are_dropped_and_others_kept_in_order(process):
    result = says(process, "pass")
    assert result.code == 0
    assert result.err.splitlines() == [*KEPT, "after"]


def test_an_abort_keeps_its_last_words(process):
    result = says(process, "os.abort()")
    assert result.code == -6
    assert result.err.splitlines()[: len(KEPT)] == KEPT


def test_an_exception_comes_after_them(process):
    result = says(process, "raise ImportError('broken')")
    assert result.code == 1
    assert result.err.splitlines()[: len(KEPT)] == KEPT
    assert result.err.splitlines()[-1] == "ImportError: broken"


@pytest.mark.slow
def test_nothing_on_the_screen_in_normal_use(process, files, plan_file, tmp_path):
    arguments = ["plan", files.saved_model, "--topology", "2xT4", "--evaluations", "50", "-o", tmp_path / "plan.json"]
    result = process(*arguments)
    assert (result.code, result.err) == (0, "")
    result = process("apply", files.saved_model, plan_file, "--batch-size", BATCH, "-o", tmp_path / "planned")
    assert (result.code, result.err) == (0, "")


@pytest.mark.slow
def test_a_level_of_the_users_own_is_left_alone(process):
    code = "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '0'; from tf_regal.cli import main; main(['devices'])"
    result = process(program=(sys.executable, "-c", code))
    assert result.code == 0
    assert "absl::InitializeLog" in result.err or "cpu_feature_guard" in result.err, os.environ

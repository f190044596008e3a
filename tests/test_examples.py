"""The examples run, and say that plain and planned training are equal to the bit with every op where the plan says."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["keras_fit", "custom_loop"])
def test_example(name):
    run = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "bitwise equal to the plain run's: True" in run.stdout
    counts = [int(line.split()[-2]) for line in run.stdout.splitlines() if "device:CPU:" in line and line.endswith(" ops")]
    assert len(counts) == 2
    assert min(counts) > 0

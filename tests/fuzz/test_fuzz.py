"""benchmarks/fuzz.py itself: a short run must find nothing, and what it looks for must be found."""

import pathlib
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
# bazel: manual (runs a script outside the package)

QUICK = "op_graph,task_graph,json_file,plan_file,topology_json,notation,simulator,candidate,problem_arrays"


def fuzz(*arguments):
    return subprocess.run([sys.executable, str(FUZZ), *arguments], capture_output=True, text=True, timeout=1200, check=False)


def test_short_run():
    run = fuzz("--targets", QUICK, "--cases", "25", "--seconds", "300")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{25 * len(QUICK.split(','))} cases, 0 kinds of findings" in run.stdout


@pytest.mark.slow
def test_long_run():
    run = fuzz("--cases", "400", "--seconds", "900", "--first", "100000")
    assert run.returncode == 0, run.stdout + run.stderr


PLANTED = """
import sys
sys.path.insert(0, {folder!r})
import fuzz
def planted(rng):
    if rng.random() < 0.5:
        {damage}
fuzz.TARGETS["notation"] = planted
fuzz.__file__ = __file__
fuzz.HANG_S = 3
sys.exit(fuzz.main())
"""


@pytest.mark.parametrize(("damage", "text"), [
    ("raise KeyError(3)", "notation | KeyError"), ("import os; os.abort()", "notation | the process ended with -6"),
    pytest.param("import time; time.sleep(100)", "notation | hang", marks=pytest.mark.slow)])
def test_what_is_wrong_is_found(tmp_path, damage, text):
    script = tmp_path / "planted.py"
    script.write_text(PLANTED.format(folder=str(FUZZ.parent), damage=damage))
    arguments = [sys.executable, str(script), "--targets", "notation", "--cases", "8", "--seconds", "60"]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 1 and text in run.stdout, run.stdout + run.stderr


def test_unknown_target():
    run = fuzz("--targets", "nonsense")
    assert run.returncode == 2 and "nonsense is unknown; there are op_graph" in run.stderr

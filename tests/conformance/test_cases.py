"""Situations in which people were bitten in public, as third-party scripts that know nothing of tf_regal; they are no part of the repository."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ.get("TF_REGAL_SHARED_CASES") or HERE.parents[2] / "shared" / "cases")
OFFLINE = {"CASE_OFFLINE": "case_hooks:graph_def", "CASE_OFFLINE_SM": "case_hooks:saved_model"}
HOOKS = {
    "optimize": {"CASE_WRAP": "case_hooks:optimize", **OFFLINE},
    "enable": {"CASE_PRELUDE": "case_hooks:enable"},
}


def run(path, hooks):
    """(whether it passed, what it printed) of a case in a process of its own."""
    # Numbers are expected as oneDNN rounds them, which TensorFlow turns on by itself on some processors only.
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "CASE_TIMEOUT": "300", "PYTHONPATH": str(HERE), **hooks}
    done = subprocess.run([sys.executable, str(path)], env=environment, cwd=path.parent, capture_output=True, text=True, timeout=400, check=False)
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("hooks", list(HOOKS))
@pytest.mark.parametrize("path", sorted(FOLDER.glob("case[0-9][0-9]_*.py")) or [None], ids=lambda path: path.stem if path else "none")
def test_case(path, hooks):
    if path is None:
        pytest.skip(f"{FOLDER} holds no cases; set TF_REGAL_SHARED_CASES to the folder that does")
    passed, text = run(path, HOOKS[hooks])
    if not passed and not run(path, {})[0]:
        pytest.skip("TensorFlow itself fails this one on this machine")
    assert passed, text

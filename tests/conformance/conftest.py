"""The suite's fixtures: program kinds with the hook and without, and the cells of docs/compatibility.md."""

import json
import os
import pathlib

import pytest
from tf_setup import clean_hook, seen

from .hooked import ran
from .programs import PROGRAMS

__all__ = ["clean_hook", "seen"]

_cells = {}


def pytest_generate_tests(metafunc):
    """`kind` runs over all programs; a test module's `applies` says to which of them its property applies."""
    if "kind" in metafunc.fixturenames:
        applies = getattr(metafunc.module, "applies", lambda program: True)
        chosen = [p for p in PROGRAMS.values() if applies(p)]
        metafunc.parametrize("kind", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.heavy else []) for p in chosen])


@pytest.fixture
def cell(request, seen, kind):
    """Checks that what should be planned was, and notes the verdict for the table. Call it last."""

    def check(planned=None):
        found = [r for r in seen() if r.status == "planned"]
        if kind.planned if planned is None else planned:
            assert found, [str(r) for r in seen()]
            for report in found:
                assert report.applied is None or report.applied.ops_on_planned_device == report.applied.ops_planned, str(report)
            verdict = "pass"
        else:
            assert not found, [str(r) for r in found]
            reasons = [r.reason for r in seen() if r.status == "skipped"]
            assert kind.planned or any(kind.reason in reason for reason in reasons), reasons
            verdict = "pass" if kind.planned else f"left alone: {next(r for r in reasons if kind.reason in r)}"
        _cells.setdefault(request.module.__name__.rpartition(".")[2].removeprefix("test_"), {})[kind.name] = verdict

    return check


@pytest.fixture
def plain(kind):
    """act → its result on the program without tf_regal."""
    return lambda act: ran(kind, False, act)


@pytest.fixture
def planned(kind):
    """act → its result on the program under enable(), with every function planned, whether it pays or not."""
    return lambda act: ran(kind, True, act)


def pytest_sessionfinish(session):
    """For tools/compatibility.py: {property: {program kind: verdict}}."""
    folder = os.environ.get("TF_REGAL_CELLS")
    if folder and _cells:
        path = pathlib.Path(folder) / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.json"
        path.write_text(json.dumps(_cells))

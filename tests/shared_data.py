"""Third-party data for tests. It is no part of the repository: tests that need it are skipped where it is not there."""

import os
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def root():
    """TF_REGAL_SHARED_DATA, else shared/data beside the repository."""
    return pathlib.Path(os.environ.get("TF_REGAL_SHARED_DATA") or _ROOT.parent / "shared" / "data")


def folder(name):
    """The folder of one source, such as "google__minimalloc"; skips the test where it is absent."""
    found = root() / name
    if not found.is_dir():
        pytest.skip(f"{found} is not there; set TF_REGAL_SHARED_DATA to the folder that holds {name}")
    return found


def files(name, pattern):
    """Paths in a source's folder relative to it, sorted; [] where it is absent. For parameters of tests, which call `folder` themselves."""
    return sorted(str(path.relative_to(root() / name)) for path in (root() / name).glob(pattern))

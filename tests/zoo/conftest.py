"""`benchmarks.zoo` without the repository on the path, which would hide an installed tf_regal."""

import pathlib
import sys
import types

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"

if "benchmarks" not in sys.modules:
    _package = types.ModuleType("benchmarks")
    _package.__path__ = [str(BENCHMARKS)]
    sys.modules["benchmarks"] = _package

"""Builds the native core; everything else is in pyproject.toml."""

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

HEADERS = ("brkga", "heuristics", "local_search", "neighborhood", "objective", "paged", "problem", "random", "ranking", "simulator")
SOURCES = ("binding", "brkga", "heuristics", "local_search", "neighborhood", "problem", "ranking", "simulator")

setup(
    ext_modules=[
        Pybind11Extension(
            "tf_regal.ops._core",
            [f"tf_regal/ops/{name}.cc" for name in SOURCES],
            depends=[f"tf_regal/ops/{name}.h" for name in HEADERS],
            cxx_std=17,
            extra_compile_args=["-O3", "-Wall", "-Wextra", "-fno-math-errno"],
            extra_link_args=["-pthread"],
        )
    ]
)

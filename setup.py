"""Builds the native core; everything else is in pyproject.toml."""

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

setup(
    ext_modules=[
        Pybind11Extension(
            "tf_regal.ops._core",
            [f"tf_regal/ops/{name}.cc" for name in ("binding", "brkga", "problem", "simulator")],
            depends=[f"tf_regal/ops/{name}.h" for name in ("brkga", "problem", "simulator")],
            cxx_std=17,
            extra_compile_args=["-O3", "-Wall", "-Wextra", "-fno-math-errno"],
            extra_link_args=["-pthread"],
        )
    ]
)

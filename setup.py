"""Builds the native core; everything else is in pyproject.toml."""

from pybind11.setup_helpers import Pybind11Extension
from setuptools import find_packages, setup

HEADERS = ("brkga", "estimator", "heuristics", "local_search", "neighborhood", "objective", "paged", "partition", "problem", "random", "ranking", "simulator")
SOURCES = ("binding", "bounds", "brkga", "estimator", "heuristics", "local_search", "neighborhood", "partition", "problem", "ranking", "simulator")

setup(
    # The shipped policies are a folder of their own in the source tree, and part of the package where it is installed.
    packages=[*find_packages(include=["tf_regal*"]), "tf_regal.saved_policies"],
    package_dir={"tf_regal.saved_policies": "saved_policies"},
    package_data={
        "tf_regal": ["ops/_core.pyi", "py.typed", "views/static/*.js", "views/static/*.css", "tensorboard/http_api.md"],
        "tf_regal.saved_policies": ["*/card.json", "*/*.pb", "*/variables/*"],
    },
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

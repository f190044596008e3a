"""The repository @local_python: an installed Python with its packages, its headers and pybind11's.

It is the one that $TF_REGAL_PYTHON names (`make bazel-test` sets it to the virtual environment's), else the first python3
on the path. Nothing is downloaded and nothing of its packages is declared: tools/bazel/pip has a target without files for
each of them, so that the BUILD files say what is used.
"""

_ASK = """
import sysconfig
print(sysconfig.get_path("include"))
import pybind11
print(pybind11.get_include())
"""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "headers",
    hdrs = glob(["python/**/*.h"]),
    includes = ["python"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11/**/*.h"]),
    includes = ["."],
    deps = [":headers"],
)
"""

def _python_configure_impl(ctx):
    python = ctx.os.environ.get("TF_REGAL_PYTHON") or ctx.which("python3")
    if not python:
        fail("There is no python3 on the path: install one, or name it in TF_REGAL_PYTHON.")
    answer = ctx.execute([python, "-c", _ASK])
    if answer.return_code != 0:
        fail("%s failed: it needs its headers and the package pybind11 (pip install '.[test]').\n%s" % (python, answer.stderr))
    python_include, pybind11_include = answer.stdout.splitlines()
    if not ctx.path(python_include + "/Python.h").exists:
        fail("%s has no headers in %s (on Debian: apt-get install python3-dev)." % (python, python_include))
    ctx.symlink(python_include, "python")
    ctx.symlink(pybind11_include + "/pybind11", "pybind11")
    ctx.file("BUILD", _BUILD.format(python = python))

python_configure = repository_rule(
    implementation = _python_configure_impl,
    configure = True,
    environ = ["TF_REGAL_PYTHON", "PATH"],
    local = True,
)

"""py_test for tests that pytest runs."""

load("@rules_python//python:py_test.bzl", _py_test = "py_test")

def py_test(name, srcs, deps = [], data = [], **kwargs):
    """Runs one test file with pytest, without what is marked slow.

    Args:
        name: name of the target.
        srcs: the test file.
        deps: what it imports. The conftest.py of its folder and those above must be among them.
        data: files that it reads.
        **kwargs: as for any py_test.
    """
    if len(srcs) != 1:
        fail("%s: srcs must be one test file, not %s" % (name, srcs))
    _py_test(
        name = name,
        srcs = srcs + ["//tools/bazel:run_pytest.py"],
        args = ["$(rootpath %s)" % srcs[0]],
        data = data + ["//:pyproject.toml"],
        main = "//tools/bazel:run_pytest.py",
        deps = deps,
        **kwargs
    )

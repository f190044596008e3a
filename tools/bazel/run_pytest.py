"""Runs pytest on one file in Bazel's tree of links: run_pytest.py TEST_FILE [pytest's arguments]."""

import importlib.util
import os
import sys

import pytest

if __name__ == "__main__":
    root = os.getcwd()
    # Not the package that is installed beside pytest, perhaps; a test's deps may also be without the package.
    package = importlib.util.find_spec("tf_regal")
    if os.path.exists("tf_regal") and os.path.commonpath([root, package.origin]) != root:
        sys.exit(f"run_pytest: {package.origin} would be tested, which is not in {root}")
    arguments = ["-c", os.path.join(root, "pyproject.toml"), "--rootdir", root, "-p", "no:cacheprovider", "-m", "not slow"]
    if "XML_OUTPUT_FILE" in os.environ:
        arguments += ["--junitxml", os.environ["XML_OUTPUT_FILE"]]
    # Bazel's --test_filter, as pytest's -k.
    if os.environ.get("TESTBRIDGE_TEST_ONLY"):
        arguments += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    status = pytest.main(arguments + sys.argv[1:])
    # A file whose tests are all marked slow is no failure.
    sys.exit(0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else int(status))

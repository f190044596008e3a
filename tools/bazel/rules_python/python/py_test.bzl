"""The built-in py_test, under the name that newer versions of Bazel load it by."""

py_test = native.py_test

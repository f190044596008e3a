"""The built-in py_binary, under the name that newer versions of Bazel load it by."""

py_binary = native.py_binary

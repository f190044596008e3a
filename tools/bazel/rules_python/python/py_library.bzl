"""The built-in py_library, under the name that newer versions of Bazel load it by."""

py_library = native.py_library

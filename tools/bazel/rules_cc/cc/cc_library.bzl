"""The built-in cc_library, under the name that newer versions of Bazel load it by."""

cc_library = native.cc_library

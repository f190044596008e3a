"""The built-in cc_test, under the name that newer versions of Bazel load it by."""

cc_test = native.cc_test

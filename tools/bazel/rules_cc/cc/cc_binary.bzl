"""The built-in cc_binary, under the name that newer versions of Bazel load it by."""

cc_binary = native.cc_binary

# Builds, shows and tests tf-regal; `make help` lists the targets.
#
# Needs GNU make, a C++17 compiler and Python 3.10 to 3.12 with its headers and its venv module. Everything else is
# installed into $(VENV) with pip. Variables: PYTHON (which Python), VENV (where to install), JOBS (test processes at
# once), PYTEST_ARGS (more arguments for pytest), BAZEL, BAZEL_ARGS, BAZEL_TARGETS.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

# The source tree must not shadow what is installed.
unexport PYTHONPATH

ifndef PYTHON
PYTHON := $(shell for p in python3 python3.12 python3.11 python3.10; do \
  $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$p && break; done)
endif
VENV ?= .venv
JOBS ?= 2
BAZEL ?= bazel
PYTEST_ARGS ?=
BAZEL_ARGS ?=
# Not //...: virtual environments hold BUILD files, too.
BAZEL_TARGETS ?= //:all $(patsubst %/BUILD,//%/...,$(filter-out bazel-%,$(sort $(wildcard */BUILD))))

BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Memory rather than processors sets the limit of JOBS: every process that imports TensorFlow takes about 1 GB. A file's
# tests stay in one process, so that TensorFlow is imported, and a fixture of a module made, once.
# In tests/, because the directory where a Python program is started may be on its path: the sources must not be.
PYTEST := HYPOTHESIS_STORAGE_DIRECTORY=$(CURDIR)/.hypothesis $(BIN)/pytest -n $(JOBS) --dist loadfile
PYTEST_INSTALLED := cd tests && TF_REGAL_TEST_INSTALLED=1 $(PYTEST)

# All that ends up in the wheel, and how it is made.
SOURCES := $(sort $(shell find tf_regal saved_policies -type f ! -name '*.py[co]' ! -name '*.so' ! -name BUILD 2>/dev/null) \
  $(wildcard pyproject.toml setup.py setup.cfg MANIFEST.in README.md LICENSE))

.PHONY: help
help:  ## print this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
	  printf '  make %-12s %s\n' "$$target" "$$text"; done

.PHONY: demo
demo: $(VENV)/.installed  ## build, install and show a small model before and after planning
	$(BIN)/tf-regal demo

.PHONY: install
install: $(VENV)/.installed  ## build the wheel and install it into .venv

.PHONY: test
test: $(VENV)/.test-tools  ## all tests, on the installed wheel
	$(PYTEST_INSTALLED) $(PYTEST_ARGS)

.PHONY: test-fast
test-fast: $(VENV)/.test-tools  ## the tests that are not marked slow
	$(PYTEST_INSTALLED) -m "not slow" $(PYTEST_ARGS)

# Each version in a virtual environment of its own; `make compat VERSIONS=2.19 COMPAT_ARGS="-m 'not slow'"` for less.
VERSIONS ?= 2.19 2.20 2.21
COMPAT_ARGS ?=
COMPAT_TESTS := hook rewrite conformance test_tf_private.py

.PHONY: compat
compat: $(VENV)/.wheel  ## the tests of the hook on each supported version of TensorFlow
	@set -e; for version in $(VERSIONS); do \
	  venv=$(abspath $(VENV))/tensorflow-$$version; \
	  [ -x $$venv/bin/python ] || $(BIN)/python -m venv $$venv; \
	  echo "TensorFlow $$version: installing"; \
	  $$venv/bin/python -m pip --disable-pip-version-check --quiet install --force-reinstall --no-deps $(VENV)/wheel/*.whl; \
	  $$venv/bin/python -m pip --disable-pip-version-check --quiet install tf-regal "tensorflow==$$version.*" "tf-keras==$$version.*" "pytest>=8" "pytest-xdist>=3.6"; \
	  (cd tests && TF_REGAL_TEST_INSTALLED=1 $$venv/bin/pytest -n $(JOBS) --dist loadfile $(COMPAT_TESTS) $(COMPAT_ARGS)) || exit 1; \
	done

.PHONY: lint
lint: $(VENV)/.test-tools  ## ruff, and buildifier where it is installed
	$(BIN)/ruff check .
	@if command -v buildifier >/dev/null; then \
	  set -x; buildifier -mode=check -lint=warn $$($(BIN)/python tools/update_build_files.py --list) WORKSPACE; fi

.PHONY: build-files
build-files: $(VENV)/.python  ## bring the BUILD files in step with the sources
	$(BIN)/python tools/update_build_files.py

# The server must not outlive the command: it would keep a gigabyte and, in CI, the job.
.PHONY: bazel-test
bazel-test: $(VENV)/.test-tools  ## build and test with Bazel, offline; no TensorFlow
	@command -v $(BAZEL) >/dev/null || { echo "bazel-test: $(BAZEL) is not installed; on Debian: apt-get install $(BAZEL_PACKAGES)"; exit 1; }
	@export TF_REGAL_PYTHON=$(BIN)/python PATH=$(BIN):$$PATH; trap '$(BAZEL) shutdown' EXIT; set -x; \
	  $(BAZEL) test $(BAZEL_CONFIG) $(BAZEL_ARGS) $(BAZEL_TARGETS)

# Debian's Bazel finds its rules where these packages put them (.bazelrc); any other downloads them.
BAZEL_CONFIG := $(if $(wildcard /usr/share/bazel/rules/java),--config=debian)
BAZEL_PACKAGES := bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms bazel-skylib

.PHONY: bazel-packages
bazel-packages:  # for .ci/run
	@echo $(BAZEL_PACKAGES)

# Memory errors and undefined behaviour end the process, and so fail the test; the reports are in files because pytest
# captures what a process writes. Leaks are not looked for: Python itself does not free everything at its end.
SANITIZED := $(CURDIR)/out/sanitize
SANITIZE_FLAGS := -std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_ENV := ASAN_OPTIONS=detect_leaks=0:log_path=$(SANITIZED)/report UBSAN_OPTIONS=print_stacktrace=1:log_path=$(SANITIZED)/report
SANITIZED_OBJECTS := $(patsubst tf_regal/ops/%.cc,$(SANITIZED)/%.o,$(sort $(wildcard tf_regal/ops/*.cc)))

.PHONY: sanitize
sanitize: $(VENV)/.test-tools  ## tests of the native core, built with GCC's address and undefined behaviour sanitizers
	@$(MAKE) --no-print-directory -j $(JOBS) $(SANITIZED)/core_test $(SANITIZED)/_core.so
	@rm -rf $(SANITIZED)/report.* $(SANITIZED)/package
	$(SANITIZE_ENV) $(SANITIZED)/core_test || { cat $(SANITIZED)/report.* 2>/dev/null; exit 1; }
	@mkdir $(SANITIZED)/package && cp -R tf_regal $(SANITIZED)/package/ && rm -f $(SANITIZED)/package/tf_regal/ops/*.so
	@cp $(SANITIZED)/_core.so $(SANITIZED)/package/tf_regal/ops/
	@# The sanitizers' libraries must come before all others, and with them libstdc++, whose exceptions they watch.
	cd tests && export $(SANITIZE_ENV) PYTHONPATH=$(SANITIZED)/package LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" && \
	  $(BIN)/python -c 'import sys, tf_regal.ops._core as core; sys.exit(core.__file__ != "$(SANITIZED)/package/tf_regal/ops/_core.so")' && \
	  $(PYTEST) --max-worker-restart 0 -m "not slow" ops $(PYTEST_ARGS) || { cat $(SANITIZED)/report.* 2>/dev/null; exit 1; }

$(SANITIZED)/%.o: tf_regal/ops/%.cc $(wildcard tf_regal/ops/*.h) | $(VENV)/.test-tools
	@mkdir -p $(@D)
	$(CXX) $(SANITIZE_FLAGS) -fPIC -fvisibility=hidden $$($(BIN)/python -m pybind11 --includes) -c $< -o $@

$(SANITIZED)/_core.so: $(SANITIZED_OBJECTS)
	$(CXX) $(SANITIZE_FLAGS) -shared $^ -pthread -o $@

$(SANITIZED)/core_test: tests/ops/core_test.cc $(filter-out %/binding.o,$(SANITIZED_OBJECTS))
	$(CXX) $(SANITIZE_FLAGS) -I. $^ -pthread -o $@

.PHONY: browser-tools
browser-tools: $(VENV)/.test-tools  ## playwright-core, for the tests that drive a browser (with npm; they need node and chromium, too)
	npm install --no-audit --no-fund --loglevel=error --prefix $(VENV)/browser playwright-core@1

.PHONY: clean
clean:  ## remove everything that was built, and the virtual environment
	rm -rf $(VENV) build dist out *.egg-info .pytest_cache .ruff_cache .hypothesis tests/.hypothesis
	find tf_regal tests tools -name __pycache__ -prune -exec rm -rf {} +

# Set-up. Each stamp stands for one state of $(VENV) and lives in it, so that removing the directory starts anew.

.PHONY: FORCE
FORCE:

# Made anew only where there is none of this version of Python: one that was made by hand is kept.
$(VENV)/.python: FORCE
	@$(if $(PYTHON),,$(error No Python 3.10, 3.11 or 3.12 was found: install one, or name it with make PYTHON=...))
	@print='import sys; print("%d.%d" % sys.version_info[:2])'; \
	version=$$($(PYTHON) -c "$$print") || exit 1; \
	if [ "$$($(BIN)/python -c "$$print" 2>/dev/null)" != "$$version" ]; then \
	  echo "making $(VENV) with Python $$version"; \
	  $(PYTHON) -m venv --clear $(VENV) || exit 1; \
	fi; \
	if [ "$$(cat $@ 2>/dev/null)" != "$$version" ]; then echo "$$version" >$@; fi

# The names of the sources: one that was removed makes a new wheel, too.
$(VENV)/.sources: $(VENV)/.python FORCE
	@printf '%s\n' $(SOURCES) >$@.new; \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# setuptools would put what it finds in build/ into the wheel, even modules that are gone.
$(VENV)/.wheel: $(VENV)/.sources $(SOURCES)
	@echo "building the wheel"
	@rm -rf build *.egg-info $(VENV)/wheel
	$(PIP) wheel --no-deps --wheel-dir $(VENV)/wheel .
	@rm -rf build *.egg-info
	@touch $@

$(VENV)/.installed: $(VENV)/.wheel
	@echo "installing into $(VENV) (the first time TensorFlow, too: some minutes)"
	$(PIP) install $(VENV)/wheel/*.whl
	$(PIP) install --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@touch $@

$(VENV)/.test-tools: pyproject.toml $(VENV)/.installed
	@if [ ! -e $@ ] || [ pyproject.toml -nt $@ ]; then \
	  echo "installing what the tests need"; \
	  $(PIP) install "$$(echo $(VENV)/wheel/*.whl)[test]"; \
	fi
	@touch $@

# A newcomer needs two commands, `make demo` and `make test`; `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
TORCH_VERSION ?= 2.13.0
SETUP ?= auto
JOBS ?= $(shell nproc)
PIP_ARGS ?=
CMAKE_ARGS ?=

# Another PyTorch gets its own environment and build folder, so that both stay usable.
suffix := $(if $(filter 2.13.0,$(TORCH_VERSION)),,-$(TORCH_VERSION))
ifeq ($(SETUP),none)
  suffix := -none
  PY := $(PYTHON)
  ready :=
  ready_to_lint :=
else
  VENV := .venv$(suffix)
  PY := $(CURDIR)/$(VENV)/bin/python
  ready := $(VENV)/.ready
  ready_to_lint := $(VENV)/.ready-to-lint
  export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
endif
BUILD := build/main$(suffix)
RESULTS := build/results$(suffix)
TALLY := $(PY) tools/tally.py

gpu := $(wildcard /dev/nvidia[0-9]*)
ctest := ctest --output-on-failure --no-tests=error -j$(JOBS) $(if $(gpu),,-LE gpu)
cxx_files := $(shell find src adapters python tests benchmarks examples \
               -name '*.h' -o -name '*.cpp' 2>/dev/null)
py_folders := python tests tools examples benchmarks
package_files := $(shell find src adapters python cmake -type f -not -name '*.pyc') \
                 CMakeLists.txt pyproject.toml
configure = cmake -S . -G Ninja -DPython_EXECUTABLE=$$(command -v $(PY)) $(CMAKE_ARGS)

.PHONY: help demo test check conformance format clean build package

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Variables: TORCH_VERSION=$(TORCH_VERSION)  PYTHON=$(PYTHON)  JOBS=$(JOBS)  PIP_ARGS=  CMAKE_ARGS='
	@echo '           SETUP=none uses PYTHON and the installed tools as they are and installs nothing'

demo: package ## train three networks at 100, 50 and 25 % of their peak
	$(run_python) examples/python/demo.py --out build/demo_report.html

# --- environment ----------------------------------------------------------------------------------

ifneq ($(SETUP),none)
constraints := $(wildcard requirements/constraints.txt requirements/constraints-$(TORCH_VERSION).txt)

$(ready): requirements/build.txt requirements/test.txt $(constraints)
	tools/install_packages.sh $(PYTHON) build
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q $(PIP_ARGS) torch==$(TORCH_VERSION) $(addprefix -c ,$(constraints)) \
	  -r requirements/build.txt -r requirements/test.txt
	touch $@

$(ready_to_lint): requirements/lint.txt | $(ready)
	tools/install_packages.sh $(PYTHON) check
	$(PY) -m pip install -q $(PIP_ARGS) -r requirements/lint.txt
	touch $@
endif

# --- build ----------------------------------------------------------------------------------------

$(BUILD)/build.ninja: | $(ready)
	$(configure) -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHEADWATER_PYTHON=ON \
	  -DHEADWATER_TESTS=ON -DHEADWATER_BENCHMARKS=$(if $(filter none,$(SETUP)),OFF,ON)

build: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j$(JOBS)

package: $(BUILD)/.package

# The wheel is made in the same build folder, so nothing is compiled twice.
$(BUILD)/.package: $(package_files) | $(BUILD)/build.ninja
	cmake --build $(BUILD) -j$(JOBS) --target headwater_python
ifeq ($(SETUP),none)
	rm -rf $(BUILD)/site
	cmake --install $(BUILD) --prefix $(BUILD)/site --component python
else
	$(PY) -m pip install -q --no-build-isolation --no-deps --force-reinstall \
	  -C build-dir=$(BUILD) .
endif
	touch $@

# Absolute, since tests start processes elsewhere. The first folder exists only without an environment.
run_python = PYTHONPATH=$(CURDIR)/$(BUILD)/site:$(CURDIR)/$(BUILD)/test_modules $(PY)

# --- tests ----------------------------------------------------------------------------------------

tests := cpp-tests python-tests consumer cpp-example
.PHONY: $(tests)

test: build package ## C++ tests, Python tests, a program against the installed package
	@rm -rf $(RESULTS)/test
	@for step in $(tests); do $(TALLY) run $(RESULTS)/test $$step -- $(MAKE) $$step; done
	@$(TALLY) close $(RESULTS)/test

cpp-tests:
	$(ctest) --test-dir $(BUILD) --output-junit $(CURDIR)/$(RESULTS)/test/$@.xml

python-tests:
	$(run_python) -m pytest -q tests/python --junitxml=$(RESULTS)/test/$@.xml

consumer: $(BUILD)/prefix
	cmake -S tests/consumer -B $(BUILD)/$@ -G Ninja -DCMAKE_PREFIX_PATH=$(CURDIR)/$<
	cmake --build $(BUILD)/$@
	$(BUILD)/$@/consumer

cpp-example: $(BUILD)/prefix
	cmake -S examples/cpp -B $(BUILD)/$@ -G Ninja -DCMAKE_PREFIX_PATH=$(CURDIR)/$< \
	  -DPython_EXECUTABLE=$$(command -v $(PY))
	cmake --build $(BUILD)/$@
	$(BUILD)/$@/train_mlp

.PHONY: $(BUILD)/prefix
$(BUILD)/prefix:
	cmake --install $(BUILD) --prefix $@ --component cpp >/dev/null

# For .ci/run: the folder depends on the variables.
.PHONY: results-folder
results-folder:
	@echo $(RESULTS)

# Not part of `test`: a machine with a GPU runs them there too, one after the other.
.PHONY: gpu-tests
gpu-tests: build package ## tests that need a GPU, side by side
	$(ctest) --test-dir $(BUILD) -L gpu
	$(run_python) tools/gpu_tests.py --processes $(JOBS)

conformance: build package ## all of PyTorch's op samples at the smallest budget
	@rm -rf $(RESULTS)/conformance
	@$(TALLY) run $(RESULTS)/conformance op-samples -- $(MAKE) op-samples
	@$(TALLY) close $(RESULTS)/conformance

.PHONY: op-samples
op-samples:
	$(run_python) -m tests.conformance.op_db --fraction 1 --device $(if $(gpu),cuda,cpu) \
	  --json $(RESULTS)/conformance/$@.report.json

# --- checks ---------------------------------------------------------------------------------------

checks := clang-format ruff mypy layers docs thread-safety asan tsan asan-torch clang-tidy
.PHONY: $(checks)

check: $(ready_to_lint) build package ## format, lint, layers, lock annotations, sanitizers
	@rm -rf $(RESULTS)/check
	@for step in $(checks); do $(TALLY) run $(RESULTS)/check $$step -- $(MAKE) $$step; done
	@$(TALLY) close $(RESULTS)/check

clang-format:
	clang-format --dry-run -Werror $(cxx_files)

ruff:
	ruff format --check $(py_folders)
	ruff check $(py_folders)

mypy:
	$(PY) -m mypy --python-executable $(PY)

layers:
	$(PY) tools/check_layers.py .

docs:
	$(PY) tools/check_docs.py .

thread-safety:
	$(configure) --preset $@
	cmake --build --preset $@ -j$(JOBS)

asan tsan:
	$(configure) --preset $@
	cmake --build --preset $@ -j$(JOBS)
	$(no_aslr) $(ctest) --test-dir build/$@ -LE gpu \
	  --output-junit $(CURDIR)/$(RESULTS)/check/$@.xml

# PyTorch is not instrumented and keeps memory to the end of the process, so leaks are not counted.
asan-torch:
	$(configure) --preset $@
	cmake --build --preset $@ -j$(JOBS) --target torch_adapter_tests
	ASAN_OPTIONS=detect_leaks=0 $(ctest) --test-dir build/$@ -L torch -LE gpu \
	  --output-junit $(CURDIR)/$(RESULTS)/check/$@.xml

clang-tidy:
	$(configure) --preset tidy
	find src adapters python -name '*.cpp' -print0 | xargs -0 -n1 -P$(JOBS) \
	  clang-tidy --quiet -p build/tidy

# Shadow memory of the thread sanitizer clashes with randomised addresses on recent kernels.
no_aslr = $$(setarch $$(uname -m) -R true 2>/dev/null && echo "setarch $$(uname -m) -R" || true)

format: $(ready_to_lint) ## rewrite the sources in the project's format
	clang-format -i $(cxx_files)
	ruff check -q --fix $(py_folders) || true
	ruff format $(py_folders)

clean: ## remove what was built; environments stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

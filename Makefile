# `make sample`: install the core and draw sets. `make test`: install everything and check everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# hundreds of processes of the tests start from the sources, which are compiled once and not by each of them
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help sample test test-all smoke lint style types units docs bench bench-check gpu audit others clean

help:
	@echo "make sample   draw two sets of procedural Shapes3D images with a fixed wall hue"
	@echo "make test     linters, types, layers, tests, doctests: 4 minutes on two cores, 5 the first time"
	@echo "make test-all also the long tests (fuzzing, kills, trainings, wheels, clusters), documentation, benchmarks shrunk"
	@echo "make smoke    every experiment, shrunk to seconds; subcommands killed 50 times each; more ranks: 40 minutes"
	@echo "make bench    measure speed against peers and hardware limits, in an environment of its own"
	@echo "make gpu      check and measure what needs a GPU, and resume; make gpu SHRINK=1 runs it all in seconds without one"
	@echo "make audit    count the batches that break what their sampler promises, of setsup and of its peers"
	@echo "make bench-check   that each benchmark runs: all of them shrunk to seconds"
	@echo "make clean    remove the environments and tool output"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("setsup needs Python 3.11 or newer, not " + sys.version.split()[0] + ": make $(MAKECMDGOALS) PYTHON=python3.11")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "this Python lacks the venv module: apt install python3-venv, or make $(MAKECMDGOALS) PYTHON=another python"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade --constraint constraints.txt pip || echo "pip was not upgraded: an old one takes longer"

# a stamp says which extras the environment has; it ages when the requirements change
$(STAMPS)/core: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing the core of setsup into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/all: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing setsup with all its extras, and what its tests need, into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable ".[all,docs,dev]"
	@mkdir -p $(STAMPS) && touch $(STAMPS)/core $@

sample: $(STAMPS)/core
	@$(BIN)/setsup sample --inactive wall_hue

lint: style types

style: $(STAMPS)/all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMPS)/all
	$(BIN)/mypy

docs: $(STAMPS)/all
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# more processes than cores: a test that waits, for a process or a page, leaves its core to another; the long ones wait more
CORES := $$(getconf _NPROCESSORS_ONLN)
PYTEST := $(BIN)/python -m pytest --dist loadfile --numprocesses
# tests of code of other libraries, which are installed beside the benchmarks; on one core, beside types and docs
OTHERS := tests/docs/test_other_libraries.py tests/datasets/own/captures/test_pycolmap.py

units: $(STAMPS)/all
	$(PYTEST) $$(($(CORES) + 1)) --doctest-modules

# mypy uses one core, and the tests wait for processes that they start: together they take less time
test: $(STAMPS)/all
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory --jobs=2 types units

ifdef CI
# what takes long comes last, and both tiers are one run, which collects the tests once
test-all: $(STAMPS)/all
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory --jobs=2 others types-docs-tests

.PHONY: types-docs-tests # beside the benchmarks, which use one core for the first minutes
types-docs-tests: $(STAMPS)/all
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory docs
	-@$(BIN)/python -m pytest --collect-only --quiet >/dev/null # one process compiles the tests, not each of several
	$(PYTEST) $$(($(CORES) + 2)) --doctest-modules $(addprefix --ignore=,$(OTHERS)) -m "not smoke"
else
# properties are checked again with random examples, but in CI, where the same commit has the same result
test-all: test
	@$(MAKE) --no-print-directory --jobs=2 docs others
	$(PYTEST) $$(($(CORES) + 2)) $(addprefix --ignore=,$(OTHERS)) -m "(long or hypothesis) and not smoke" --hypothesis-profile random
endif

smoke: $(STAMPS)/all
	$(BIN)/python -m pytest -m smoke

bench: $(STAMPS)/all
	@$(BIN)/python benchmarks/install_peers.py .venv-bench
	@.venv-bench/bin/python -m benchmarks --json setsup-bench.json

# a machine with a GPU often has no network, and torch of its own: where there is no .venv, nothing is installed
GPU_PYTHON ?= $(or $(wildcard $(BIN)/python),$(PYTHON))

gpu:
	-@$(GPU_PYTHON) -c "import sys; from setsup_cli.main import main; sys.exit(main(['doctor', '--gpu', '--quiet']))"
	@$(GPU_PYTHON) -m benchmarks gpu $(if $(SHRINK),--shrink --json setsup-gpu-shrunk.json,--resume --json setsup-gpu.json)

audit: $(STAMPS)/all
	@$(BIN)/python benchmarks/install_peers.py .venv-bench
	@.venv-bench/bin/python -m benchmarks.sampler_audit

bench-check: $(STAMPS)/all
	@$(BIN)/python benchmarks/install_peers.py .venv-bench
	@.venv-bench/bin/python -m benchmarks --shrink
	@.venv-bench/bin/python -m benchmarks.sampler_audit --shrink

others: bench-check
	.venv-bench/bin/python -m pytest -m "not smoke" $(OTHERS)

clean:
	rm -rf $(VENV) .venv-bench setsup-bench.json setsup-gpu*.json site setsup-samples .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

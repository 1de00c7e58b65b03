# Everything here makes its own environment in .venv from a bare Python; a second call is quick.
#
#   make demo        learn to read handwritten digits       make lint    style and format
#   make test        the tests, without PyTorch             make types   types of the core
#   make test-full   all tests, PyTorch and backends        make bench   the benchmarks
#   make clean       remove what was made
#
#   PYTHON=python3.12   the Python to build on         DEVICE=C       the device of the demo
#   ARGS='-k softmax'   more arguments of a command    JOBS=0         tests in one process

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto
ARGS ?=
# What PyTorch to compare with. Where the default package is a build for GPUs, of several gigabytes,
# the CPU build does: TORCH='torch==2.13.0 --index-url ADDRESS', with the address for "CPU" that
# PyTorch's installation page gives.
TORCH ?= torch==2.13.0
# libraries that take tensors: the tests give them some
LIBRARIES := scipy scikit-learn array-api-compat einops

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# The first Python that runs and is new enough. `PYTHON=...` overrules it.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if $$name -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then command -v $$name; break; fi; done)

.PHONY: help demo test test-full lint types bench clean

help:
	@sed -n 's/^#   /  /p' Makefile

demo: $(VENV)/demo
	$(if $(DEVICE),DEVICE='$(DEVICE)') $(BIN)/python examples/digits.py $(ARGS)

test: $(VENV)/dev
	$(BIN)/python -m pytest -n $(JOBS) -m 'not full' $(ARGS)

test-full: $(VENV)/full
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

lint: $(VENV)/dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(VENV)/dev
	$(BIN)/python -m mypy

# Each prints its own table; PyTorch stands beside it. (The whole suite: treadle bench --torch.)
bench: $(VENV)/full
	$(BIN)/python -m treadle bench --quick --torch
	@for file in $(sort $(wildcard bench/[a-z]*.py)); do \
		echo "== $$file"; $(BIN)/python $$file $(ARGS) || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis digits.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Each file below is a mark that a step is done; pyproject.toml renews the installs.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

ifneq ($(shell $(BIN)/python -c 'print("runs")' 2>/dev/null),runs)
.PHONY: $(VENV)/made # absent, or its Python is gone: make it anew
endif

$(VENV)/made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "treadle needs Python 3.11 or newer, and none was found. Install one, or name it:" >&2; \
		echo "  make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; fi
	@if ! "$(PYTHON)" -c '$(NEW_ENOUGH)'; then \
		echo "treadle needs Python 3.11 or newer; $(PYTHON) is older, or does not run" >&2; exit 1; fi
	rm -rf $(VENV)
	@echo "$(PYTHON) -m venv $(VENV)"; if ! "$(PYTHON)" -m venv $(VENV); then rm -rf $(VENV); \
		echo "$(PYTHON) cannot make environments (on Debian, install python3-venv)" >&2; exit 1; fi
	@touch $@

$(VENV)/demo: $(VENV)/made pyproject.toml
	$(INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml
	$(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/full: $(VENV)/dev
	$(INSTALL) $(TORCH)
	$(INSTALL) $(LIBRARIES)
	@touch $@

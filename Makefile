# Every target sets up what it needs: a fresh clone and `make test` is enough.

PYTHON ?= python3
SOAK ?= 1
JOBS ?= auto
# The data sets of the experiments that are not shipped: `make experiments DATA=FOLDER`.
DATA ?=
FIGURE ?= all
OUT ?= $(if $(DATA),docs/experiments,experiments)
BIN := .venv/bin
STAMP := .venv/.installed
OPACUS_STAMP := .venv/.installed-opacus
DIFFPRIVLIB_BIN := .venv-diffprivlib/bin
DIFFPRIVLIB_STAMP := .venv-diffprivlib/.installed
ENGINES_STAMP := .venv/.installed-engines
BENCH_STAMP := .venv/.installed-bench
WEB_STAMP := .venv/.installed-web
AXE := build/npm/node_modules/axe-core/axe.min.js

# Each worker is one process: more threads inside it would only compete.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
TEST := $(ONE_THREAD) $(BIN)/pytest -n $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-opacus test-diffprivlib test-engines test-web soak lint format bench figures experiments clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## create .venv with everything for development
	@:

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "error: privselect needs Python 3.11 or newer as '$(PYTHON)'; name another with: make PYTHON=python3.12 install" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "error: '$(PYTHON)' has no venv or pip module; on Debian and Ubuntu: apt-get install python3-venv python3-pip" >&2; exit 1; }
	@echo "installing privselect and its development tools into .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: install  ## the main job: plan a budget, tune a model on real digits in private, certify, verify and report; into demo/
	$(BIN)/privselect demo
	$(BIN)/privselect verify demo/certificate.json --plan demo.toml

test: install  ## the tests, in a few minutes
	$(TEST)

test-all: install  ## what `make test` leaves out: slow tests, Opacus, diffprivlib, Dask and Ray, the browser, a tenth of the long campaigns
	$(TEST) -m slow
	$(MAKE) test-opacus
	$(MAKE) test-diffprivlib
	$(MAKE) test-engines
	$(MAKE) test-web
	$(MAKE) soak SOAK=0.1

test-opacus: $(OPACUS_STAMP)  ## against real training runs of Opacus, which this installs
	$(TEST) -m opacus

$(OPACUS_STAMP): $(STAMP)
	@echo "installing Opacus and torch into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[opacus]'
	@touch $@

# Its models need an older scikit-learn than all else here.
test-diffprivlib: $(DIFFPRIVLIB_STAMP)  ## with models of diffprivlib, which this installs into an environment of its own
	$(ONE_THREAD) $(DIFFPRIVLIB_BIN)/pytest -m diffprivlib tests/integrations/test_diffprivlib.py tests/test_readme.py

$(DIFFPRIVLIB_STAMP): $(STAMP)
	@echo "installing diffprivlib into .venv-diffprivlib"
	@test -x $(DIFFPRIVLIB_BIN)/python || $(PYTHON) -m venv .venv-diffprivlib
	@$(DIFFPRIVLIB_BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[cli,diffprivlib]' 'pytest>=9.0' 'hypothesis>=6.100'
	@touch $@

test-engines: $(ENGINES_STAMP)  ## on real local clusters of Dask and Ray, which this installs
	$(BIN)/pytest -m engines

$(ENGINES_STAMP): $(STAMP)
	@echo "installing Dask and Ray into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dask,ray]'
	@touch $@

# One process: the pages are to be quick, and each test would wait for the other's.
test-web: $(WEB_STAMP)  ## the planner page and the report in a real Chromium, and the whole API; installs Playwright, axe-core and Schemathesis
	$(ONE_THREAD) AXE=$(CURDIR)/$(AXE) $(BIN)/pytest -m browser

$(WEB_STAMP): $(STAMP)
	@command -v chromium >/dev/null || { echo "error: the tests of the page need Chromium; on Debian: apt-get install chromium" >&2; exit 1; }
	@command -v npm >/dev/null || { echo "error: the tests of the page need npm, for axe-core; on Debian: apt-get install npm" >&2; exit 1; }
	@echo "installing Playwright, axe-core and Schemathesis"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[test-web]'
	@npm install --silent --no-audit --no-fund --prefix build/npm axe-core@4
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@echo "installing prv-accountant into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[bench]'
	@touch $@

soak: install  ## long campaigns; SOAK=0.1 runs a tenth of them
	PRIVSELECT_SOAK=$(SOAK) $(TEST) -m soak

lint: install  ## ruff, the formatter's check and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: install  ## let ruff rewrite the files
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(BENCH_STAMP) $(OPACUS_STAMP) $(WEB_STAMP)  ## speed, memory and tightness against the other accountants
	$(ONE_THREAD) $(BIN)/python benchmarks/run.py

# What was trained is kept in experiments/, so a run that was stopped goes on from there.
experiments: $(OPACUS_STAMP)  ## what exact accounting buys, measured again: into docs/experiments with DATA=FOLDER, without it a part into experiments/
	@mkdir -p $(OUT)
	$(ONE_THREAD) $(BIN)/python -m research.experiments.headline --out $(OUT)
	$(ONE_THREAD) $(BIN)/python -m research.experiments.accuracy --out $(OUT) $(if $(DATA),--data $(DATA))
	$(if $(DATA),$(BIN)/python -m research.experiments.pages .)

clean:  ## remove everything that make creates
	rm -rf .venv .venv-diffprivlib build dist demo experiments figures demo.ledger demo.toml .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src research tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

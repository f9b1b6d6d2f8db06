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

help:  ## list all targets
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

demo: install  ## a complete example, into demo/: plan a budget, tune a model of real digits privately, certify, verify and report
	$(BIN)/privselect demo
	$(BIN)/privselect verify demo/certificate.json --plan demo.toml

test: install  ## run the tests, in a few minutes
	$(TEST)

test-all: install  ## run what `make test` leaves out: slow tests, Opacus, diffprivlib, Dask and Ray, the browser, a tenth of the long campaigns
	$(TEST) -m slow
	$(MAKE) test-opacus
	$(MAKE) test-diffprivlib
	$(MAKE) test-engines
	$(MAKE) test-web
	$(MAKE) soak SOAK=0.1

test-opacus: $(OPACUS_STAMP)  ## run the tests with real Opacus training (installs Opacus)
	$(TEST) -m opacus

$(OPACUS_STAMP): $(STAMP)
	@echo "installing Opacus and torch into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[opacus]'
	@touch $@

# diffprivlib needs an older scikit-learn than everything else.
test-diffprivlib: $(DIFFPRIVLIB_STAMP)  ## run the tests with diffprivlib models (installs a second environment)
	$(ONE_THREAD) $(DIFFPRIVLIB_BIN)/pytest -m diffprivlib tests/integrations/test_diffprivlib.py tests/test_readme.py

$(DIFFPRIVLIB_STAMP): $(STAMP)
	@echo "installing diffprivlib into .venv-diffprivlib"
	@test -x $(DIFFPRIVLIB_BIN)/python || $(PYTHON) -m venv .venv-diffprivlib
	@$(DIFFPRIVLIB_BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[cli,diffprivlib]' 'pytest>=9.0' 'hypothesis>=6.100'
	@touch $@

test-engines: $(ENGINES_STAMP)  ## run the tests on real local clusters of Dask and Ray (installs both)
	$(BIN)/pytest -m engines

$(ENGINES_STAMP): $(STAMP)
	@echo "installing Dask and Ray into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dask,ray]'
	@touch $@

# One process: the tests check response times, so they must not compete.
test-web: $(WEB_STAMP)  ## test the planner page and the report in Chromium, and fuzz the API (installs Playwright, axe-core and Schemathesis)
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

soak: install  ## run the long campaigns; SOAK=0.1 runs a tenth
	PRIVSELECT_SOAK=$(SOAK) $(TEST) -m soak

lint: install  ## run ruff, the format check and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: install  ## let ruff rewrite the files
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(BENCH_STAMP) $(OPACUS_STAMP) $(WEB_STAMP)  ## measure speed, memory and tightness against other accountants
	$(ONE_THREAD) $(BIN)/python benchmarks/run.py

figures: install  ## draw figures 1 to 8 of the paper with the exact bound into figures/ (FIGURE=3 draws one, DATA=FOLDER measures figure 5 again)
	$(ONE_THREAD) $(BIN)/python -m research.figures $(FIGURE) --out figures $(if $(DATA),--data $(DATA))

# Trained models are kept in experiments/, so an interrupted run continues from there.
experiments: $(OPACUS_STAMP)  ## measure what exact accounting and two stages gain: into docs/experiments with DATA=FOLDER, otherwise a part of it into experiments/
	@mkdir -p $(OUT)
	$(ONE_THREAD) $(BIN)/python -m research.experiments.headline --out $(OUT)
	$(ONE_THREAD) $(BIN)/python -m research.experiments.accuracy --out $(OUT) $(if $(DATA),--data $(DATA))
	$(ONE_THREAD) $(BIN)/python -m research.experiments.two_stages --out $(OUT) $(if $(DATA),--data $(DATA))
	$(if $(DATA),$(BIN)/python -m research.experiments.pages .)

clean:  ## remove everything that make creates
	rm -rf .venv .venv-diffprivlib build dist demo experiments figures demo.ledger demo.toml .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src research tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

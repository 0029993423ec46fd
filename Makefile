# Everything happens in a virtual environment inside the checkout; nothing global is touched.
# Needs Python 3.11 to 3.13 with venv, and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Versions that CI has tested; an empty value takes the newest ones that pyproject.toml admits.
CONSTRAINTS ?= constraints.txt
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))

# What is cached lies in the environment too: data sets that tests fetch (one that is there is not fetched again),
# packages, fonts, what Dask and Jupyter write. Compiled kernels lie beside the package.
export XDG_CACHE_HOME := $(abspath $(VENV))/cache
export PIP_CACHE_DIR := $(XDG_CACHE_HOME)/pip
export MPLCONFIGDIR := $(XDG_CACHE_HOME)/matplotlib
export DASK_CONFIG := $(XDG_CACHE_HOME)/dask
export IPYTHONDIR := $(XDG_CACHE_HOME)/ipython
export JUPYTER_RUNTIME_DIR := $(XDG_CACHE_HOME)/jupyter
# Tests start a thousand processes; where Python may keep no bytecode, each would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test verification test-room lint docs notebooks package benchmark clean

help: ## List the targets with what each does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "p2psim needs Python 3.11 to 3.13; name one with: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[data]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) --editable '.[data,test,docs,notebooks,dask]'
	@touch $@ $(VENV)/.installed-demo

demo: $(VENV)/.installed-demo ## Install, run three_banks, draw its figures
	$(BIN)/p2psim run scenarios/three_banks.yaml
	$(BIN)/p2psim plot runs/three-banks

test: $(VENV)/.installed-test ## Install, run all tests but the slow verification
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not verification'

verification: $(VENV)/.installed-test ## Fetch a data set, run slow statistical tests
	$(BIN)/p2psim data fetch movielens-100k --yes
	$(BIN)/python -m pytest -n auto --dist worksteal -m verification

test-room: $(VENV)/.installed-test ## Run the tests of one room: make test-room ROOM=network
	$(BIN)/python -m pytest -n auto -m 'not verification' tests/$(ROOM)

lint: $(VENV)/.installed-test ## Run ruff and mypy
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

docs: $(VENV)/.installed-test ## Build the documentation into site/
	$(BIN)/python -m zensical build --clean --strict

notebooks: $(VENV)/.installed-test ## Execute the notebooks at small size
	$(BIN)/python notebooks/run_all.py

package: $(VENV)/.installed-demo ## Build wheel and sdist in dist/, and use the wheel outside of the checkout
	VENV=$(VENV) .ci/package

benchmark: $(VENV)/.installed-demo ## Measure against the baselines, side by side
	$(BIN)/python benchmarks/run.py

clean: ## Remove the environment and what was built
	rm -rf $(VENV) build dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find p2psim tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

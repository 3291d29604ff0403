# Two commands are enough: `make run` and `make test`. They need python3 (3.11 or later) with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FIGURE := $(VENV)/.figure
INSTALL := DRIFTWISE_WHEEL=pure $(BIN)/python -m pip install --disable-pip-version-check --editable
# Bytecode is kept, also where the environment forbids it: else every process that tests start compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-slow lint warm guard bench reliability docs links dist clean

run: $(FIGURE)  ## set up and reproduce the paper's linear figure
	$(BIN)/driftwise reproduce lb --out results

test: lint  ## set up and run all checks: lint, types, layers, tests
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: lint  ## the same with the larger statistical suites
	$(BIN)/python -m pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test test-slow: warm
warm: $(READY)
	$(BIN)/python tests/warm.py

guard: $(READY)  ## ratios of speeds beside those known; exit code 1 where one is slower
	$(BIN)/python bench/guard.py

bench: $(READY)  ## a compiled round against the same loop in C (needs gcc)
	$(BIN)/python bench/rounds.py

reliability: $(READY)  ## the service's load and fault tables, an hour; ROW=F1 runs one row
	$(BIN)/python bench/reliability.py $(ROW)

docs: $(READY)  ## the site with its figures, into build/site/html
	$(BIN)/python docs/site/build.py

links: $(READY)  ## the site's links to elsewhere, which needs the network
	$(BIN)/python docs/site/build.py --links

dist: $(VENV)/.release  ## wheel and sdist, the same bytes twice, tried in clean environments
	$(BIN)/python release/dist.py

# Each installs what its commands need and no more; without DRIFTWISE_WHEEL=pure the editable build would ask for numba.
$(VENV)/.release: $(READY)
	$(INSTALL) ".[release]"
	touch $@

$(FIGURE): pyproject.toml
	@echo "installs numpy, numba and matplotlib into $(VENV), once"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[jit,plot]"
	touch $(FIGURE)

$(READY): pyproject.toml
	@echo "installs what tests and documents need into $(VENV), once"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[dev]"
	touch $(FIGURE) $(READY)

clean:
	rm -rf $(VENV) build/machine results .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Two commands are enough: `make run` and `make test`. They need python3 (3.11 or later) with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FIGURE := $(VENV)/.figure
# Bytecode of what is imported is written when it is: to compile all that is installed takes 20 s.
INSTALL := DRIFTWISE_WHEEL=pure $(BIN)/python -m pip install --disable-pip-version-check --no-compile --editable
# Tests wait for servers and browsers now and then. A file is of one worker, which makes its fixtures once.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# Bytecode is kept, also where the environment forbids it: else every process that tests start compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-slow checked lint warm guard bench reliability docs links dist clean

run: $(FIGURE)  ## set up and reproduce the paper's linear figure
	$(BIN)/driftwise reproduce lb --out results

test: checked  ## set up and run all checks: lint, types, layers, tests
	$(PYTEST) -m "not slow"

test-slow: checked  ## the same with the larger statistical suites
	$(PYTEST)

checked: $(READY)
	$(MAKE) --no-print-directory --jobs 2 lint warm

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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

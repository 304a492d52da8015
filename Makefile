# Each target creates the virtual environment if it is missing, and installs its requirements there.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Container images set it, so that every Python process compiles all its imports.
unexport PYTHONDONTWRITEBYTECODE

# Like jupyter-execute, but without recording timestamps.
define RUN_NOTEBOOKS
import sys, tempfile, nbclient, nbformat
for path in sys.argv[1:]:
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, record_timing=False, resources=resources).execute()
    nbformat.write(notebook, path)
endef
export RUN_NOTEBOOKS

.DEFAULT_GOAL := help
.PHONY: help demo test test-full test-lowest test-kills test-judge goldens lint format typecheck benchmarks notebooks schemas reference pictures docs docs-serve release-check clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## Run the demo: an agent over a power grid, without a key or a network
	$(BIN)/graphrag-eval-lc demo

test: $(VENV)/.test  ## Run the tests (about 5 minutes on 2 processors)
	$(BIN)/python -m pytest -m "not full" -n $(or $(JOBS),auto) --dist worksteal

test-full: $(VENV)/.full  ## Run the other tests, which are slow or need more packages
	$(BIN)/python -m pytest -m full -n $(or $(JOBS),auto) --dist worksteal --durations=25

test-lowest:  ## Run the unit tests with the lowest versions of the dependencies, in a separate environment
	$(MAKE) --no-print-directory VENV=$(VENV)-lowest $(VENV)-lowest/.lowest
	$(VENV)-lowest/bin/python -m pytest -m "not full" -n $(or $(JOBS),auto) --dist worksteal \
	  --hypothesis-profile=few tests/unit_tests

test-kills: $(VENV)/.full  ## Kill 50 runs, and the workers and drivers of a Ray cluster 20 times
	GRAPHRAG_EVAL_LC_KILLED_RUNS=50 GRAPHRAG_EVAL_LC_KILLED_DRIVERS=5 \
	  $(BIN)/python -m pytest -n auto --dist worksteal -k repeatedly_killed tests/integration_tests

test-judge: $(VENV)/.test  ## Test the judges with a real model: set GRAPHRAG_EVAL_LC_JUDGE_BASE_URL (and ..._MODEL, ..._EMBEDDING_MODEL)
	$(BIN)/python -m pytest -s -m full tests/integration_tests/test_real_judge.py

goldens: $(VENV)/.test  ## Compare the outputs of BASE (a commit; HEAD by default) and the working tree
	$(BIN)/python tests/goldens/compare_commits.py $(or $(BASE),HEAD)

lint: $(VENV)/.dev  ## Check style, format and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## Format the code and fix what can be fixed automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(VENV)/.dev  ## Check the types
	$(BIN)/mypy

benchmarks: $(VENV)/.dev  ## Run the benchmarks, compared with other libraries if they can be installed
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

notebooks: $(VENV)/.full  ## Run the notebooks and store their outputs
	$(BIN)/python -c "$$RUN_NOTEBOOKS" notebooks/*.ipynb

schemas: $(VENV)/.test  ## Update the JSON Schemas of the formats
	PYTHONPATH=docs $(BIN)/python -c 'from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH; from made_by.config_schema import config_schema_text; CONFIG_SCHEMA_PATH.write_text(config_schema_text(), encoding="utf-8")'
	PYTHONPATH=docs $(BIN)/python -c 'from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS; from made_by.config_schema import format_schema_text; [path.write_text(format_schema_text(name), encoding="utf-8") for name, path in SCHEMA_PATHS.items()]'

reference: $(VENV)/.test  ## Update the reference pages of the documentation and llms.txt
	$(BIN)/python docs/made_by/pages.py

pictures: $(VENV)/.full  ## Update the pictures of the documentation, from a run of the demo
	$(BIN)/python docs/made_by/pictures.py

docs: $(VENV)/.docs  ## Build the documentation into site/, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs  ## Show the documentation while you write it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

release-check: $(VENV)/.release  ## Build the package, and test its wheel in a clean environment of each Python
	$(BIN)/python tests/release_check.py

clean:  ## Remove the virtual environment and the caches
	rm -rf $(VENV) $(VENV)-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || \
	  { echo "graphrag-eval-lc needs Python 3.11 to 3.14; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	         "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable ".[demo]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch $@ $(VENV)/.demo

$(VENV)/.lowest: pyproject.toml | $(VENV)/.pip
	$(BIN)/python tests/lowest_versions.py > $(VENV)/lowest.txt
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/lowest.txt --editable . --group test
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable . --group docs
	@touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group release
	@touch $@

$(VENV)/.full: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable . --group full
	@touch $@ $(VENV)/.test $(VENV)/.demo $(VENV)/.docs

$(VENV)/.dev: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@ $(VENV)/.full $(VENV)/.test $(VENV)/.demo $(VENV)/.docs

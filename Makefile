# One command per task, the same here and in CI. Each makes what it needs.
# PYTHON: an interpreter of 3.11 or later.  VENV: where the environment goes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What it takes to run, and on top of that what it takes to change something.
RUNS := $(VENV)/runs
READY := $(VENV)/ready

.PHONY: demo test thorough lint types imports migrations bench lock clean
.DELETE_ON_ERROR:

demo: $(RUNS)
	$(BIN)/coterie demo

test: $(READY)
	$(BIN)/python -m pytest -n auto

# What a change runs a few times, many times: seeds, kills, races, requests.
thorough: $(READY)
	COTERIE_HYPOTHESIS=nightly $(BIN)/python -m pytest tests/http/test_crashes.py \
	  tests/service/test_leases.py tests/service/test_simulated_faults.py tests/service/test_fuzzing.py \
	  tests/service/test_retention.py tests/http/test_deployment.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports --no-cache

# The models and the migrations describe the same tables.
migrations: $(READY)
	rm -rf $(VENV)/migrations && mkdir $(VENV)/migrations
	COTERIE_DATABASE_URL= COTERIE_DATA_DIR=$(VENV)/migrations $(BIN)/coterie migrate
	COTERIE_DATABASE_URL= COTERIE_DATA_DIR=$(VENV)/migrations $(BIN)/alembic check

# Writes docs/evidence.md, in about half an hour; see benchmarks/README.md.
bench: $(READY)
	$(BIN)/python -m benchmarks.evidence

$(RUNS): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

$(READY): $(RUNS) requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	touch $@

# Pins what pyproject.toml asks for, for every platform, with hashes and no addresses:
# what runs, and then everything, with the same versions of what runs.
LOCK := uv pip compile pyproject.toml --group build --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/$(LOCK) --extra analyst -o requirements.lock
	$(BIN)/$(LOCK) --all-extras --group test --group lint \
	  --constraint requirements.lock -o requirements-dev.lock

clean:
	rm -rf $(VENV) coterie-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

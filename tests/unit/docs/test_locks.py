"""Locks: what makes a wheel, what runs, what an analyst runs, what a developer needs."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILD, RUN, ANALYST, ALL = LOCKS = tuple(
    f"requirements{part}.lock" for part in ("-build", "", "-analyst", "-dev")
)
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; (.+?))?(?: \\)?$", re.MULTILINE)


def pins(lock: str) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for name, version, marker in PINNED.findall((ROOT / lock).read_text()):
        found.setdefault(name, set()).add((version, marker))
    return found


def asked(*parts: list[str]) -> set[str]:
    texts = [text for part in parts for text in part]
    return {re.split(r"[\s\[<>=!~;]", text, maxsplit=1)[0].lower() for text in texts}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
ASKED = {
    BUILD: asked(GROUPS["build"]),
    RUN: asked(PROJECT["project"]["dependencies"], EXTRAS["analyst"]),
    ALL: asked(PROJECT["project"]["dependencies"], *EXTRAS.values(), *GROUPS.values()),
}
OF_PARTIES = {"duckdb", "pyarrow", "python-calamine"}


@pytest.mark.parametrize("lock", [BUILD, RUN, ANALYST])
def test_what_runs_is_tested_in_the_same_versions(lock: str) -> None:
    some, everything = pins(lock), pins(ALL)
    assert some
    for name, found in some.items():
        versions = {version for version, _ in found}
        assert versions == {version for version, _ in everything[name]}, name


def test_each_lock_has_what_is_asked_for_and_what_runs_no_more() -> None:
    for lock, names in ASKED.items():
        assert pins(lock).keys() >= names, lock
    assert not pins(RUN).keys() & (ASKED[ALL] - ASKED[RUN])
    assert not pins(BUILD).keys() & pins(RUN).keys()


def test_an_analyst_installs_no_library_that_reads_tables() -> None:
    run, analyst = (set(pins(lock)) for lock in (RUN, ANALYST))
    assert analyst - run == asked(EXTRAS["objects"])
    assert run - analyst == OF_PARTIES
    makefile = (ROOT / "Makefile").read_text()
    [line] = re.findall(r"^PARTIES := (.*)$", makefile, re.MULTILINE)
    assert set(line.split()) == OF_PARTIES


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_no_path_and_every_file_s_digest(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "/" not in text
    assert "--index" not in text
    for block in re.split(r"\n(?=[a-z])", text):
        assert "--hash=sha256:" in block

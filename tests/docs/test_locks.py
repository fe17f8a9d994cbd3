"""Two locks: what runs, and on top of it what a developer needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; (.+?))?(?: \\)?$", re.MULTILINE)


def pins(lock: str) -> dict[str, set[tuple[str, str]]]:
    """Return the versions of each package, with what they are for."""
    found: dict[str, set[tuple[str, str]]] = {}
    for name, version, marker in PINNED.findall((ROOT / lock).read_text()):
        found.setdefault(name, set()).add((version, marker))
    return found


def asked(*parts: list[str]) -> set[str]:
    """Return the names of requirements."""
    texts = [text for part in parts for text in part]
    return {re.split(r"[\s\[<>=!~;]", text, maxsplit=1)[0].lower() for text in texts}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
RUN = asked(PROJECT["project"]["dependencies"], EXTRAS["analyst"], GROUPS["build"])
ALL = asked(*EXTRAS.values(), *GROUPS.values()) | RUN


def test_what_runs_is_tested_in_the_same_versions() -> None:
    run, everything = (pins(lock) for lock in LOCKS)
    versions = {name: {version for version, _ in found} for name, found in run.items()}
    assert versions
    for name, found in versions.items():
        assert found == {version for version, _ in everything[name]}, name


def test_each_lock_has_what_is_asked_for_and_the_first_no_more() -> None:
    run, everything = (pins(lock).keys() for lock in LOCKS)
    assert run >= RUN
    assert everything >= ALL
    assert not run & (ALL - RUN)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_and_every_file_s_digest(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index" not in text
    for block in re.split(r"\n(?=[a-z])", text):
        assert "--hash=sha256:" in block

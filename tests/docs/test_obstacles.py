"""docs/obstacles.md: every line names tests that exist, or says why there is none."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "obstacles.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| met")
]
_NAMED = re.compile(r"`(\w+/test_\w+\.py)::(test_\w+)`")


@cache
def written(file: str) -> str:
    return (TESTS / file).read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_what_a_line_says_is_shown_or_explained(row: list[str]) -> None:
    _, now, shown = row
    named = _NAMED.findall(shown)
    for file, test in named:
        assert f"\ndef {test}(" in written(file), f"{file}::{test}"
    assert now
    assert named or shown.startswith("no test: ")


def test_the_page_has_all_four_parts() -> None:
    parts = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert parts == [
        "Operators of a party",
        "Coordinators",
        "Administrators",
        "With eyes",
    ]
    assert len(ROWS) > 30

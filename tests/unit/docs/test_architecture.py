"""docs/architecture.md tells where an upload goes, and what a protocol imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.product import nodes

from clustering_protocols import contract

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
DUMMY = ROOT / "clustering_protocols" / "protocols" / "dummy"


def section(title: str) -> str:
    """The text of a section of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def cells(text: str, column: int) -> list[str]:
    """What the rows of a table have in code type in one column."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[column])]


# Floors

FLOORS = section("Floors")


@pytest.mark.parametrize(
    "package",
    ["analyst_service", "clustering_protocols", "coterie_pages", "party_sdk"],
)
def test_the_page_shows_every_room_of_a_package(package: str) -> None:
    [floors] = [line for line in FLOORS.splitlines() if f"| `{package}` |" in line]
    rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"`(\w+)`", floors))


# One upload


def test_the_files_that_an_upload_passes_through_exist() -> None:
    files = cells(section("One upload is a straight line"), 2)
    assert len(files) > 20
    assert not [name for name in files if not (ROOT / name).is_file()]


# What a protocol imports

ADDING = section("Adding a protocol")
LISTED = set(cells(ADDING, 2))


def imported(folder: Path) -> set[str]:
    """The names that a protocol imports from outside its folder."""
    found = [n for path in folder.glob("*.py") for n in nodes(path)]
    return {
        alias.name
        for node in found
        if isinstance(node, ast.ImportFrom) and not node.level
        if (node.module or "").startswith("clustering_protocols")
        for alias in node.names
    }


def test_the_page_lists_what_the_dummy_imports() -> None:
    names = imported(DUMMY)
    assert names == LISTED


def test_the_page_names_all_that_the_contract_offers_and_no_more() -> None:
    others = ADDING.partition("`contract` offers")[2]
    optional = set(re.findall(r"`(\w+)`", others))
    assert not optional & LISTED
    assert (LISTED & set(contract.__all__)) | optional == set(contract.__all__)

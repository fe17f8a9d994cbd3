"""Each page has one kind, and no item of a list is longer than three lines."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

from tests.docs.pages import PAGES, ROOT

DOCS = ROOT / "docs"
RULES = tomllib.loads((ROOT / "tests" / "docs" / "words.toml").read_text())
MOST = 330  # characters: three lines of a page
_CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(
    r"^ *(?:-|\d+\.) .*(?:\n(?! *(?:-|\d+\.) )\S.*|\n {2,}(?!-|\d)\S.*)*", re.MULTILINE
)


def items(text: str) -> list[str]:
    """Return the items of lists of a page, with the lines that continue."""
    return [" ".join(found[0].split()) for found in _ITEM.finditer(_CODE.sub("", text))]


def test_items_are_found_with_the_lines_that_go_on() -> None:
    text = "Said:\n\n- one\n  continues\n- two\n  - inner\n1. three\n\nNo item.\n"
    assert items(text) == ["- one continues", "- two", "- inner", "1. three"]
    assert items("```\n- code\n```\n") == []


def test_no_item_is_longer_than_three_lines() -> None:
    long = [
        f"{page.relative_to(ROOT)}: {item[:60]}"
        for page in PAGES
        for item in items(page.read_text())
        if len(item) > MOST
    ]
    assert not long


def test_items_that_take_a_second_look_become_fewer() -> None:
    most = RULES["long_items"]["most"]
    found = [
        f"{page.relative_to(ROOT)}: {item[:60]}"
        for page in PAGES
        for item in items(page.read_text())
        if len(item) > RULES["long_items"]["characters"]
    ]
    assert len(found) <= most, f"{len(found)} items are long now, {most} were: shorten"


def test_every_page_has_one_kind() -> None:
    index = (DOCS / "README.md").read_text()
    kinds = re.split(r"^## ", index, flags=re.MULTILINE)[1:]
    assert [kind.split(":")[0] for kind in kinds] == [
        "Tutorials",
        "How-to guides",
        "Reference",
        "Explanation",
    ]
    lines = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \|", index, re.MULTILINE)
    pages = [page.name for page in DOCS.glob("*.md") if page.name != "README.md"]
    assert Counter(lines) == Counter([*pages, "notebooks", "decisions/README.md"])

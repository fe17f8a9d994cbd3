"""docs/threat-tests.md is what the marks of the tests say.

``make generated`` writes the page.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from support.product import parse

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "threat-tests.md"
HEAD = """\
# Attacks that tests try

This page is generated from the tests that are marked with `@pytest.mark.threat(number)`. `pytest -m threat` runs them all; `make thorough` repeats those that depend on chance. Tests whose outcome may depend on the database run on SQLite and on PostgreSQL. Numbers have gaps, because some attacks of the list do not apply here. [Security](security.md) says what is not defended; there, tests show that the attack succeeds.

Speed under attack is measured, not tested. `python -m benchmarks.speed answers` compares refusals (24) and lists of many sessions (71), and `python -m benchmarks.speed upload` sends a large upload (66).

| file in `tests/` | what the test says | numbers |
|---|---|---|
"""


def test_the_page_is_what_the_marks_say() -> None:
    page = HEAD + "".join(rows())
    if os.environ.get("COTERIE_WRITE_THREATS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page, "run: make generated"


def rows() -> Iterator[str]:
    """Yield a row for each test that has the mark, by file."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in parse(path).body:
            for mark in getattr(node, "decorator_list", []):
                text = ast.unparse(mark)
                if text.startswith("pytest.mark.threat("):
                    file, numbers = path.relative_to(TESTS), text[19:-1]
                    words = node.name.removeprefix("test_").replace("_", " ")
                    yield f"| `{file}` | {words} | {numbers} |\n"

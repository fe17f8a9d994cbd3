"""docs/threat-tests.md lists every test that carries a number, and no other."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from support.product import parsed

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "threat-tests.md"
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]*) \| ([^|]+) \|$", re.MULTILINE)
# A row and its mark cannot go together unseen: this is the third place.
REQUIRED = {
    *(*range(1, 21), 22, 23, 26, 27, *range(29, 35), *range(36, 47)),
    *(48, *range(50, 61), 62, 63, *range(67, 71), *range(73, 83), 84),
    *(
        *range(87, 91),
        92,
        96,
        98,
        99,
        *range(104, 116),
        *range(120, 130),
        *range(131, 135),
        136,
        *range(138, 141),
    ),
    *range(144, 147),
    *(*range(150, 166), 167, 169, *range(171, 178), 190, 191, 195),
}
REQUIRED -= {133, 160, 174, 175}  # pages of the analyst
REQUIRED -= {173}  # the administrative log
REQUIRED -= {121}  # webhooks
REQUIRED -= {134}  # sealed homes
MEASURED = {24, 65, 66, 71}  # rows of the table of benchmarks


def marked() -> dict[int, set[str]]:
    """The numbers that tests carry, and those tests."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in TESTS.glob("*/test_*.py"):
        for node in parsed(path).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(
                    "mark.threat"
                ):
                    for number in mark.args:
                        assert isinstance(number, ast.Constant)
                        found[int(str(number.value))].add(
                            f"{path.relative_to(TESTS)}::{node.name}"
                        )
    return found


def listed() -> dict[int, set[str]]:
    """The numbers of the table, and the tests beside them."""
    return {
        int(number): set(re.findall(r"`(\w+/test_[^`]+)`", tests))
        for number, tests, _ in ROW.findall(TABLE.read_text())
    }


def test_the_table_lists_exactly_the_numbered_tests() -> None:
    table = {number: tests for number, tests in listed().items() if tests}
    assert table == dict(marked())


def test_every_number_that_has_to_be_shown_is() -> None:
    assert marked().keys() == REQUIRED
    assert listed().keys() == REQUIRED


def test_every_number_that_has_to_be_measured_is() -> None:
    clocked = re.findall(
        r"^\| (\d+) \|.*`python -m benchmarks\.", TABLE.read_text(), re.MULTILINE
    )
    assert set(map(int, clocked)) == MEASURED

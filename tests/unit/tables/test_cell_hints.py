"""What is said of cells that cannot be read mends them, once it is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, examine_table
from party_sdk.tables.mapping import TableMapping

DICTIONARY = Schema.model_validate({"fields": [{"name": "x"}, {"name": "y"}]})
DATES = Schema.model_validate({"fields": [{"name": "day", "type": "date"}]})
ROWS = [["a", "1.5", "2.25"], ["b", "2.5", "3.25"], ["c", "3.5", "5.25"]]


def write(path: Path, rows: list[list[str]], header: str = "id;x;y") -> Path:
    path.write_text("\n".join([header, *(";".join(row) for row in rows), ""]))
    return path


def problems_of(
    path: Path, mapping: Any = None, schema: Schema = DICTIONARY
) -> list[str]:
    said = None if mapping is None else TableMapping.model_validate(mapping)
    report, _ = examine_table(
        path, ReadOptions(id_column="id", schema=schema, mapping=said)
    )
    return [each.to_sentence("line") for each in report.cells]


CELLS = {
    "another decimal sign": ("29,4", 'decimal = "," in a mapping', {"decimal": ","}),
    "one of two signs": (
        "1,234",
        'thousands = "," or decimal = "," in a mapping',
        {"thousands": ","},
    ),
    "thousands": (
        "1,234.5",
        'separators of thousands: thousands = "." or "," in a mapping',
        {"thousands": ","},
    ),
    "a limit": ("<0.1", 'limits = "half", "value" or "missing"', {"limits": "half"}),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_hint_names_what_reads_the_cell(tmp_path: Path, name: str) -> None:
    cell, hint, said = CELLS[name]
    path = write(tmp_path / "rows.csv", [*ROWS, ["d", cell, "1.5"]])
    [problem] = problems_of(path)
    assert problem.endswith(hint) or hint in problem
    assert not problems_of(path, {"columns": {"x": said}})


def test_a_row_of_units_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", [["", "kg/m2", "years"], *ROWS])
    hint = "a row of units? [leave_out] lines = [2] in a mapping"
    assert [each.rpartition("; ")[2] for each in problems_of(path)] == [hint, hint]
    assert not problems_of(path, {"leave_out": {"lines": [2]}})


@pytest.mark.parametrize(
    ("day", "hint"),
    [
        ("05.03.16", "write years with four digits, such as 2026-01-31"),
        ("5 March 2016", "write them as 2026-01-31"),
        ("2/1/2016", 'dates = ["day-first", "year-first"] in a mapping sets'),
    ],
)
def test_a_date_is_said_how_to_be_written(tmp_path: Path, day: str, hint: str) -> None:
    days = [["a", "2016-03-05"], ["b", "2016-03-06"], ["c", day]]
    path = write(tmp_path / "rows.csv", days, "id;day")
    [problem] = problems_of(path, None, DATES)
    assert hint in problem

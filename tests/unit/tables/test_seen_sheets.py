"""What a person does not see in a sheet, or what has no value, is told and asked about."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xlsxwriter import Workbook

from party_sdk.tables import CheckReport, Dialect, ReadOptions, Table, examine_table
from party_sdk.tables.mapping import TableMapping

VALUES = [7.2, 5.4, 6.1, 8.8, 5.9, 7.7, 6.6, 5.2]
N = len(VALUES)


def write(
    folder: Path, change: Callable[[Workbook, Any], None], left: int = 0, above: int = 0
) -> Path:
    path = folder / "a.xlsx"
    with Workbook(str(path)) as book:
        sheet = book.add_worksheet("Data")
        sheet.write_row(above, left, ["pid", "age", "hba1c"])
        for row, value in enumerate(VALUES, above + 1):
            sheet.write_row(row, left, [f"P{row - above:02}", 20 + row * 7 % 11, value])
        change(book, sheet)
    return path


def read(path: Path, *said: str, **how: Any) -> tuple[str, CheckReport, Table | None]:
    how = {"id_column": "pid", "dialect": Dialect.parse(said), **how}
    report, table = examine_table(path, ReadOptions(**how))
    return (
        "\n".join([*report.problem_sentences, *report.warning_sentences]),
        report,
        table,
    )


def values_of(table: Table | None) -> list[float]:
    assert table is not None
    return [float(value) for value in table.take(np.arange(table.n_rows))[:, 1]]


@pytest.mark.parametrize(("left", "above"), [(0, 0), (2, 3)])
@pytest.mark.parametrize("how", ["by hand", "by a filter"])
@pytest.mark.quick(6)
def test_hidden_rows_are_asked_about(
    tmp_path: Path, how: str, left: int, above: int
) -> None:
    def hide(_: Any, sheet: Any) -> None:
        if how == "by a filter":
            sheet.autofilter(above, left, above + N, left + 2)
            sheet.filter_column(left + 1, "x > 25")
        for row in (above + 2, above + 5):
            sheet.set_row(row, None, None, {"hidden": True})

    path = write(tmp_path, hide, left, above)
    said, _, table = read(path)
    assert table is None
    assert "hidden in the sheet: 2 rows" in said
    said, _, table = read(path, "hidden=leave-out")
    assert table is not None
    assert values_of(table) == [v for row, v in enumerate(VALUES) if row not in {1, 4}]
    assert "2 hidden rows of the sheet: left out" in said
    assert table.locations.numbers_of_rows([1]) == [above + 4], (
        "rows keep their numbers"
    )
    assert values_of(read(path, "hidden=read")[2]) == VALUES
    mapping = TableMapping.model_validate({"file": {"hidden": "read"}})
    assert values_of(read(path, mapping=mapping)[2]) == VALUES


def test_hidden_columns_count_where_they_are_used(tmp_path: Path) -> None:
    def hide(_: Any, sheet: Any) -> None:
        sheet.set_column(1, 1, None, None, {"hidden": True})

    path = write(tmp_path, hide)
    said, _, table = read(path)
    assert table is None
    assert "the columns 'age'" in said
    assert read(path, columns=("hba1c",))[2] is not None
    _, _, table = read(path, "hidden=leave-out")
    assert table is not None
    assert table.columns == ("hba1c",)


def test_percentages_beside_numbers_are_asked_about(tmp_path: Path) -> None:
    def show(book: Any, sheet: Any) -> None:
        percent = book.add_format({"num_format": "0.0%"})
        for row in (1, 4):
            sheet.write_number(row, 2, VALUES[row - 1] / 100, percent)

    path = write(tmp_path, show)
    said, _, table = read(path)
    assert table is None
    assert "2 of 8 numbers are shown as percentages" in said
    assert read(path, columns=("age",))[2] is not None, "of columns that are used"
    assert values_of(read(path, "percent=shown")[2]) == VALUES
    stored = [v / 100 if row in {0, 3} else v for row, v in enumerate(VALUES)]
    assert values_of(read(path, "percent=stored")[2]) == stored


@pytest.mark.parametrize("value", ["", None])
@pytest.mark.parametrize("rows", [(2, 6), range(1, N + 1)])
def test_formulas_without_a_value_are_no_missing_values(
    tmp_path: Path, rows: Any, value: Any
) -> None:
    def calculate(_: Any, sheet: Any) -> None:
        for row in rows:
            sheet.write_formula(row, 2, f"=B{row + 1}/3", None, value or "")

    path = write(tmp_path, calculate)
    if value is None:
        drop_values(path)
    said, _, table = read(path)
    assert table is None or table.report.obstacles
    assert f"a formula without a value (#NOVALUE) in {len(rows)} rows" in said
    assert 'missing = ["#NOVALUE"] in a mapping' in said
    _, _, table = read(path, "missing=#NOVALUE")
    assert np.isnan(values_of(table)).sum() == len(rows)


def drop_values(path: Path) -> None:
    """Take the empty values off formulas, as programs write them that do not calculate."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    part = "xl/worksheets/sheet1.xml"
    parts[part] = parts[part].replace(b"<v></v>", b"")
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)


@pytest.mark.parametrize("error", ["#DIV/0!", "#N/A", "#REF!"])
def test_errors_are_no_missing_values(tmp_path: Path, error: str) -> None:
    def fail(_: Any, sheet: Any) -> None:
        sheet.write_formula(3, 2, "=B4/0", None, error)

    path = write(tmp_path, fail)
    said, _, table = read(path)
    assert table is None
    text = "#N/A!" if error == "#N/A" else error
    assert f"an error ({text}) in 1 row" in said
    assert np.isnan(values_of(read(path, f"missing={text}")[2])).sum() == 1


def test_a_hidden_sheet_is_named_before_it_is_read(tmp_path: Path) -> None:
    def hide(book: Any, sheet: Any) -> None:
        book.add_worksheet("Front").activate()
        sheet.hide()

    path = write(tmp_path, hide)
    assert "hidden" in read(path)[0]
    assert values_of(read(path, "sheet=Data")[2]) == VALUES


@pytest.mark.parametrize("cell", [(1_048_575, 0), (1_048_575, 16_383)])
def test_a_cell_far_from_the_table_is_refused_early(
    tmp_path: Path, cell: tuple[int, int]
) -> None:
    def write_far(_: Any, sheet: Any) -> None:
        sheet.write_number(0, 300, 1)
        sheet.write_number(*cell, 1)

    said, _, table = read(write(tmp_path, write_far))
    assert table is None
    assert "delete the cells far from the table" in said

"""A quoted cell may hold lines; it may not hold rows without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from party_sdk.tables import ReadOptions, examine_table
from party_sdk.tables.mapping import TableMapping

HOW = ReadOptions(columns=("age", "crp"))


def rows(n: int = 20, delimiter: str = ",", note: str = "ok") -> list[str]:
    return [
        delimiter.join([f"P{i:02}", f"{20 + i * 7 % 61}", f"{i * 3 % 17}.5", note])
        for i in range(n)
    ]


def write(path: Path, lines: list[str], delimiter: str = ",", end: str = "\n") -> Path:
    names = delimiter.join(["pid", "age", "crp", "note"])
    path.write_bytes(end.join([names, *lines, ""]).encode())
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("first", "last"), [(5, 12), (5, 6), (0, 19)])
@pytest.mark.quick(8)
def test_rows_between_stray_marks_are_refused(
    tmp_path: Path, delimiter: str, end: str, first: int, last: int
) -> None:
    lines = rows(delimiter=delimiter)
    lines[first] = lines[first].replace("ok", '"poor')
    lines[last] = lines[last].replace("ok", 'sleep"')
    path = write(tmp_path / "a.csv", lines, delimiter, end)
    report, table = examine_table(path, HOW)
    assert table is None
    [problem] = report.problems
    assert problem.line == first + 2
    assert f"line {last + 2}" in problem.what
    assert "quotation marks" in problem.what


def test_rows_within_the_header_cannot_be_left_out_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'id,"age\np1,50,2\np2,61,5\nyears",crp\n' + "p3,70,1.5\np4,80,2.5\n"
    )
    mapping = TableMapping.model_validate({"leave_out": {"lines": [1]}})
    report, table = examine_table(path, ReadOptions(id_column="id", mapping=mapping))
    assert table is None
    [problem] = report.problems
    assert (problem.line, "no row begins here" in problem.what) == (1, True)


@pytest.mark.parametrize("place", ["first column", "column of its own"])
def test_marks_in_other_columns_count_too(tmp_path: Path, place: str) -> None:
    lines = rows()
    if place == "first column":
        lines[3], lines[9] = f'"{lines[3]}', lines[9].replace("P09", 'P09"')
    else:
        lines[3], lines[9] = lines[3].replace("ok", '"'), lines[9].replace("ok", '"')
    report, table = examine_table(write(tmp_path / "a.csv", lines), HOW)
    assert table is None
    assert any(p.line == 5 and "quotation" in p.what for p in report.problems)


@pytest.mark.parametrize(
    "note",
    [
        "first line\nsecond line",
        "tired, weak, pale\nand, after a week, better",
        "line\n\nline\nP7, perhaps 12, and more, said he",
        'she said ""no""\nand left',
    ],
)
def test_a_note_of_several_lines_is_read(tmp_path: Path, note: str) -> None:
    lines = rows()
    lines[7] = lines[7].replace("ok", f'"{note}"')
    report, table = examine_table(write(tmp_path / "a.csv", lines), HOW)
    assert not report.problems
    assert table is not None
    assert table.n_rows == 20


def test_an_operator_may_say_that_a_note_holds_lines_like_rows(tmp_path: Path) -> None:
    lines = rows()
    lines[7] = lines[7].replace("ok", '"copied:\nP01,21,1.5,ok"')
    path = write(tmp_path / "a.csv", lines)
    assert examine_table(path, HOW)[1] is None
    report, table = examine_table(
        path, ReadOptions(columns=HOW.columns, allow=["cell-lines"])
    )
    assert table is not None, report.problems
    assert table.n_rows == 20


def test_lines_that_marks_hide_cost_no_other_sentence(tmp_path: Path) -> None:
    """No line of a cell is named where marks hide on which lines rows begin."""
    path = tmp_path / "a.csv"
    path.write_text('id,x,y\na,1,2\nb"x,2,3\nc,3,4,5\nd,4\ne,5,zzz')
    report, table = examine_table(path, ReadOptions())
    assert table is None
    assert [problem.line for problem in report.problems] == [4, 5, None]

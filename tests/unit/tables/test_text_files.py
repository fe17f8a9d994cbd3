"""Headers, encodings and dates of text files are read as a person would read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, examine_table, list_columns, read_column

ROWS = "".join(f"{17 + i},{31 + i * 7 % 40},{67 + i * 3 % 20}.5\n" for i in range(39))


def write(folder: Path, content: str, encoding: str = "utf-8") -> Path:
    path = folder / "rows.csv"
    path.write_bytes(content.encode(encoding))
    return path


def test_the_names_of_columns_may_begin_with_a_hash(tmp_path: Path) -> None:
    path = write(tmp_path, f"# exported\n#id,age,weight\n{ROWS}")
    report, table = examine_table(path, ReadOptions(id_column="#id"))
    assert [column.name for column in report.columns] == ["age", "weight"]
    assert table is not None
    assert table.n_rows == 39
    assert table.locations.numbers_of_rows([0, 38]) == [3, 41]


@pytest.mark.parametrize("comment", ["# exported", "# by us, in 2025, v2", "#"])
def test_comments_above_the_names_are_skipped(tmp_path: Path, comment: str) -> None:
    path = write(tmp_path, f"{comment}\nid,age,weight\n{ROWS}")
    assert list_columns(path) == ["id", "age", "weight"]


@pytest.mark.parametrize(
    ("comment", "names"),
    [
        ("# exported, 2024-01-01, north", "id,2019,2020"),
        ("#lab; export; north", "id;day1;7"),
    ],
)
def test_a_comment_is_not_taken_for_names_above_names_with_numbers(
    tmp_path: Path, comment: str, names: str
) -> None:
    sign = names[2]
    rows = [f"p{n}{sign}{n}{sign}{n * 2}.5" for n in range(1, 9)]
    path = write(tmp_path, "\n".join([comment, names, *rows]))
    assert list_columns(path) == names.split(sign)


def test_names_with_a_hash_may_stand_above_missing_values(tmp_path: Path) -> None:
    path = write(tmp_path, "#id,age,weight\np1,NA,67\np2,31,\np3,32,68\n")
    assert list_columns(path) == ["#id", "age", "weight"]


@pytest.mark.parametrize(
    "text",
    ["2026-01-311", "2026-01-30abc", "2026-02-01/2027-01-01", "2026-01-30 or later"],
)
def test_a_date_with_more_text_is_no_date(tmp_path: Path, text: str) -> None:
    schema = Schema.model_validate({"fields": [{"name": "visit", "type": "date"}]})
    path = write(tmp_path, f"visit\n2026-01-30\n{text}\n2026-03-30\n")
    report, _ = examine_table(path, ReadOptions(schema=schema))
    [problem] = report.problems
    assert (problem.line, problem.column) == (3, "visit")


@pytest.mark.parametrize(
    "time",
    ["T10:30", " 10:30:00", "T10:30:00.125Z", " 10:30:00+01:00", " 9:05 PM", " 00:00"],
)
@pytest.mark.parametrize("day", ["2026-01-31", "31.01.2026"])
def test_a_date_may_have_a_time(tmp_path: Path, day: str, time: str) -> None:
    schema = Schema.model_validate({"fields": [{"name": "visit", "type": "date"}]})
    path = write(tmp_path, f"visit\n{day}{time}\n{day}\n{day}\n")
    _, table = examine_table(path, ReadOptions(schema=schema))
    assert table is not None
    assert {*next(table.batches()).ravel().tolist()} == {20484.0}


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_accents_at_the_ends_of_lines_are_read(tmp_path: Path, end: str) -> None:
    lines = ["âge,prénom décédé", "31,René", "42,Zoë", "53,José", "64,André"]
    path = write(tmp_path, (end or "\n").join(lines) + end, "cp1252")
    assert list_columns(path) == ["âge", "prénom décédé"]
    assert read_column(path, "prénom décédé") == ["René", "Zoë", "José", "André"]


def test_one_accent_at_the_end_of_the_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "name\nAnn\nRené", "cp1252")
    assert read_column(path, "name") == ["Ann", "René"]


def test_a_name_may_hold_the_replacement_character(tmp_path: Path) -> None:
    path = write(tmp_path, "pr\ufffdnom,age\nZoé,31\n", "utf-8")
    assert list_columns(path) == ["pr\ufffdnom", "age"]


def test_names_in_another_encoding_than_the_rows_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "prénom,décédé\n", "cp1252")
    path.write_bytes(path.read_bytes() + "Zoé,1.5\nJosé,2.5\n".encode())
    [problem] = examine_table(path, ReadOptions())[0].problems
    assert "line 1 contains bytes that are not text in this encoding" in problem.what

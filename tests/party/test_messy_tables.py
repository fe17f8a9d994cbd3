"""Every file of tests/party/messy, and some made here, either fits or is told the line."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from xlsxwriter import Workbook

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.terms.schema import Field, Schema
from party_sdk.admission.table_admission import SlotFields
from party_sdk.admission.table_files import TableSpec
from party_sdk.tables import ReadOptions, examine_table, open_table, text_files
from party_sdk.tables.cells import dialect_from

MESSY = Path(__file__).parent / "messy"
GOOD = ["age", "weight", "crp"]

FITS: dict[str, Any] = {
    # file: what the dialect says beside the usual, or the names of columns
    "bom.csv": {"encoding": "utf-8-sig"},
    "blankline.csv": {},
    "book.xlsx": {"sheet": "Sheet1"},
    "comment.csv": {"skip": 1},
    "crlf.csv": {},
    "german.csv": {"delimiter": ";", "decimal": ","},
    "good.csv": {},
    "intid.csv": {},
    "leadingzero.csv": {},
    "semicolon.csv": {"delimiter": ";"},
    "spacecol.csv": {},
    "tab.tsv": {"delimiter": "\t"},
    "dup.csv": {},  # whether two rows may have one id is for the session's terms
}
OTHER_COLUMNS = {
    "bool.csv": [*GOOD, "smoker"],
    "constant.csv": [*GOOD, "ward"],
    "five.csv": GOOD,
    "good_fewer.csv": ["age", "weight"],
    "good_order.csv": ["weight", "age", "crp"],
    "latin1.csv": ["age", "Größe", "crp"],
    "utf8_umlaut.csv": ["age", "Größe", "crp"],
}
WARNED = {
    "constant.csv": "One value in all rows: 'ward'",
    "spacecol.csv": "Blanks around the names of 'age', 'weight'",
}
REFUSED = {
    "below_limit.csv": "line 8, crp: '<9.9' is not a number.",
    "category.csv": "'sex' holds words: describe it in a dictionary",
    "category.parquet": "'sex' holds words: describe it in a dictionary",
    "date.csv": "'admitted' holds dates: describe it in a dictionary",
    "date_de.csv": "'admitted' holds dates: describe it in a dictionary",
    "dupcol.csv": "Two columns have the same name: 'age', columns 2, 3.",
    "empty.csv": "'empty.csv' is empty",
    "empty_id.csv": "line 7, patient: no id.",
    "extreme.csv": "line 2, neg0: above 1e+150: sums of such numbers overflow;",
    "headeronly_nl.csv": "there are no rows below the column names.",
    "huge.csv": "line 2, insurance: a whole number that loses digits: an id?;",
    "index.csv": "Unnamed: 0: has no name: name it as --id-column",
    "miss_NA.csv": "line 8, crp: empty.",
    "miss_dot.csv": "line 8, crp: '.' is not a number (if it means a missing value: missing = […]",
    "miss_inf.csv": "line 8, crp: an infinite value.",
    "missing.csv": "line 8, crp: empty; line 22, crp: empty.",
    "noheader.csv": "'noheader.csv', line 1 contains numbers where the column names",
    "percent.csv": "'w%' holds words: describe it in a dictionary",
    "ragged_more.csv": "line 13: more cells than the 4 columns.",
    "text.csv": "line 19, age: 'AAAAAAA' is not a number",
    "timestamp.csv": "'admitted' holds dates: describe it in a dictionary",
    "totalrow.csv": "line 42: looks like a row of totals: delete it",
    "unit.csv": "line 19, age: '99 AAAAA' is not a number.",
}
WITHOUT_ID = {"x_noid.csv": 3, "y_noid.csv": 3}
WITH_DAY = Schema(fields=(Field(name="x"), Field(name="day", type="date")))
USUAL = {"encoding": "utf-8", "delimiter": ",", "quote": '"', "decimal": "."}


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(InvalidData) as raised:
        open_table(path, **options)
    detail = raised.value.detail
    assert path.name in detail or not re.search(r"line \d", detail)
    assert str(path.parent) not in detail, "folders may name people"
    return detail.removeprefix(f"{path.name}: ")


def test_every_messy_file_has_an_expected_result() -> None:
    expected = [*FITS, *OTHER_COLUMNS, *REFUSED, *WITHOUT_ID]
    assert sorted(expected) == sorted(path.name for path in MESSY.iterdir())


@pytest.mark.parametrize("name", FITS)
def test_a_table_that_fits_is_the_same_however_it_is_written(name: str) -> None:
    report, table = examine_table(MESSY / name, ReadOptions(id_column="patient"))
    good = open_table(MESSY / "good.csv", id_column="patient")
    assert list(table.columns) == GOOD
    assert np.array_equal(matrix(table), matrix(good))
    told = FITS[name] if name == "book.xlsx" else USUAL | FITS[name]
    assert report.dialect == told


@pytest.mark.parametrize("name", OTHER_COLUMNS)
def test_a_table_of_other_columns_fits(name: str) -> None:
    table = open_table(MESSY / name, id_column="patient")
    assert list(table.columns) == OTHER_COLUMNS[name]
    assert np.isfinite(matrix(table)).all()


@pytest.mark.parametrize("name", WARNED)
def test_a_table_that_is_odd_is_read_with_a_warning(name: str) -> None:
    report, _ = examine_table(MESSY / name, ReadOptions(id_column="patient"))
    assert any(warning.startswith(WARNED[name]) for warning in report.warnings)


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_does_not_fit_is_told_where(name: str) -> None:
    assert refused(MESSY / name, id_column="patient").startswith(REFUSED[name])


@pytest.mark.parametrize("name", WITHOUT_ID)
def test_rows_need_no_id(name: str) -> None:
    assert len(open_table(MESSY / name).columns) == WITHOUT_ID[name]
    told = refused(MESSY / name, id_column="patient")
    assert told.startswith("There is no column 'patient'. There are ")


@pytest.mark.parametrize("name", ["intid.csv", "leadingzero.csv"])
def test_an_id_of_digits_that_nobody_named_is_not_clustered(name: str) -> None:
    told = refused(MESSY / name)
    assert told.startswith("patient: looks like a row number: name it as --id-column")
    assert len(open_table(MESSY / name, allow=["running-number"]).columns) == 4


def test_ids_keep_their_zeros() -> None:
    source = open_table(MESSY / "leadingzero.csv", id_column="patient")
    assert source.ids[1] == "00001"


ROWS = ["a,1.5,2", "b,2.5,3", "c,3.5,5"]


def of(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def lines(*rows: str, header: str = "id,x,y") -> str:
    return "\n".join([header, *(rows or ROWS), ""])


def sheets(path: Path, *names: str) -> Path:
    with Workbook(path) as book:
        for name in names:
            sheet = book.add_worksheet(name)
            for place, line in enumerate(lines().splitlines()):
                cells = [as_cell(cell) for cell in line.split(",")]
                sheet.write_row(place + 2, 1, cells)
    return path


def as_cell(text: str) -> Any:
    return float(text) if text[0].isdigit() else text


MADE: dict[str, str | bytes] = {
    "UTF-16 with its mark": lines().encode("utf-16"),
    "UTF-16 without": lines().encode("utf-16-le"),
    "UTF-32": lines().encode("utf-32"),
    "quoted line feeds": lines('"a\n1",1.5,2', *ROWS[1:]),
    "semicolons in quotes": lines('"a;1";1,5;2', "b;2,5;3", "c;3,5;5", header="id;x;y"),
    "carriage returns alone": lines().replace("\n", "\r"),
    "two ends of lines": lines().replace("\n", "\r\n", 2),
    "scientific notation with commas": lines(
        "a;1,5e0;2", "b;2,5E0;3", "c;35e-1;5", header="id;x;y"
    ),
    "a separator that is told": "sep=|\n" + lines().replace(",", "|"),
    "a semicolon at the end of each line": lines()
    .replace(",", ";")
    .replace("\n", ";\n"),
    "a code of no value in a column of its own": lines()
    .replace("\n", ",NA\n")
    .replace("NA", "z", 1),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "UTF-16 without": {"dialect": {"encoding": "utf-16-le"}},
    "a code of no value in a column of its own": {"columns": ["x", "y"]},
}


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_a_study_is_read_to_its_end(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.5, 2.5, 3.5], "y": [2, 3, 5]})
    write = getattr(pyreadstat, f"write_{ending}")
    write(frame, str(tmp_path / f"rows.{ending}"))
    write(frame[:0], str(tmp_path / f"none.{ending}"))
    source = open_table(tmp_path / f"rows.{ending}", id_column="id")
    assert matrix(source).tolist() == [[1.5, 2], [2.5, 3], [3.5, 5]]
    write(frame.assign(x=[1.5, None, 3.5]), str(tmp_path / f"gap.{ending}"))
    assert "row 2, x: empty" in refused(tmp_path / f"gap.{ending}", id_column="id")
    assert "has no rows" in refused(tmp_path / f"none.{ending}")


def check_rows(path: Path, **options: Any) -> None:
    source = open_table(path, id_column="id", **options)
    assert matrix(source).tolist() == [[1.5, 2], [2.5, 3], [3.5, 5]]
    assert [text[0] for text in source.ids or ()] == ["a", "b", "c"]


@pytest.mark.parametrize("name", MADE)
def test_a_file_of_another_kind_is_read(tmp_path: Path, name: str) -> None:
    content, path = MADE[name], tmp_path / "o'r; --.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    check_rows(path, **OPTIONS.get(name, {}))


def test_a_sheet_is_read_that_begins_below_or_is_one_of_two(tmp_path: Path) -> None:
    check_rows(sheets(tmp_path / "one.xlsx", "one"))
    two = sheets(tmp_path / "two.xlsx", "one", "two")
    check_rows(two, dialect={"sheet": "two"})


REFUSABLE: dict[str, tuple[str | bytes, str]] = {
    "a NUL byte": (b"id,x\na,1\nb\0,2\n", "NUL bytes"),
    "gzip": (b"\x1f\x8b\x08", "is a gzip file: unpack it"),
    "thousands": (lines('a,"1,234.5",2', *ROWS), "2, x: '9,999.9' is not a number"),
    "thousands in German": (
        lines("a;1.234,5;2", "b;2,5;3", "c;3,5;5", header="id;x;y"),
        "line 2, x: '9.999,9' is not a number: write thousands without separators",
    ),
    "two decimal signs": (
        lines("a;1.5;2", "b;2,5;3", "c;3,5;5", header="id;x;y"),
        "line 2, x: '9.9' is not a number: the decimal sign here is ','",
    ),
    "fewer cells": (lines(*ROWS, "d,1"), "line 5: fewer cells than the 3 columns"),
    "a percent sign": (lines(*ROWS, "d,7%,1"), "line 5, x: '9%' is not a number"),
    "a quote without end": (
        lines(*ROWS, '"d,1,2'),
        "line 5: an unclosed quotation mark",
    ),
    "a line without end": (
        lines(*ROWS, "q" * 3_000_000 + ",1,2", "d,1,2"),
        "line 5: a line of more than two mebibytes",
    ),
    "an id of blanks": (lines(*ROWS, "  ,1,2"), "line 5, id: no id"),
    "more columns than can be": (
        lines(header=",".join(f"x{i}" for i in range(20_001))),
        "20,001 columns; a text file has at most 20,000",
    ),
    "an empty name": (lines(header="id,,y"), "Unnamed: 1: has no name"),
    "a name twice in two forms": (
        lines(header="id,e\u0301,\u00e9"),
        "Two columns have the same name",
    ),
    "words at the end": (lines(*ROWS * 9, "z,eins,2"), "29, x: 'AAAA' is not a num"),
    "a gap behind a quoted line feed": (
        lines('"a\n1",1.5,2', "b,2.5,3", "c,,5"),
        "line 5, x: empty",
    ),
}


@pytest.mark.parametrize("name", REFUSABLE)
def test_a_file_that_does_not_fit_is_told_where(tmp_path: Path, name: str) -> None:
    content, told = REFUSABLE[name]
    path = tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert told in refused(path, id_column="id")


@pytest.mark.parametrize("name", ["a*.csv", "a?.csv", "a[1].csv", "[!b].csv"])
def test_the_name_of_a_file_is_no_pattern(tmp_path: Path, name: str) -> None:
    of(tmp_path / "a1.csv", "x\n1\n2\n")
    path = of(tmp_path / name, "x\n5\n6\n9\n")
    assert matrix(open_table(path)).ravel().tolist() == [5, 6, 9]


def test_the_folder_of_a_copy_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = tmp_path / "t[m]p"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    path = of(tmp_path / "rows.csv", lines(), "utf-16")
    assert matrix(open_table(path, id_column="id")).shape == (3, 2)


def test_names_of_columns_become_no_statement(tmp_path: Path) -> None:
    header = 'x\'; DROP TABLE y; --,"y""z",$path'
    path = of(tmp_path / "rows.csv", lines("1,2,4", "2,3,9", header=header))
    names = ["x'; DROP TABLE y; --", 'y"z', "$path"]
    assert list(open_table(path).columns) == names


@pytest.mark.parametrize("ending", ["xls", "xlsb", "ods"])
def test_another_workbook_is_refused_with_a_remedy(tmp_path: Path, ending: str) -> None:
    told = refused(of(tmp_path / f"rows.{ending}", "PK"))
    assert "save it as .xlsx or CSV" in told


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    assert "is a pipe or device" in refused(tmp_path / "rows.csv")
    assert "There is no file" in refused(Path("s3://bucket/rows.csv"))
    assert "There is no file" in refused(Path("https://host/rows.csv"))


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = of(tmp_path / "rows.csv", lines())
    read = text_files.read_text

    def slowly(*given: Any) -> Iterator[Any]:
        yield from read(*given)
        with path.open("a") as file:
            file.write("d,4.5,7\n")

    monkeypatch.setattr(text_files, "read_text", slowly)
    assert refused(path) == "'rows.csv' was changed while it was read."


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet", ".sav"])
def test_garbage_is_refused_in_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    rng = np.random.default_rng(0)
    for size in (1, 40, 4000):
        path = tmp_path / f"rows{ending}"
        path.write_bytes(rng.bytes(size))
        assert refused(path)
    assert not list(spare.iterdir())


@pytest.mark.parametrize(
    ("head", "said"),
    [("Kennung,Größe,y", {}), ("id,x,y", {"encoding": "utf-8"})],
    ids=["it shows early", "the operator says so"],
)
def test_an_invalid_utf_8_byte_is_reported_with_its_line(
    tmp_path: Path, head: str, said: dict[str, str]
) -> None:
    rows = (f"Mü{i},{i % 7}.5,{i % 5}" for i in range(60_000))
    path = of(tmp_path / "rows.csv", lines(*rows, header=head))
    with path.open("ab") as file:
        file.write("Jürgen,1.5,2\n".encode("latin-1"))
    with pytest.raises(InvalidData, match=r"line 60002.*bytes that are not text"):
        open_table(
            path, id_column=head.split(",", maxsplit=1)[0], dialect=dialect_from(said)
        )


def test_a_wrong_stated_encoding_is_refused(tmp_path: Path) -> None:
    path = of(tmp_path / "rows.csv", lines(header="id,Größe,y"), "latin-1")
    with pytest.raises(InvalidData, match="not written in utf-8: see line 1"):
        open_table(path, id_column="id", dialect=dialect_from({"encoding": "utf-8"}))


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    path = sheets(tmp_path / "rows.xlsx", "one", "two")
    assert "--csv sheet=…, of 'one', 'two'" in refused(path)
    told = refused(path, dialect=["sheet=three"])
    assert told.startswith("There is no sheet 'three'; there are 'one', 'two'")


def test_a_cell_of_a_sheet_is_told_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    with Workbook(path) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate(
            [["id", "x"], ["a", 1], [None, None], ["b", 2], ["c", "eins"], ["d", 3]]
        ):
            sheet.write_row(place, 0, row)
    assert "row 5, x: 'AAAA' is not a number" in refused(path, id_column="id")


DATES = "id,x,day\na,1.5,{}\nb,2.5,{}\nc,3.5,{}\n"


@pytest.mark.parametrize(
    ("days", "options", "told"),
    [
        (("31.01.2024", "01.02.2024", "03.02.2024"), {}, [19753, 19754, 19756]),
        (("1/31/2024", "2/1/2024", "2/3/2024"), {}, [19753, 19754, 19756]),
        (("2024-01-31", "2024-02-01", "2024-02-03"), {}, [19753, 19754, 19756]),
        (("1/2/2024", "2/2/2024", "3/2/2024"), {}, "is the day or the month first?"),
        (
            ("1/2/2024", "2/2/2024", "3/2/2024"),
            {"dates": "day-first"},
            [19754, 19755, 19756],
        ),
        (("31/1/2024", "1/31/2024", "2/2/2024"), {}, "day or the month first?"),
        (("31.1.2024", "1.2.2024", "2.13.2024"), {}, "line 4, day: '9.99.9999' is no"),
        (("31.01.2024", "2024-02-01", "3.2.2024"), {}, [19753, 19754, 19756]),
        # no day of the year 5: DuckDB would read the day as the year
        (("05/03/16", "06/03/16", "07/03/16"), {}, "line 2, day: a year before 1000"),
        (("2024-01-31", "0203-02-01", "2024-02-03"), {}, "line 3, day: a year before"),
    ],
)
def test_days_are_counted_in_an_order_that_is_known(
    tmp_path: Path, days: tuple[str, ...], options: dict[str, str], told: Any
) -> None:
    path = of(tmp_path / "rows.csv", DATES.format(*days))
    options = {"dialect": options, "schema": WITH_DAY}
    if isinstance(told, str):
        assert told in refused(path, id_column="id", **options)
    else:
        found = matrix(open_table(path, id_column="id", **options))
        assert found[:, 1].tolist() == told


@pytest.mark.parametrize("decimal", [".", ","])
def test_an_id_that_is_a_code_of_no_value_stays_in_every_dialect(
    tmp_path: Path, decimal: str
) -> None:
    rows = [f"NA;1{decimal}5;2", f";2{decimal}5;3", "NaN;NA;5"]
    path = of(tmp_path / "rows.csv", lines(*rows, header="id;x;y"))
    said = dialect_from({"decimal": decimal})
    report, _ = examine_table(path, ReadOptions(id_column="id", dialect=said))
    assert [found.to_sentence("line") for found in report.problems] == [
        "line 3, id: no id"
    ]
    assert [column.missing for column in report.columns] == [1, 0]


def test_an_obstacle_is_a_problem_of_a_session_and_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("id,x,y\na,1.5,2\nb,,3\nc,2.5,5\n")
    spec = TableSpec(path=path, options=ReadOptions(id_column="id"))
    examined = spec.examine()
    [sentence] = examined.obstacle_sentences
    assert sentence.endswith("how to prepare them: line 3, x: empty.")
    assert not examined.problems
    checked = spec.check_new_rows(SlotFields(None, None, ()), ["x", "y"])
    assert checked.problem_sentences == ("line 3, x: empty",)
    assert not checked.obstacle_sentences
    assert "empty" not in " ".join(checked.warning_sentences)

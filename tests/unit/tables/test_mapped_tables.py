"""A mapped table is what pandas makes of the same table by the same changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.table_kinds import KINDS, as_csv

from clustering_protocols.numerics.data_source import matrix, order_rows
from clustering_protocols.terms.schema import Schema
from party_sdk.disclosures.known_rows import KnownTable, hash_cells
from party_sdk.tables import (
    ReadOptions,
    examine_table,
    list_columns,
    open_table,
    read_column,
    read_table,
)
from party_sdk.tables.mapping import TableMapping

DICTIONARY = Schema.model_validate(
    {
        "fields": [
            {"name": "sex", "type": "string", "categories": ["female", "male"]},
            {"name": "hba1c"},
            {"name": "age", "type": "integer"},
            {"name": "smoker", "type": "boolean"},
        ],
        "missingValues": ["", "-5"],
    }
)
WORDS = {"w": "female", "W": "female", "weiblich": "female", "m": "male", "-": "male"}
KEY = bytes(32)
MAPPING = TableMapping.model_validate(
    {
        "columns": {
            "sex": {"from": "Geschlecht", "levels": WORDS, "missing": ["x"]},
            "hba1c": {
                "from": "HbA1c",
                "factor": 10.929,
                "offset": -23.5,
                "missing": ["-9", "k.A."],
                "levels": {"<4": "20"},
            },
            "age": {"from": "Alter", "missing": ["999"]},
            "smoker": {"levels": {"nie": "no", "aktuell": "yes"}},
        }
    }
)


def as_german(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.txt"
    table.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    return path


def as_second_sheet(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.xlsx"
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        table.to_excel(book, sheet_name="Auszug 2025", startrow=2, index=False)
        table.head(1).to_excel(book, sheet_name="Notes", index=False)
    return path


FORMS = KINDS | {"german": as_german, "sheet": as_second_sheet}


def by_pandas(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The same changes by a library that is not ours."""
    levels = pd.Series({"female": 0.0, "male": 1.0})
    truths = pd.Series({"no": 0.0, "yes": 1.0})
    age = table["Alter"].astype(float)
    hba1c = table["HbA1c"].astype(float)
    return np.column_stack(
        [
            table["Geschlecht"].replace(WORDS).replace({"x": None}).map(levels),
            hba1c.where(~hba1c.isin([-9, -5])) * 10.929 + -23.5,
            age.where(~age.isin([999, -5])),
            table["smoker"].replace({"nie": "no", "aktuell": "yes"}).map(truths),
        ]
    ).astype(float)


def frame_of(n_rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n_rows)],
            "Geschlecht": rng.choice([*WORDS, "female", "x"], n_rows),
            "HbA1c": np.where(
                rng.random(n_rows) < 0.8,
                rng.uniform(4, 12, n_rows).round(1),
                rng.choice([-9.0, -5.0, np.nan], n_rows),
            ),
            "Alter": rng.choice([999, -5, *range(20, 90)], n_rows),
            "smoker": rng.choice(["nie", "aktuell", "yes"], n_rows),
        }
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_is_mapped_alike(form: str, tmp_path: Path) -> None:
    frame = frame_of()
    mapping = MAPPING
    if form == "sheet":
        said = {"sheet": "Auszug 2025", "skip": 2}
        mapping = TableMapping.model_validate({**MAPPING.model_dump(), "file": said})
    table = FORMS[form](frame, tmp_path)
    how = ReadOptions(id_column="id", schema=DICTIONARY, mapping=mapping)
    read = read_table(table, how)
    np.testing.assert_array_equal(matrix(read), by_pandas(frame))
    assert list(read.ids or ()) == list(frame["id"])
    if form in {"csv", "parquet"}:
        names = ["id", "sex", "hba1c", "age", "smoker"]
        assert list_columns(table, how) == names
        expected = frame["Geschlecht"].replace(WORDS).replace({"x": ""})
        assert read_column(table, "sex", how) == list(expected)


def test_rows_are_left_out_and_lines_stay_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [
        "PatNr;Geschlecht;Alter;HbA1c",
        "a;w;50;7,2",
        "b;m;60;k.A.",
        "",
        "c;W;x;6,0",
        "Summe;;110",
        "d;m;40;<4",
        "e;m;41;5",
        "f;q;42;5",
    ]
    path.write_text("\n".join(lines))
    said = {
        "columns": {
            name: MAPPING.columns[name].model_dump() for name in ("sex", "hba1c", "age")
        },
        "leave_out": {"lines": [6], "values": {"PatNr": ["e"]}},
    }
    how = ReadOptions(
        id_column="PatNr",
        columns=["sex", "hba1c", "age"],
        schema=DICTIONARY,
        mapping=TableMapping.model_validate(said),
    )
    report, table = examine_table(path, how)
    assert table is None
    assert [(each.line, each.column) for each in report.problems] == [
        (5, "age"),
        (9, "sex"),
    ]

    path.write_text("\n".join(lines).replace(";x;", ";30;").replace(";q;", ";m;"))
    table = read_table(path, how)
    X = [[0, 7.2 * 10.929 - 23.5, 50], [1, np.nan, 60], [0, 6 * 10.929 - 23.5, 30]]
    X += [[1, 20, 40], [1, 5 * 10.929 - 23.5, 42]]
    np.testing.assert_array_equal(matrix(table), X)
    assert table.locations.numbers_of_rows(range(5)) == [2, 3, 5, 7, 9]
    assert "leaves out 2 rows" in str(table.report.warnings)


def numbers_of(factor: float = 1.0) -> ReadOptions:
    plain = {"fields": [{"name": name} for name in ("a", "b", "c")]}
    mapped = {
        "columns": {
            "a": {"from": "c", "factor": factor},
            "b": {"missing": ["3"], "factor": 2.0, "offset": 1.0},
            "c": {"from": "a"},
        }
    }
    return ReadOptions(
        schema=Schema.model_validate(plain), mapping=TableMapping.model_validate(mapped)
    )


@pytest.mark.parametrize("form", ["csv", "german", "parquet", "pandas"])
def test_row_marks_are_those_of_the_table_before_it_was_mapped(
    form: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 50, (60, 3)) / 4
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    table = FORMS[form](frame, tmp_path)
    plain = open_table(table, columns=["a", "b", "c"])
    mapped = read_table(table, numbers_of(18.016))
    assert not np.array_equal(matrix(mapped), matrix(plain), equal_nan=True)
    order = rng.permutation(60)
    for before, after in (
        (plain, mapped),
        (order_rows(plain, order), order_rows(mapped, order)),
    ):
        expected, found = hash_cells(KEY, before), hash_cells(KEY, after)
        orders = np.argsort(found[1]), np.argsort(expected[1])
        for some, others in zip(found, expected, strict=True):
            np.testing.assert_array_equal(some[orders[0]], others[orders[1]])


SEX = {"name": "sex", "type": "string", "categories": ["female", "male"]}
CODED: dict[str, tuple[list[str], dict[str, Any], list[dict[str, Any]]]] = {
    "other levels": (
        ["w", "m", "w"],
        SEX,
        [
            {"levels": {"w": "female", "m": "male"}},
            {"levels": {"w": "male", "m": "female"}},
        ],
    ),
    "another rule of limits": (
        ["<0.1", "0.3", "7"],
        {"name": "sex"},
        [{"limits": "half"}, {"limits": "missing"}],
    ),
}


@pytest.mark.parametrize("name", CODED)
def test_another_mapping_makes_no_other_rows(name: str) -> None:
    cells, field, mappings = CODED[name]
    schema = Schema.model_validate({"fields": [field, {"name": "y"}]})
    frame = pd.DataFrame({"sex": cells, "y": [1.0, 2.0, 4.0]})
    marks = []
    for said in mappings:
        mapping = TableMapping.model_validate({"columns": {"sex": said}})
        read = read_table(frame, ReadOptions(schema=schema, mapping=mapping))
        marks.append(hash_cells(KEY, read)[0])
    np.testing.assert_array_equal(*marks)


def test_levels_are_known_in_whichever_order_they_come() -> None:
    frame = pd.DataFrame({"q": ["3", "1", "2", "often", None, "3"] * 5})
    marks = []
    for levels in (["1", "2", "3", "often"], ["often", "3", "2", "1"]):
        field = {"name": "q", "type": "string", "categories": levels}
        how = ReadOptions(schema=Schema.model_validate({"fields": [field]}))
        marks.append(hash_cells(KEY, read_table(frame, how))[0])
    np.testing.assert_array_equal(*marks)
    numbers = open_table(pd.DataFrame({"q": [3.0, 1.0, 2.0]}), columns=["q"])
    np.testing.assert_array_equal(marks[0][:, :3], hash_cells(KEY, numbers)[0])


def test_lines_to_leave_out_are_those_of_one_file() -> None:
    said = {"leave_out": {"lines": [3], "values": {"id": ["Summe"]}}}
    mapping = TableMapping.model_validate({**MAPPING.model_dump(), **said})
    again = mapping.for_new_rows()
    assert again.leave_out.lines == ()
    assert again.leave_out.values == {"id": ("Summe",)}
    assert again.columns == mapping.columns


def test_new_rows_need_no_column_that_is_not_read(tmp_path: Path) -> None:
    frame = frame_of().drop(columns=["smoker", "HbA1c"])
    said = MAPPING.model_dump()
    said["columns"]["smoker"]["from"] = "Raucher"
    mapping = TableMapping.model_validate(said)
    how = ReadOptions(
        id_column="id", columns=["sex", "age"], schema=DICTIONARY, mapping=mapping
    )
    assert read_table(as_csv(frame, tmp_path), how).n_rows == len(frame)
    report, _ = examine_table(
        as_csv(frame, tmp_path), ReadOptions(schema=DICTIONARY, mapping=mapping)
    )
    assert "names 'HbA1c', 'Raucher'" in report.problems[0].what


def coded_table(folder: Path, codes: str, levels: str) -> KnownTable:
    """The memory of 300 rows of eight coded columns, with levels in this order."""
    rng = np.random.default_rng(2)
    names = [f"q{i}" for i in range(8)]
    path = folder / "rows.csv"
    pd.DataFrame(rng.choice(list(codes), (300, 8)), columns=names).to_csv(
        path, index=False
    )
    fields = [{"name": n, "type": "string", "categories": [*levels]} for n in names]
    mapped = dict(zip(codes, "abc", strict=True)) if codes != "abc" else {"d": "a"}
    mapping = {"columns": {name: {"levels": mapped} for name in names}}
    options = ReadOptions(
        schema=Schema.model_validate({"fields": fields}),
        mapping=TableMapping.model_validate(mapping),
    )
    cells, hashes = hash_cells(KEY, read_table(path, options))
    marks, no_ids = np.arange(300, dtype=np.uint64), np.empty(0, np.uint64)
    return KnownTable(marks, no_ids, cells, hashes)


@pytest.mark.parametrize("codes", ["123", "xyz", "abc"])
def test_a_coded_table_is_recognised_with_levels_in_another_order(
    tmp_path: Path, codes: str
) -> None:
    before = coded_table(tmp_path, codes, "abc")
    after = coded_table(tmp_path, codes, "cab")
    np.testing.assert_array_equal(before.cells, after.cells)
    assert before.find(after).tolist() == list(range(300))

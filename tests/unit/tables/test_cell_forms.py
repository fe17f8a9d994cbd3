"""Cells as people write them, in one column: thousands, dates and limits of detection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.table_kinds import KINDS

from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, read_table
from party_sdk.tables.cells import parse_limit, read_date, read_number
from party_sdk.tables.mapping import TableMapping

NAN = float("nan")


def read_as(
    form: str, folder: Path, cells: list[Any], kind: str, **said: Any
) -> np.ndarray[Any, Any]:
    frame = pd.DataFrame({"x": [str(cell) for cell in cells], "n": "a"})
    table = KINDS[form](frame, folder)
    mapping = TableMapping.model_validate({"columns": {"x": said}})
    schema = Schema.model_validate({"fields": [{"name": "x", "type": kind}]})
    return matrix(read_table(table, ReadOptions(schema=schema, mapping=mapping)))[:, 0]


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize(
    ("sign", "cells"),
    [
        (".", ["1.234,5", "950", "12.345.678", "-1.000", "7,25"]),
        (",", ["1,234.5", "950", "12,345,678", "-1,000", "7.25"]),
        (" ", ["1 234,5", "950", "12\u00a0345\u202f678", "-1 000", "7.25"]),
        ("'", ["1'234.5", "950", "12\u2019345'678", "-1'000", "7.25"]),
    ],
)
def test_thousands_are_read(
    form: str, sign: str, cells: list[str], tmp_path: Path
) -> None:
    found = read_as(form, tmp_path, cells, "number", thousands=sign)
    np.testing.assert_array_equal(found, [1234.5, 950, 12_345_678, -1000, 7.25])


@pytest.mark.parametrize("form", KINDS)
def test_dates_of_several_forms_are_pandas_s(form: str, tmp_path: Path) -> None:
    cells = ["31.12.2024", "2025-03-01", "1/2/2025", "45658", "2024-02-29 08:15:00"]
    orders = ["day-first", "year-first", "excel"]
    found = read_as(form, tmp_path, cells, "date", dates=orders)
    days = ["2024-12-31", "2025-03-01", "2025-02-01", "2025-01-01", "2024-02-29"]
    expected = (pd.to_datetime(days) - pd.Timestamp(1970, 1, 1)).days
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("half", [0.05, 0.3, 2.5, 120.0]),
        ("value", [0.1, 0.3, 5.0, 120.0]),
        ("missing", [NAN, 0.3, NAN, NAN]),
    ],
)
@pytest.mark.quick(6)
def test_limits_are_read_by_a_declared_rule(
    form: str, rule: str, expected: list[float], tmp_path: Path
) -> None:
    cells = ["<0.1", "0.3", "≤ 5", "> 120"]
    found = read_as(form, tmp_path, cells, "number", limits=rule)
    np.testing.assert_array_equal(found, expected)
    doubled = read_as(form, tmp_path, cells, "number", limits=rule, factor=2.0)
    np.testing.assert_array_equal(doubled, 2 * np.array(expected))


@pytest.mark.parametrize("text", ["1.23.456", "12.34", "1,2,3", "", "1.234.56", "a"])
def test_what_is_no_number_with_thousands_stays(text: str) -> None:
    assert read_number(text, None, ".") is None


@pytest.mark.parametrize(
    "text", ["31.02.2024", "13/13/2024", "2024-13-01", "1.2.24", "59", "", "1.2-2024"]
)
def test_what_is_no_date_stays(text: str) -> None:
    assert read_date(text, ["day-first", "year-first", "excel"]) is None


def test_limits_are_taken_apart() -> None:
    assert parse_limit("< 0,1") == (True, "0,1")
    assert parse_limit(">=5") == (False, "5")
    assert parse_limit("0.1") is None
    assert parse_limit("<") is None


@pytest.mark.parametrize(
    "said",
    [
        {"dates": ["day-first", "month-first"]},
        {"thousands": ",", "decimal": ","},
        {"thousands": "_"},
        {"limits": "double"},
    ],
)
def test_a_mapping_that_contradicts_itself_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="x"):
        TableMapping.model_validate({"columns": {"x": said}})


@pytest.mark.parametrize("form", ["csv", "texts", "dates"])
def test_a_code_of_no_value_may_be_a_date(form: str, tmp_path: Path) -> None:
    cells = ["1900-01-01", "1955-03-01", "9999-12-31", "2001-12-31"]
    codes = ["9999-12-31", "unknown", "1900-01-01"]
    frame = pd.DataFrame({"x": cells, "y": np.arange(4.0)})
    if form == "dates":
        frame["x"] = frame["x"].astype("datetime64[s]")
    table = KINDS["csv" if form == "csv" else "pandas"](frame, tmp_path)
    field = {"name": "x", "type": "date", "missingValues": codes}
    how = ReadOptions(schema=Schema.model_validate({"fields": [field, {"name": "y"}]}))
    read = read_table(table, how)
    assert np.isnan(matrix(read)[:, 0]).tolist() == [True, False, True, False]
    told = "x: read as missing: 1900-01-01 in 1 row, 9999-12-31 in 1 row."
    assert read.report.columns[0].codes_sentence == told


@pytest.mark.parametrize("form", ["csv", "pandas"])
@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("integer", "17.0", "x: read as missing: 17.0 in 2 rows."),
        ("integer", "18", ""),
        ("string", "17", "x: read as missing: 17 in 2 rows."),
    ],
)
def test_a_home_says_how_many_rows_a_code_empties(
    form: str, kind: str, code: str, told: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"x": [17, 3, 17, 5], "y": np.arange(4.0)})
    field: dict[str, Any] = {"name": "x", "type": kind, "missingValues": [code]}
    if kind == "string":
        field["categories"] = ["3", "5"]
    how = ReadOptions(schema=Schema.model_validate({"fields": [field, {"name": "y"}]}))
    read = read_table(KINDS[form](frame, tmp_path), how)
    assert read.report.columns[0].codes_sentence == told
    assert np.isnan(matrix(read)[:, 0]).sum() == (2 if told else 0)

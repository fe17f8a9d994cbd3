"""Codes among numbers, titles above tables, totals and second headers."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.table_kinds import KINDS
from xlsxwriter import Workbook

from clustering_protocols.terms.schema import Field, Schema
from party_sdk.tables import Dialect, ReadOptions, examine_table, lone_values

rng = np.random.default_rng(5)
BMI = rng.normal(28, 3, 300).round(1)
AGES = rng.integers(25, 90, 300).astype(float)
PEPTIDE = np.abs(rng.normal(1.1, 0.3, 300)).round(2)
LIKERT = rng.integers(1, 6, 300).astype(float)


def coded(x: Any, *codes: float, times: int = 9) -> Any:
    given = np.array(x)
    for place, code in enumerate(codes):
        given[place * times : (place + 1) * times] = code
    return given


@pytest.mark.parametrize(
    ("x", "codes"),
    [
        (BMI, [999]),
        (BMI, [99]),
        (BMI, [-9, -8]),
        (BMI, [0]),
        (PEPTIDE, [-9]),
        (PEPTIDE, [-1]),
        (AGES, [99]),
        (AGES, [-9, 999]),
        (LIKERT, [9]),
        (LIKERT, [8, 9]),
        (LIKERT, [7, 99]),
        (BMI * 1000, [-9]),
        (BMI, [1e6]),
        (AGES % 2, [9]),
    ],
)
def test_codes_of_no_value_are_found_with_their_counts(
    x: Any, codes: list[float]
) -> None:
    found = lone_values(coded(x, *codes))
    assert [(each.value, each.count) for each in found] == [
        (code, 9) for code in sorted(codes)
    ]


@pytest.mark.parametrize(
    "x",
    [
        BMI,
        AGES,
        LIKERT,
        PEPTIDE - PEPTIDE.mean(),
        np.sign(PEPTIDE - 1.1),
        rng.integers(0, 10, 300).astype(float),
        rng.poisson(2, 300).astype(float),
        rng.poisson(0.05, 300).astype(float),
        rng.lognormal(0, 2, 300),
        np.clip(rng.normal(0, 1, 300), -1, 1),
        np.r_[np.arange(101.0), AGES],
        np.where(rng.random(300) < 0.3, 0, rng.lognormal(5, 1, 300)),
        np.r_[BMI, 99.4],
        np.full(300, 99.0),
        np.full(300, np.nan),
        np.array([]),
    ],
)
def test_ordinary_columns_hold_no_codes(x: Any) -> None:
    assert lone_values(x) == []


@pytest.mark.parametrize(
    ("kind", "has_schema"), [*((kind, False) for kind in KINDS), ("csv", True)]
)
def test_a_table_tells_its_codes_with_counts(
    tmp_path: Path, kind: str, *, has_schema: bool
) -> None:
    frame = pd.DataFrame({
        "id": [f"N{i}" for i in range(300)],
        "cpep": coded(PEPTIDE, -9),
        "smoke": LIKERT.astype(int),
    })  # fmt: skip
    path, schema = KINDS[kind](frame, tmp_path), None
    if has_schema:
        schema = Schema(fields=(Field(name="cpep"), Field(name="smoke")))
    report, _ = examine_table(path, ReadOptions(id_column="id", schema=schema))
    said = " ".join(report.warning_sentences)
    assert "'cpep': -9 in 9 rows, apart from all others" in said
    assert "missing = […] in a mapping" in said
    assert "--csv" not in said, "it would apply to other columns too"
    assert ("'smoke' (5 values)" in said) is (schema is None)
    how = ReadOptions(id_column="id", schema=schema, dialect=Dialect(missing=("-9",)))
    report, _ = examine_table(path, how)
    assert not report.outliers


def test_a_code_is_quoted_in_full() -> None:
    frame = pd.DataFrame({"x": np.r_[PEPTIDE, [99999.99] * 3]})
    report, _ = examine_table(frame, ReadOptions())
    assert "'x': 99999.99 in 3 rows" in report.outliers[0]


HEADER = ["id", "age", "bmi"]


def sheet(path: Path, *above: list[str], at: int = 0) -> Path:
    with Workbook(path) as book:
        written = book.add_worksheet("Auszug 2025")
        rows: list[list[Any]] = [*above, HEADER]
        rows += [[f"N{i}", AGES[i], BMI[i]] for i in range(30)]
        for place, row in enumerate(rows):
            written.write_row(place, at, row)
    return path


TITLES = {
    "none": [],
    "one": [["Diabetes cohort, North Hospital"]],
    "one and an empty row": [["Diabetes cohort"], []],
    "several": [["Diabetes cohort"], ["of", ""], [], ["confidential"]],
    "an empty row": [[]],
}


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("said", [True, False])
def test_names_of_a_sheet_stand_below_its_title(
    tmp_path: Path, name: str, *, said: bool
) -> None:
    above = TITLES[name]
    path = sheet(tmp_path / "t.xlsx", *above, at=2)
    skip = Dialect(skip=len(above)) if said else Dialect()
    report, table = examine_table(path, ReadOptions(id_column="id", dialect=skip))
    assert table is not None, report
    assert (table.columns, table.n_rows) == (("age", "bmi"), 30)
    assert table.locations.numbers_of_rows([0]) == [len(above) + 2]
    told = any("as a title" in warning for warning in report.warnings)
    assert told is (not said and name not in {"none", "an empty row"})


@pytest.mark.parametrize("title", [[], ["Diabetes cohort, 2024", ""]])
@pytest.mark.parametrize("named", [True, False])
def test_decimal_commas_cut_no_cells(
    tmp_path: Path, title: list[str], *, named: bool
) -> None:
    """Each row holds as many commas as semicolons, or more; the names hold none."""
    names = [*(["id"] if named else []), "age", "bmi"]
    decimal = [[f"{AGES[i]:.0f},5", f"{BMI[i]}".replace(".", ",")] for i in range(30)]
    rows = [[f"N{i}", *row] if named else row for i, row in enumerate(decimal)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*title, *(";".join(row) for row in [names, *rows])]))
    report, table = examine_table(path, ReadOptions(id_column="id" if named else None))
    assert table is not None, report
    assert table.columns == ("age", "bmi")
    assert (report.dialect["delimiter"], report.dialect["decimal"]) == (";", ",")
    assert report.dialect.get("skip", 0) == len(title)


def lines(*more: str, middle: str = "") -> str:
    rows = [f"N{i},{AGES[i]:.0f},{BMI[i]}" for i in range(30)]
    return "\n".join(
        ["id,age,bmi", *rows[:15], *filter(None, [middle]), *rows[15:], *more]
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (lines("Total,,"), 32),
        (lines("Summe:,,", "n,3,4.5"), 32),
        (lines(middle="total,7,8"), 17),
        (lines(f"x,{AGES[:30].sum():.0f},{BMI[:30].mean()}"), 0),
        (lines(f"x,{AGES[:30].sum():.0f},{BMI[:30].sum()}"), 32),
    ],
)
def test_rows_of_totals_are_told(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    report, _ = examine_table(path, ReadOptions(id_column="id"))
    found = [each.line for each in report.problems]
    assert found == ([line] if line else [])
    report, _ = examine_table(path, ReadOptions(id_column="id", allow=["totals-row"]))
    assert not report.problems

"""A table means the same in every format, and on every machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet
from xlsxwriter import Workbook

from clustering_protocols.terms.schema import Field, Schema
from party_sdk.tables import ReadOptions, Table, read_table

ZONES = ("UTC", "Asia/Tokyo", "America/New_York")
SCHEMA = Schema(
    fields=(
        Field(name="born", type="date"),
        Field(name="crp", type="number"),
        Field(name="visits", type="integer"),
        Field(name="sex", type="string", categories=("f", "m")),
        Field(name="smokes", type="boolean"),
    )
)
HOW = ReadOptions(id_column="pid", schema=SCHEMA)

Row = tuple[date | None, float | None, int | None, str | None, bool | None]

ROWS = st.lists(
    st.tuples(
        st.none() | st.dates(date(1900, 3, 1), date(2199, 12, 31)),
        st.none() | st.decimals(-999, 9999, places=2).map(float),
        st.none() | st.integers(-10_000, 10_000_000),
        st.none() | st.sampled_from(["f", "m"]),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(params=ZONES)
def zone(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Let this machine stand in another time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    names = ["born", "crp", "visits", "sex", "smokes"]
    cells = zip(*rows, strict=True)
    ids = [f"P{row:03}" for row in range(len(rows))]
    return {"pid": ids, **dict(zip(names, map(list, cells), strict=True))}


def at_midnight(day: date | None, zone: str) -> pd.Timestamp | None:
    return None if day is None else pd.Timestamp(day.isoformat(), tz=zone)


def arrow_of(rows: list[Row], zone: str | None = None, unit: str = "us") -> pa.Table:
    kinds = [
        pa.string(),
        pa.date32(),
        pa.float64(),
        pa.int64(),
        pa.string(),
        pa.bool_(),
    ]
    table = pa.table(
        [pa.array(c, k) for c, k in zip(columns_of(rows).values(), kinds, strict=True)],
        list(columns_of(rows)),
    )
    if zone is None:
        return table
    days = [at_midnight(row[0], zone) for row in rows]
    return table.set_column(1, "born", pa.array(days, pa.timestamp(unit, zone)))


def as_csv(rows: list[Row], folder: Path) -> Path:
    pd.DataFrame(columns_of(rows)).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_parquet(rows: list[Row], folder: Path, zone: str | None = None) -> Path:
    parquet.write_table(arrow_of(rows, zone), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_of_any_unit_have_the_day_of_their_zone(
    tmp_path: Path, unit: str
) -> None:
    rows: list[Row] = [(date(2023, 5, 1), 1.25, 3, "f", True)] * 2
    _, X = read(as_csv(rows, tmp_path))
    arrow = arrow_of(rows, "Europe/Berlin", unit)
    parquet.write_table(arrow, tmp_path / "rows.parquet")
    for table in (tmp_path / "rows.parquet", arrow):
        np.testing.assert_array_equal(read(table)[1], X)


def as_sheet(rows: list[Row], folder: Path) -> Path:
    with Workbook(str(folder / "rows.xlsx")) as book:
        sheet = book.add_worksheet()
        day = book.add_format({"num_format": "dd.mm.yyyy"})
        for place, (name, cells) in enumerate(columns_of(rows).items()):
            sheet.write(0, place, name)
            for row, cell in enumerate(cells, 1):
                if isinstance(cell, date):
                    sheet.write_datetime(row, place, cell, day)
                elif cell is not None:
                    sheet.write(row, place, cell)
    return folder / "rows.xlsx"


def as_pandas(rows: list[Row], folder: Path) -> pd.DataFrame:
    del folder
    return pd.DataFrame(columns_of(rows))


def as_polars(rows: list[Row], folder: Path) -> Any:
    del folder
    return pl.from_arrow(arrow_of(rows))


def zoned(zone: str) -> dict[str, Callable[[list[Row], Path], Any]]:
    return {
        "parquet": lambda rows, folder: as_parquet(rows, folder, zone),
        "arrow": lambda rows, _: arrow_of(rows, zone),
        "pandas": lambda rows, _: arrow_of(rows, zone).to_pandas(),
        "polars": lambda rows, _: pl.from_arrow(arrow_of(rows, zone)),
    }


FORMS: dict[str, Callable[[list[Row], Path], Any]] = {
    "parquet": as_parquet,
    "sheet": as_sheet,
    "pandas": as_pandas,
    "indexed": lambda *args: as_pandas(*args).set_index("pid"),
    "polars": as_polars,
}


def numbers_of(table: Table) -> np.ndarray[Any, Any]:
    return table.take(np.arange(table.n_rows))


def read(table: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    found = read_table(table, HOW)
    return list(found.ids or ()), numbers_of(found)


@pytest.mark.parametrize("form", FORMS)
@given(rows=ROWS)
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@pytest.mark.quick(3)
def test_values_are_those_of_the_text_file(
    tmp_path: Path, form: str, rows: list[Row]
) -> None:
    ids, X = read(as_csv(rows, tmp_path))
    own_ids, own = read(FORMS[form](rows, tmp_path))
    assert own_ids == ids
    np.testing.assert_array_equal(own, X)


@pytest.mark.parametrize("kept", ["Europe/Berlin", "Pacific/Auckland", "+05:30"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "pandas", "polars"])
@pytest.mark.quick(9)
def test_a_day_is_that_of_the_stored_zone(
    tmp_path: Path, zone: str, form: str, kept: str
) -> None:
    if form == "polars" and kept.startswith("+"):
        pytest.skip("polars knows zones by name alone")
    first = date(1974, 1, 1)
    days = [first + timedelta(days=97 * row) for row in range(60)]
    rows: list[Row] = [(day, 1.25, 3, "f", True) for day in days]
    _, X = read(as_csv(rows, tmp_path))
    _, own = read(zoned(kept)[form](rows, tmp_path))
    np.testing.assert_array_equal(own, X, err_msg=f"{form} under {zone}")

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
from support.table_kinds import KINDS, as_csv

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


def frame_of(rows: list[Row]) -> pd.DataFrame:
    names = ["born", "crp", "visits", "sex", "smokes"]
    cells = zip(*rows, strict=True)
    ids = [f"P{row:03}" for row in range(len(rows))]
    return pd.DataFrame({"pid": ids, **dict(zip(names, map(list, cells), strict=True))})


def arrow_of(rows: list[Row], zone: str, unit: str = "us") -> pa.Table:
    """Return the rows with their days as midnights of a zone."""
    days = [None if row[0] is None else pd.Timestamp(row[0], tz=zone) for row in rows]
    table = pa.Table.from_pandas(frame_of(rows), preserve_index=False)
    return table.set_column(1, "born", pa.array(days, pa.timestamp(unit, zone)))


def as_parquet(table: pa.Table, folder: Path) -> Path:
    parquet.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_of_any_unit_have_the_day_of_their_zone(
    tmp_path: Path, unit: str
) -> None:
    rows: list[Row] = [(date(2023, 5, 1), 1.25, 3, "f", True)] * 2
    _, X = read(as_csv(frame_of(rows), tmp_path))
    arrow = arrow_of(rows, "Europe/Berlin", unit)
    for table in (as_parquet(arrow, tmp_path), arrow):
        np.testing.assert_array_equal(read(table)[1], X)


ZONED: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": as_parquet,
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
}
FORMS = {
    **{kind: KINDS[kind] for kind in KINDS if kind != "csv"},
    "indexed": lambda frame, _: frame.set_index("pid"),
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
    ids, X = read(as_csv(frame_of(rows), tmp_path))
    own_ids, own = read(FORMS[form](frame_of(rows), tmp_path))
    assert own_ids == ids
    np.testing.assert_array_equal(own, X)


@pytest.mark.parametrize("kept", ["Europe/Berlin", "Pacific/Auckland", "+05:30"])
@pytest.mark.parametrize("form", ZONED)
@pytest.mark.quick(9)
def test_a_day_is_that_of_the_stored_zone(
    tmp_path: Path, zone: str, form: str, kept: str
) -> None:
    if form == "polars" and kept.startswith("+"):
        pytest.skip("polars knows zones by name alone")
    first = date(1974, 1, 1)
    days = [first + timedelta(days=97 * row) for row in range(60)]
    rows: list[Row] = [(day, 1.25, 3, "f", True) for day in days]
    _, X = read(as_csv(frame_of(rows), tmp_path))
    _, own = read(ZONED[form](arrow_of(rows, kept), tmp_path))
    np.testing.assert_array_equal(own, X, err_msg=f"{form} under {zone}")

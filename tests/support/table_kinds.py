"""One table in each kind that Coterie reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pandas as pd
import polars as pl


def as_csv(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.csv"
    table.to_csv(path, index=False)
    return path


def as_sheet(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.xlsx"
    table.to_excel(path, index=False, engine="xlsxwriter")
    return path


def as_parquet(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.parquet"
    table.to_parquet(path)
    return path


KINDS: Final[dict[str, Callable[[pd.DataFrame, Path], Any]]] = {
    "csv": as_csv,
    "sheet": as_sheet,
    "parquet": as_parquet,
    "pandas": lambda table, _: table,
    "polars": lambda table, _: pl.from_pandas(table),
}

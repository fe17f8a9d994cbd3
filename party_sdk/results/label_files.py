"""Files with a line for each row: what names it, its label, and what else is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.extras import require_extra
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.home.disk_room import report_full_disk
from party_sdk.results.row_labels import free_name
from party_sdk.tables import Table

_PARQUET = frozenset({".parquet", ".pq"})
_SHEET = ".xlsx"
_MOST_ROWS = 2**20 - 1  # under the names of the columns


def naming_of(data: DataSource | None) -> tuple[str, ...]:
    """Return the columns that hold a source's ids, where they have names."""
    return data.naming if isinstance(data, Table) else ()


def write_labels(
    path: Path,
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> Path:
    """Write one line per row: its id or number, its label, and more columns.

    The file is there as a whole or not at all; a link is replaced, not followed. What is
    not a number stays empty.
    """
    table = _build_table(labels, ids, naming, more)
    fresh = path.with_name(f".{path.name}.new")
    try:
        with report_full_disk(path.parent, f"{path.name!r} was to be written."):
            write_arrow(table, fresh, path.suffix.lower())
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def encode_labels(
    ending: str,
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> bytes:
    """Return what :func:`write_labels` writes into a file with this ending."""
    content = BytesIO()
    write_arrow(_build_table(labels, ids, naming, more), content, ending)
    return content.getvalue()


def _build_table(
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> pa.Table:
    columns = id_columns(labels, ids, naming)
    for name, values in {"label": labels, **more}.items():
        columns[free_name(name, columns)] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def id_columns(
    labels: IntArray, ids: Sequence[str] | None, naming: Sequence[str]
) -> dict[str, Any]:
    """Return what names the rows, by column: ids, or row numbers from 0."""
    if ids is None:
        return {"id": pa.array(range(len(labels)))}
    if len(naming) < 2:
        return {(naming or ("id",))[0]: pa.array(ids, pa.large_string())}
    parts = zip(*map(json.loads, ids), strict=True)
    return {name: pa.array(part) for name, part in zip(naming, parts, strict=True)}


def is_text_file(path: Path) -> bool:
    """Return whether labels in a file of this name are CSV: any ending but two kinds'."""
    return path.suffix.lower() not in {*_PARQUET, _SHEET}


def write_arrow(table: pa.Table, target: Path | BytesIO, ending: str) -> None:
    """Write a table as Parquet, a sheet of Excel or CSV."""
    if ending in _PARQUET:
        from pyarrow import parquet  # as with csv below: most parties write neither

        parquet.write_table(table, target)
    elif ending == _SHEET:
        _write_sheet(table, target)
    else:
        from pyarrow import csv

        csv.write_csv(table, target)


def _write_sheet(table: pa.Table, target: Path | BytesIO) -> None:
    """Write a sheet in which texts are texts: an id such as =1+1 is no formula.

    Raises InvalidParameters if it has more rows than a sheet holds.
    """
    if table.num_rows > _MOST_ROWS:
        raise InvalidParameters(
            f"A sheet of Excel holds {_MOST_ROWS:,} rows, and there are "
            f"{table.num_rows:,}: write them as .csv or .parquet."
        )
    book = workbook(target)
    sheet = book.add_worksheet("labels")
    sheet.write_row(0, 0, table.column_names)
    for place, column in enumerate(table.columns):
        sheet.write_column(1, place, column.to_pylist())
    book.close()


def require_excel() -> None:
    """Raise :class:`InvalidParameters` where Excel's files cannot be written."""
    require_extra("excel", "Files of Excel are written by XlsxWriter", "xlsxwriter")


def workbook(target: Path | BytesIO) -> Any:
    """Return a new file of Excel; see :func:`require_excel`."""
    require_excel()
    from xlsxwriter import Workbook

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    return Workbook(target, plain)

"""Files with one line per row of a table: its id, its label and further columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.common.extras import require_extra
from clustering_protocols.numerics.data_source import DataSource, MatrixSource, matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.results.output_files import atomic_replacement
from party_sdk.tables import ReadOptions, Table, open_table, read_table
from party_sdk.tables.mapping import TableMapping

_PARQUET = frozenset({".parquet", ".pq"})
_SHEET = ".xlsx"
_MOST_ROWS = 2**20 - 1  # a sheet also has a header


def naming_of(data: DataSource | None) -> tuple[str, ...]:
    """Return the names of the id columns; empty for a matrix."""
    return data.naming if isinstance(data, Table) else ()


def write_labels(
    path: Path,
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> Path:
    """Write a line for each row: its id or number, its label and further columns.

    The file is written completely or not at all, and a symbolic link is replaced rather
    than followed. NaN becomes an empty cell.
    """
    content = encode_labels(path.suffix.lower(), labels, ids, naming, more)
    with atomic_replacement(path) as fresh:
        fresh.write_bytes(content)
    return path


def encode_labels(
    ending: str,
    labels: IntArray,
    ids: Sequence[str] | None,
    naming: Sequence[str],
    more: Mapping[str, FloatArray],
) -> bytes:
    """Return the bytes that :func:`write_labels` writes to a file with this extension."""
    columns = id_columns(labels, ids, naming)
    for name, values in {"label": labels, **more}.items():
        columns[make_unused_name(name, columns)] = pa.array(values, from_pandas=True)
    content = BytesIO()
    write_arrow(pa.table(columns), content, ending)
    return content.getvalue()


def id_columns(
    labels: IntArray, ids: Sequence[str] | None, naming: Sequence[str]
) -> dict[str, Any]:
    """Return the columns with the ids, or with row numbers from 0 if there are none."""
    if ids is None:
        return {"id": pa.array(range(len(labels)))}
    if len(naming) < 2:
        return {(naming or ("id",))[0]: pa.array(ids, pa.large_string())}
    parts = zip(*map(json.loads, ids), strict=True)
    return {name: pa.array(part) for name, part in zip(naming, parts, strict=True)}


def write_arrow(table: pa.Table, target: Path | BytesIO, ending: str) -> None:
    """Write a table as Parquet or Excel if the extension says so, otherwise as CSV."""
    if ending in _PARQUET:
        # Imported here, like csv, because most parties need neither.
        from pyarrow import parquet

        parquet.write_table(table, target)
    elif ending == _SHEET:
        _write_sheet(table, target)
    else:
        from pyarrow import csv

        csv.write_csv(table, target)


def _write_sheet(table: pa.Table, target: Path | BytesIO) -> None:
    """Write an Excel sheet in which all texts remain texts, even an id such as =1+1.

    Raises InvalidParameters if the table has more rows than a sheet can hold.
    """
    if table.num_rows > _MOST_ROWS:
        raise InvalidParameters(
            f"An Excel sheet holds {_MOST_ROWS:,} rows, and there are "
            f"{table.num_rows:,}: write them as .csv or .parquet."
        )
    require_excel()
    from xlsxwriter import Workbook

    options = {
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "default_date_format": "yyyy-mm-dd",
        "in_memory": True,
    }
    book = Workbook(target, options)
    sheet = book.add_worksheet("labels")
    sheet.write_row(0, 0, table.column_names)
    for index, column in enumerate(table.columns):
        sheet.write_column(1, index, column.to_pylist())
    book.close()


def require_excel() -> None:
    """Raise InvalidParameters if the library that writes Excel files is not installed."""
    require_extra("excel", "Excel files are written by XlsxWriter", "xlsxwriter")


def check_row_count(n_rows: int, n_labels: int) -> None:
    """Raise InvalidData if the numbers of rows and labels differ."""
    if n_rows != n_labels:
        raise InvalidData(
            f"The table has {n_rows} rows and the result {n_labels}: use the rows that "
            "took part."
        )


def is_sparse(table: Any) -> bool:
    """Return whether a table is a sparse matrix, without importing scipy."""
    return hasattr(table, "tocsr")


def check_ids(
    table: Any,
    ids: Sequence[str],
    naming: Sequence[str],
    columns: Sequence[str],
    mapping: TableMapping | None,
) -> None:
    """Raise InvalidData if a table has ids that differ from ``ids`` or their order."""
    if isinstance(table, np.ndarray) or is_sparse(table):
        return
    if isinstance(table, DataSource):
        table_ids = table.ids
    else:
        options = ReadOptions(id_column=naming, columns=columns[:1], mapping=mapping)
        table_ids = read_table(table, options).ids
    if table_ids is not None and list(table_ids) != list(ids):
        raise InvalidData(
            "The table does not have the ids of the result in the same order. Use "
            "the rows that took part, in their order."
        )


def append_columns(table: Any, more: Mapping[str, FloatArray | IntArray]) -> Any:
    """Return a table of pandas, polars or pyarrow with further columns appended.

    The result has the same type as the table and, in pandas, the same index. ``_`` is
    appended to a name that is already taken.

    Raises InvalidData if the table is of another type, or has another number of rows.
    """
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InvalidData(
            f"{type(table).__name__} is not a table of pandas, polars or pyarrow."
        ) from None
    names = {str(name) for name in frame.columns}
    new_columns = []
    for name, values in more.items():
        check_row_count(len(frame), len(values))
        free = make_unused_name(name, names)
        names.add(free)
        new_columns.append(nw.new_series(free, values, backend=frame.implementation))
    return frame.with_columns(*new_columns).to_native()


def make_unused_name(name: str, names: Mapping[str, Any] | set[str]) -> str:
    """Return a name with as many underscores appended as make it unused."""
    while name in names:
        name += "_"
    return name


def open_rows_to_draw(
    table: Any,
    columns: Sequence[str],
    schema: Schema | None,
    preparation: Preparation | None,
    mapping: TableMapping | None,
) -> DataSource:
    """Open the rows of a session as numbers that can be plotted.

    With a preparation, fields with levels are omitted; missing values become means.

    Raises InvalidData if the table cannot be read, or if it has no numeric field.
    """
    is_matrix = isinstance(table, np.ndarray | DataSource)
    data = open_table(
        table,
        columns=None if is_matrix or not columns else columns,
        schema=None if is_matrix else schema,
        preparation=preparation,
        mapping=None if is_matrix else mapping,
    )
    if schema is None or preparation is None:
        return data
    numbers = [not schema.field(name).is_category for name in data.columns]
    if not any(numbers):
        raise InvalidData("The table has no numeric field that could be plotted.")
    X = matrix(data)[:, numbers]
    means = np.nan_to_num(np.nanmean(X, axis=0))
    return MatrixSource(np.where(np.isnan(X), means, X))


_FORMULA: Final = r"^[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"


def count_formula_like_cells(path: Path) -> int:
    """Return how many cells of a file of labels look like formulas to a spreadsheet.

    Only CSV files are searched, because other formats distinguish texts from formulas.

    Raises OSError if the file does not exist.
    """
    if path.suffix.lower() in {*_PARQUET, _SHEET}:  # all other files are CSV
        return 0
    from pyarrow import csv

    parsing = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=parsing) as opened:
        names = opened.schema.names
    types = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    with csv.open_csv(path, parse_options=parsing, convert_options=types) as batches:
        n_cells = sum(
            _count_formulas(column) for batch in batches for column in batch.columns
        )
    return n_cells + _count_formulas(pa.array(names))


def _count_formulas(texts: pa.Array) -> int:
    from pyarrow import compute

    begins_like_one = compute.match_substring_regex(texts, _FORMULA)
    is_number = compute.match_substring_regex(texts, _NUMBER)
    is_formula = compute.and_not(begins_like_one, is_number)
    return int(compute.sum(is_formula, min_count=0).as_py())


def formula_advice(path: Path) -> str:
    """Return advice about cells that look like formulas; empty if there are none."""
    if (n_cells := count_formula_like_cells(path)) == 0:
        return ""
    begin = "1 cell begins" if n_cells == 1 else f"{n_cells} cells begin"
    return (
        f"{begin} like a formula (=, +, -, @): ids are written unchanged. Import the file "
        "into a spreadsheet as text, or write the labels as .xlsx or .parquet."
    )

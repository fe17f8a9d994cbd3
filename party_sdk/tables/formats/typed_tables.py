"""Tables whose columns have types: Parquet files, and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.columns import Column, kind_of, texts
from party_sdk.tables.names import Names
from party_sdk.tables.parsing import duck
from party_sdk.tables.parsing.column_kinds import Kind
from party_sdk.tables.parsing.limits import MOST_CELL, Limits
from party_sdk.tables.parsing.row_places import NumberedRows, Places
from party_sdk.tables.report import Findings
from party_sdk.tables.source import Batch, Cells


class _TypedSource:
    """What both have: rows that are counted, and nothing that was left out."""

    places: Places = NumberedRows()
    warnings: Sequence[str] = ()

    @property
    def format_description(self) -> dict[str, Any]:
        """Return nothing: types speak for themselves."""
        return {}

    def normalise(self, column: Column, texts: pa.Array) -> pa.Array:
        """Return texts as they are."""
        del column
        return texts

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells with their types."""
        raise NotImplementedError

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield cells as texts."""
        for batch in self.batches(columns, ()):
            yield [texts(piece) for piece in batch.cells]

    def read_places(self) -> Places:
        """Return how rows are counted: every one was read."""
        return self.places

    def tell(self, columns: Sequence[Column], findings: Findings) -> None:
        """Add nothing: every row was read."""


class ParquetSource(_TypedSource):
    """A Parquet file, read by DuckDB batch by batch."""

    def __init__(self, path: Path, folder: Path, limits: Limits) -> None:
        self._path, self._folder, self._limits = path.absolute(), folder, limits
        try:
            with duck.open_database(self._path, folder) as connection:
                found = duck.parquet_names(connection, self._path)
        except duckdb.Error as error:
            raise duck.unreadable(path, error) from None
        self._own_names = [name for name, _ in found]
        self.names = Names(self._own_names)
        self._types = [kind for _, kind in found]
        self.kinds: Sequence[Kind] = [_kind(kind) for kind in self._types]

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells, numbers as float64 and all else as text or date."""
        wanted = [self.names.position(column.name) for column in columns]
        ids = [self.names.position(name) for name in naming]
        casts = [(place, _cast(self.kinds[place])) for place in wanted]
        casts += [(place, _id_cast(self._types[place])) for place in ids]
        try:
            with duck.open_database(self._path, self._folder) as connection:
                self._check_size(connection, wanted, ids)
                for batch in duck.read_parquet(connection, self._path, casts):
                    self._check_cells(batch)
                    yield Batch(
                        batch.columns[: len(wanted)], batch.columns[len(wanted) :]
                    )
        except duckdb.Error as error:
            raise duck.unreadable(self._path, error) from None

    def _check_size(
        self,
        connection: duckdb.DuckDBPyConnection,
        wanted: Sequence[int],
        ids: Sequence[int],
    ) -> None:
        """Refuse columns that take too much, as numbers and ids or as their pages say."""
        names = [self._own_names[place] for place in [*wanted, *ids]]
        n_rows, n_bytes = duck.parquet_size(connection, self._path, names)
        remedy = "Choose fewer columns with --columns"
        self._limits.check_rows(n_rows, len(wanted), len(ids), remedy)
        self._limits.check_unpacked(n_bytes, f"{self._path.name!r} takes", remedy)

    def _check_cells(self, batch: pa.RecordBatch) -> None:
        """Refuse texts that are longer than a line of a text file may be."""
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                longest = compute.max(compute.binary_length(column)).as_py()
                if (longest or 0) > MOST_CELL:
                    raise InvalidData(
                        f"{self._path.name!r} holds a cell of more than two mebibytes."
                    )


class FrameSource(_TypedSource):
    """A table of pandas, polars or pyarrow in memory."""

    def __init__(self, table: Any) -> None:
        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise InvalidData(
                f"{type(table).__name__} is no table that coterie knows: use a path, a "
                "numpy array, or a pandas, polars or pyarrow table."
            ) from None
        except nw.exceptions.DuplicateError:
            raise InvalidData("Two columns have the same name.") from None
        self.names = Names(str(name) for name in frame.columns)
        try:
            # an index of pandas comes as columns behind the others
            places = list(range(len(frame.columns)))
            self._table: pa.Table = frame.to_arrow().select(places)
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidData(_of_unknown_kind(frame)) from None
        self.kinds: Sequence[Kind] = [
            kind_of(kind) for kind in self._table.schema.types
        ]

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells as Arrow has them."""
        wanted = [self.names.position(column.name) for column in columns]
        places = [*wanted, *(self.names.position(name) for name in naming)]
        size = duck.batch_rows(len(places))
        for batch in self._table.select(places).to_batches(size):
            yield Batch(batch.columns[: len(wanted)], batch.columns[len(wanted) :])


def _of_unknown_kind(frame: Any) -> str:
    """Return which column cannot be read, as far as one alone cannot."""
    for name in frame.columns:
        try:
            frame.select(name).to_arrow()
        except (pa.ArrowException, TypeError, ValueError):
            return (
                f"{name!r}: its values are of several kinds, or of one that is not known, "
                "such as a sparse one: make it a column of numbers."
            )
    return "A column holds values of several kinds, or of one that is not known."


def _kind(name: str) -> Kind:
    """Return what a column of one of DuckDB's types holds."""
    base = name.partition("(")[0]
    if base in {"DOUBLE", "FLOAT", "DECIMAL"}:
        return "number"
    if base.endswith(("INT", "INTEGER")):
        return "integer"
    if base == "BOOLEAN":
        return "boolean"
    return "date" if base.startswith(("DATE", "TIMESTAMP")) else "words"


def _id_cast(name: str) -> str:
    """Return as what ids are read: as texts, but 7.0 is to become 7."""
    kept = name in {"DOUBLE", "FLOAT"} or name.startswith("TIMESTAMP")
    return name if kept else "VARCHAR"


def _cast(kind: Kind) -> str:
    names = {
        "number": "DOUBLE",
        "integer": "DOUBLE",
        "boolean": "BOOLEAN",
        "date": "DATE",
    }
    return names.get(kind, "VARCHAR")

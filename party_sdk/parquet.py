"""Parquet files that are read batch by batch, however large they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet, types

from clustering_protocols.arrays import FloatArray
from clustering_protocols.data import BATCH_ROWS
from clustering_protocols.errors import InvalidData


class ParquetSource:
    """A data source that holds one batch of rows at a time.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        The columns to cluster.
    ids : sequence of str, optional
        One id per row; these are held in memory.

    Raises
    ------
    InvalidData
        While rows are read: if a value is missing or infinite.
    """

    def __init__(
        self, path: Path, columns: Sequence[str], ids: Sequence[str] | None
    ) -> None:
        self._file = parquet.ParquetFile(path)
        self.n_rows: int = self._file.metadata.num_rows
        self.columns = tuple(columns)
        self.ids = None if ids is None else tuple(ids)
        if self.ids is not None and len(self.ids) != self.n_rows:
            raise InvalidData(f"{self.n_rows} rows need as many ids.")

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows in pieces of at most ``BATCH_ROWS``."""
        for batch in self._file.iter_batches(BATCH_ROWS, columns=list(self.columns)):
            yield _matrix(batch, self.columns)


def n_bytes(path: Path, n_columns: int) -> int:
    """Return how large the columns of a file would be in memory."""
    n_rows: int = parquet.ParquetFile(path).metadata.num_rows
    return 8 * n_rows * n_columns


def numeric_columns(path: Path) -> dict[str, bool]:
    """Return which columns of a file hold numbers."""
    schema = parquet.ParquetFile(path).schema_arrow
    return {field.name: _is_numeric(field.type) for field in schema}


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )


def _matrix(batch: pa.RecordBatch, columns: Sequence[str]) -> FloatArray:
    X = np.empty((batch.num_rows, len(columns)))
    for index, name in enumerate(columns):
        column = batch.column(name)
        if column.null_count:
            raise InvalidData(f"Values are missing in {name!r}.")
        X[:, index] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    finite = np.isfinite(X).all(axis=0)
    if not finite.all():
        named = ", ".join(np.array(columns)[~finite])
        raise InvalidData(f"Values are missing or infinite in {named}.")
    return X

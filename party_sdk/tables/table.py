"""A table that was read completely: its rows in a temporary file, and its report."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa

from clustering_protocols.numerics.data_source import BATCH_ROWS, DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.home.disk_room import report_full_disk
from party_sdk.tables.columns import Column, original_numbers
from party_sdk.tables.report import MOST_SHOWN, CheckReport
from party_sdk.tables.source import RowLocations


class Spool:
    """A temporary file of float64 rows, written once and read any number of times.

    The file has no name, so that nothing remains on disk when the process ends.

    width: number of columns.
    """

    def __init__(self, width: int) -> None:
        self.n_rows, self.width = 0, width
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object
        weakref.finalize(self, self._file.close)

    def write(self, X: FloatArray) -> None:
        """Append rows of shape (n, width). Raises StorageFull if the disk is full."""
        with _report_full_disk(f"The rows as numbers ({8 * self.width} bytes each)"):
            self._file.write(np.ascontiguousarray(X).data)
            self._file.flush()
        self.n_rows += len(X)

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows in batches of at most ``BATCH_ROWS``.

        Each batch is a private memory map: the caller may overwrite it without changing
        the file. The memory of a batch is freed with the batch, whereas a map of
        the whole file would count as memory of this process.
        """
        for begin in range(0, self.n_rows, BATCH_ROWS):
            yield np.memmap(
                self._file,
                np.float64,
                mode="c",
                offset=8 * self.width * begin,
                shape=(min(BATCH_ROWS, self.n_rows - begin), self.width),
            ).view(np.ndarray)

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these indices, in the order given."""
        shape = (self.n_rows, self.width)
        return np.array(np.memmap(self._file, np.float64, mode="r", shape=shape)[rows])


class ColumnSpool:
    """A temporary file of Arrow columns without a name, as in :class:`Spool`."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object
        weakref.finalize(self, self._file.close)
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, columns: Sequence[pa.Array]) -> None:
        """Append a batch of columns. Raises StorageFull if the disk is full."""
        batch = pa.record_batch(list(columns), [str(i) for i in range(len(columns))])
        with _report_full_disk("Columns as text"):
            if self._writer is None:
                self._writer = pa.ipc.new_stream(self._file, batch.schema)
            self._writer.write_batch(batch)

    def close(self) -> list[pa.RecordBatch]:
        """End the file, map it into memory and return its batches."""
        if self._writer is None:
            return []
        with _report_full_disk("Columns as text"):
            self._writer.close()
            self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        with pa.ipc.open_stream(pa.py_buffer(mapped)) as stream:
            return list(stream)


def _report_full_disk(content: str) -> AbstractContextManager[None]:
    folder = Path(tempfile.gettempdir())
    return report_full_disk(folder, f"{content} go there; set TMPDIR to another one.")


class ArrowIds(Sequence[str]):
    """A sequence of ids stored in Arrow, which become Python strings only when accessed."""

    def __init__(self, pieces: Sequence[pa.Array]) -> None:
        self._ids = pa.chunked_array(pieces, pa.large_string())

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: Any) -> Any:
        item = self._ids[index]
        return ArrowIds(item.chunks) if isinstance(index, slice) else item.as_py()

    def __iter__(self) -> Iterator[str]:
        for piece in self._ids.chunks:
            yield from piece.to_pylist()

    def take(self, rows: IntArray) -> ArrowIds:
        """Return the ids of the rows with these indices, in the order given."""
        return ArrowIds(self._ids.take(pa.array(rows)).chunks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(
            a == b for a, b in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # equal to other sequences of the same ids

    @property
    def arrow(self) -> pa.ChunkedArray:
        """Return the ids as an Arrow array, without a copy."""
        return self._ids


@dataclass(frozen=True, slots=True, eq=False)
class UnmappedCells:
    """A table's own column names and cells, as they were before a mapping changed them.

    headers: the names of the columns in the table, in the session's order.
    changed: indices of the columns whose cells the mapping changed, ascending.
    spool: for each changed column, numbers that represent its original cells.
    """

    headers: tuple[str, ...]
    changed: tuple[int, ...]
    spool: Spool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A data source over a table that was read completely.

    Columns have the order of the dictionary, or of the table without one. Cells are
    stored as numbers: 0 or 1 for a boolean, the index of a level in the dictionary, the
    number of days since 1970-01-01 for a date, and NaN for a missing value.

    naming: names of the columns that identify the rows.
    column_specs: the columns to cluster.
    unmapped: names and cells before the mapping; None if the mapping changed nothing.
    """

    report: CheckReport
    naming: tuple[str, ...]
    column_specs: tuple[Column, ...]
    ids: ArrowIds | None
    locations: RowLocations
    spool: Spool
    unmapped: UnmappedCells | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.spool.n_rows

    @property
    def original(self) -> DataSource:
        """Return the rows as they were before any mapping and without a dictionary.

        A level becomes the number in its text, or a hash of the text.
        """
        unmapped = self.unmapped or UnmappedCells(self.columns, (), self.spool)
        levels = {
            index: original_numbers(column, pa.array(column.field.levels))
            for index, column in enumerate(self.column_specs)
            if column.field is not None
            and column.field.is_category
            and index not in unmapped.changed
        }
        if self.unmapped is None and not levels:
            return self
        return _UnmappedRows(self, unmapped, levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns to cluster."""
        return tuple(column.name for column in self.column_specs)

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows in batches; a missing value is NaN."""
        return self.spool.batches()

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these indices, in the order given."""
        return self.spool.take(rows)

    def describe_same_ids(self, normalise: Callable[[str], str] | None = None) -> str:
        """Return a sentence that lists rows with the same id; empty if there are none.

        The sentence lists at most ten pairs of line or row numbers, and quotes no id.
        Ids are compared in the form that ``normalise`` returns, by default unchanged.
        """
        if self.ids is None:
            return ""
        ids = self.ids
        if normalise is not None:
            ids = ArrowIds([pa.array(map(normalise, ids), pa.large_string())])
        coded = ids.arrow.combine_chunks().dictionary_encode().indices
        codes = coded.to_numpy(zero_copy_only=False)
        first: Any = np.unique(codes, return_index=True)[1]
        repeats = np.setdiff1d(np.arange(len(codes)), first)
        if not len(repeats):
            return ""
        sample = repeats[:MOST_SHOWN]
        word, earlier_lines = self.locations.name_rows(first[codes[sample]].tolist())
        _, lines = self.locations.name_rows(sample.tolist())
        pairs = [f"{a} and {b}" for a, b in zip(earlier_lines, lines, strict=True)]
        n_more = len(repeats) - len(sample)
        more = f", and {n_more} more" if n_more else ""
        return f"{word.capitalize()}s {', '.join(pairs)}{more} have the same id."


class _UnmappedRows:
    """A table's rows as a data source that undoes its mapping and dictionary."""

    def __init__(
        self, table: Table, unmapped: UnmappedCells, levels: Mapping[int, FloatArray]
    ) -> None:
        self._table, self._unmapped, self._levels = table, unmapped, levels
        self.n_rows, self.ids, self.columns = table.n_rows, table.ids, unmapped.headers

    def batches(self) -> Iterator[FloatArray]:
        has_changes = bool(self._unmapped.changed)
        originals = self._unmapped.spool.batches() if has_changes else repeat(None)
        for rows, original in zip(self._table.batches(), originals, strict=False):
            yield self._unmap(rows, original)

    def take(self, rows: IntArray) -> FloatArray:
        has_changes = bool(self._unmapped.changed)
        original = self._unmapped.spool.take(rows) if has_changes else None
        return self._unmap(self._table.take(rows), original)

    def _unmap(self, rows: FloatArray, original: FloatArray | None) -> FloatArray:
        if original is not None:
            rows[:, self._unmapped.changed] = original
        for index, words in self._levels.items():
            is_level = rows[:, index] < len(words)  # False for NaN
            rows[is_level, index] = words[rows[is_level, index].astype(np.int64)]
        return rows

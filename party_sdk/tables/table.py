"""A table that was read: its rows as numbers, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.tables.columns import Column, number_of_cell
from party_sdk.tables.report import MOST_SHOWN, CheckReport, Findings
from party_sdk.tables.row_places import Places
from party_sdk.tables.spool import ArrowIds, Spool, mapped_batches


@dataclass(frozen=True, slots=True, eq=False)
class UnmappedCells:
    """What a mapping changed of a table.

    headers: what the table calls the columns, in their order.
    changed: the places of those whose cells it changed, ascending.
    cells: of these, numbers that stand for the cells as the table has them.
    """

    headers: tuple[str, ...]
    changed: tuple[int, ...]
    cells: pa.Table

    @classmethod
    def of(
        cls,
        headers: Sequence[str],
        changed: Sequence[int],
        file: IO[bytes],
        n_rows: int,
    ) -> Self:
        """Return what a :class:`~party_sdk.tables.spool.ColumnSpool` wrote, mapped.

        Raises ValueError if the file holds other columns, or another number of rows.
        """
        names = [str(place) for place in range(len(changed))]
        schema = pa.schema([(name, pa.float64()) for name in names])
        batches = mapped_batches(file) if changed else []
        cells = pa.Table.from_batches(batches, schema)
        if changed and len(cells) != n_rows:
            raise ValueError("the file holds another number of rows")
        return cls(tuple(headers), tuple(changed), cells)

    def put_into(self, rows: FloatArray, cells: pa.Table) -> FloatArray:
        """Write cells of the table into mapped rows, and return them."""
        for place, column in zip(self.changed, cells.columns, strict=True):
            rows[:, place] = column.to_numpy()
        return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A data source over a table that was read to its end.

    Each batch has a column per field, in the dictionary's order (the table's, without
    one): numbers, 0 or 1 of yes and no, the place of a level among the dictionary's,
    days since 1970-01-01; NaN where there is no value.

    naming: the columns that name the rows.
    file: where it came from.
    unfit: what hinders to cluster it as it is, with no preparation agreed: gaps, words.
    unmapped: what a mapping changed; None where it changed nothing.
    """

    report: CheckReport
    naming: tuple[str, ...]
    file: Path | None
    described: tuple[Column, ...]
    ids: ArrowIds | None
    places: Places
    unfit: Findings
    spool: Spool
    unmapped: UnmappedCells | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.spool.n_rows

    @property
    def original(self) -> DataSource:
        """Return the rows with names and cells of the table, before any mapping.

        Levels are numbers of their words: a dictionary says in which order they come.
        """
        levels = {
            place: np.array([number_of_cell(level) for level in column.field.levels])
            for place, column in enumerate(self.described)
            if column.field is not None and column.field.is_category
        }
        if self.unmapped is None and not levels:
            return self
        headers = self.columns if self.unmapped is None else self.unmapped.headers
        return _UnmappedRows(self, headers, self.unmapped, levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns to cluster."""
        return tuple(column.name for column in self.described)

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows; NaN is no value, where a preparation meets gaps."""
        return self.spool.batches()

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these numbers, whichever the order."""
        return self.spool.take(rows)

    def same_ids(self, compared: Callable[[str], str] | None = None) -> str:
        """Return which rows have the same id, as a sentence; empty where none have.

        At most ten pairs, by their lines or rows; no id is named.

        compared: returns an id in the form in which it counts; as it is by default.
        """
        if self.ids is None:
            return ""
        ids = self.ids
        if compared is not None:
            ids = ArrowIds([pa.array(map(compared, ids), pa.large_string())])
        coded = ids.arrow.combine_chunks().dictionary_encode().indices
        places = coded.to_numpy(zero_copy_only=False)
        if compute.max(coded).as_py() == len(places) - 1:
            return ""
        first: np.ndarray[tuple[int], np.dtype[np.int64]]
        _, first = np.unique(places, return_index=True)
        again = np.setdiff1d(np.arange(len(places)), first)
        shown = again[:MOST_SHOWN]
        rows = sorted({*map(int, first[places[shown]]), *map(int, shown)})
        named = dict(zip(rows, self.places.of(rows), strict=True))
        pairs = [f"{named[int(first[places[r]])]} and {named[int(r)]}" for r in shown]
        more = (
            f", and {len(again) - len(shown)} more" if len(again) > len(shown) else ""
        )
        word = self.report.counts.capitalize()
        return f"{word}s {', '.join(pairs)}{more} have the same id."


class _UnmappedRows:
    """The rows of a table as it has them, before any mapping or dictionary."""

    def __init__(
        self,
        table: Table,
        headers: tuple[str, ...],
        unmapped: UnmappedCells | None,
        levels: Mapping[int, FloatArray],
    ) -> None:
        self._table, self._unmapped, self._levels = table, unmapped, levels
        self.n_rows, self.ids, self.columns = table.n_rows, table.ids, headers

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows."""
        begin = 0
        for rows in self._table.batches():
            numbers = np.arange(begin, begin + len(rows))
            yield self._unmap(np.array(rows), numbers)
            begin += len(rows)

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these numbers, whichever the order."""
        return self._unmap(self._table.take(rows), rows)

    def _unmap(self, found: FloatArray, rows: IntArray) -> FloatArray:
        if self._unmapped is not None and self._unmapped.changed:
            cells = self._unmapped.cells.take(pa.array(rows))
            found = self._unmapped.put_into(found, cells)
        for place, words in self._levels.items():
            is_level = found[:, place] < len(words)  # not NaN, nor another word
            found[is_level, place] = words[found[is_level, place].astype(np.int64)]
        return found

"""A table as a mapping mends it: other names, levels, units and fewer rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.terms.schema import normal
from party_sdk.tables.columns import Column, texts
from party_sdk.tables.formats.mapped_column import MappedCells, MappedColumn
from party_sdk.tables.mapping.model import TableMapping
from party_sdk.tables.names import Names
from party_sdk.tables.parsing.column_kinds import Kind
from party_sdk.tables.parsing.row_places import (
    FileLines,
    Places,
    RemainingRows,
    WholePlaces,
)
from party_sdk.tables.read_options import How
from party_sdk.tables.report import Finding, Findings, format_names
from party_sdk.tables.source import Again, Batch, Cells, Source

_NOWHERE: Final = -1
"""In place of the record of a line that begins none."""


class MappedSource:
    """A source over another one, with what a mapping makes of its columns and rows.

    source: the table as it is.
    how: with a mapping; its dictionary and dialect say which cells are no value.

    Raises InvalidData if the table has not the columns that the mapping names.
    """

    def __init__(self, source: Source, how: How, mapping: TableMapping) -> None:
        self._source, self._how, self._mapping = source, how, mapping
        self._called = {
            mapping.source_of(name): name for name in _find_needed(source, how, mapping)
        }
        _check_sources(source.names, [*self._called, *mapping.leave_out.values])
        hidden = {
            name
            for name in source.names.all
            if name in mapping.columns and name not in self._called
        }
        self._shown = [name for name in source.names.all if name not in hidden]
        self._hidden = sorted(hidden)
        self.names = Names(self._called.get(name, name) for name in self._shown)
        self.kinds: Sequence[Kind] = self._kinds()
        self._rejected: dict[int, int] = {}  # lines, and their records
        self._n_kept, self._n_read = 0, 0
        self._omitted: list[IntArray] = []
        self._found: dict[int, int] = {}
        self._absent: list[int] = []

    def _kinds(self) -> list[Kind]:
        own = dict(zip(self._source.names.all, self._source.kinds, strict=True))
        found: list[Kind] = []
        for source, name in zip(self._shown, self.names.all, strict=True):
            said = self._mapping.columns.get(name)
            if said is not None and said.gives_numbers:
                found.append("number")
            elif said is not None and said.dates:
                found.append("date")
            elif said is not None and said.levels and own[source] != "date":
                found.append("words")
            elif said is not None and (said.unit is not None or said.says_numbers):
                found.append("number")
            else:
                found.append(own[source])
        return found

    @property
    def warnings(self) -> Sequence[str]:
        """Return those of the table, and which rows and columns the mapping hides."""
        told = list(self._source.warnings)
        if self._hidden:
            told.append(
                f"The mapping gives the names of {format_names(self._hidden)} to other "
                "columns: the table's own are not read."
            )
        if n := self._n_omitted:
            told.append(f"The mapping leaves out {n} row{'s' * (n > 1)}.")
        return told

    @property
    def _n_omitted(self) -> int:
        return len(self._rejected) + sum(map(len, self._omitted))

    @property
    def format_description(self) -> dict[str, Any]:
        """Return how the table is written."""
        return self._source.format_description

    @property
    def places(self) -> Places:
        """Return where the rows that are left stand in the table."""
        if not self._n_omitted:
            return self._whole
        return RemainingRows(self._whole, self._omitted_records().tolist())

    @property
    def _whole(self) -> WholePlaces:
        places = self._source.places
        if isinstance(places, RemainingRows):
            raise TypeError("a table is mapped once")
        if isinstance(places, FileLines) and self._rejected:
            return replace(places, whole=tuple(sorted(self._rejected)))
        return places

    def _omitted_records(self) -> IntArray:
        """Return the records of the table that are no rows here, ascending."""
        rejected = self._rejected_records()
        rows = np.concatenate([np.empty(0, np.int64), *self._omitted])
        return np.sort(np.concatenate([rejected, _skip(rows, rejected)]))

    def _rejected_records(self) -> IntArray:
        known = [row for row in self._rejected.values() if row != _NOWHERE]
        return np.array(sorted(known), dtype=np.int64)

    def normalise(self, column: Column, texts: pa.Array) -> pa.Array:
        """Return texts of the table as cells of a column of the session."""
        wanted = replace(self._column(column), reads_text=True)
        found = wanted.map_cells(texts, self._source.normalise)
        return found.cells if isinstance(found, MappedCells) else found

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield cells as the table has them, of the rows that take part."""
        named = [self._mapping.source_of(normal(column.name)) for column in columns]
        watched = list(self._mapping.leave_out.values)
        self._omitted = []
        lines = self._rows_of_lines()
        begin = 0
        for cells in self._source.texts(
            [Column(name, "words") for name in [*named, *watched]]
        ):
            n_rows = len(cells[0])
            keep = self._find_kept(begin, n_rows, lines, cells[len(named) :])
            begin += n_rows
            found = cells[: len(named)]
            if keep is not None:
                found = [compute.filter(piece, pa.array(keep)) for piece in found]
            yield found

    def read_places(self) -> Places | None:
        """Return where the rows stand that the last pass yielded."""
        inner = self._source.read_places()
        if inner is None or not self._are_lines_certain():
            return None
        omitted = np.concatenate([np.empty(0, np.int64), *self._omitted])
        if isinstance(inner, RemainingRows):
            rejected = np.array(inner.omitted, dtype=np.int64)
            omitted = np.concatenate([rejected, _skip(omitted, rejected)])
            inner = inner.places
        return (
            RemainingRows(inner, np.sort(omitted).tolist()) if len(omitted) else inner
        )

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells as the session has them, and of the rows that take part."""
        wanted = [self._column(column) for column in columns]
        named = [self._name_column(name) for name in naming]
        watched = list(self._mapping.leave_out.values)
        asked = [each.inner for each in wanted]
        names = [*(each.source for each in named), *watched]
        self._omitted, self._n_kept = [], 0
        lines = self._rows_of_lines()
        begin = 0
        for batch in self._source.batches(asked, names):
            n_rows = len((*batch.cells, *batch.names)[0])
            mapped = _map_batch(wanted, named, batch, self._source)
            keep = self._find_kept(begin, n_rows, lines, batch.names[len(named) :])
            begin += n_rows
            if keep is not None:
                mapped = _filter(mapped, keep)
                n_rows = int(keep.sum())
            self._n_kept += n_rows
            if n_rows:
                yield mapped
        self._note_end(begin)
        self._note_rejected(asked)

    def _name_column(self, name: str) -> MappedColumn:
        """Return a column of texts as the session has them."""
        said = self._mapping.columns.get(normal(name))
        kind: Kind = "words" if said is None or said.unit is None else "number"
        return replace(self._column(Column(name, kind)), reads_text=True)

    def _column(self, column: Column) -> MappedColumn:
        name = normal(column.name)
        said = self._mapping.columns.get(name)
        if said is not None and not said.changes_cells:
            said = None
        codes = column.codes
        if said is not None:
            schema = self._how.schema
            described = schema is not None and name in schema.names
            known = frozenset(self._how.file_dialect.codes)
            codes = Column.of(name, "words", schema if described else None, known).codes
            column = Column(name, column.kind, column.field, codes)
        source = self._mapping.source_of(name)
        return MappedColumn(column, source, said, bool(self._mapping.leave_out))

    def _rows_of_lines(self) -> IntArray:
        """Return the rows that begin on lines that are left out, ascending."""
        lines = sorted(set(self._mapping.leave_out.lines))
        if not lines:
            return np.empty(0, np.int64)
        found = self._whole.find(lines)
        self._found = found
        self._absent = [line for line in lines if line not in found]
        # a line within a row is none: it is told as absent
        self._rejected = {line: found.get(line, _NOWHERE) for line in self._rejected}
        rejected = self._rejected_records()
        records = [found[line] for line in found if line not in self._rejected]
        rows = np.array(sorted(records), dtype=np.int64)
        return rows - np.searchsorted(rejected, rows)

    def _find_kept(
        self, begin: int, n_rows: int, lines: IntArray, watched: Sequence[pa.Array]
    ) -> NDArray[np.bool_] | None:
        """Return which rows of a batch take part; None if all do."""
        omit = np.zeros(n_rows, dtype=bool)
        first, last = np.searchsorted(lines, [begin, begin + n_rows])
        omit[lines[first:last] - begin] = True
        said = self._mapping.leave_out.values.values()
        for values, piece in zip(said, watched, strict=True):
            coded = texts(piece).dictionary_encode()
            words = coded.dictionary.to_pylist()
            named = [i for i, text in enumerate(words) if normal(text) in values]
            if named:
                codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                omit |= np.isin(codes, named)
        if not omit.any():
            return None
        self._omitted.append(begin + np.flatnonzero(omit))
        return ~omit

    def _note_end(self, n_rows: int) -> None:
        """Keep the lines that are left out and lie behind the last row."""
        self._n_read = n_rows
        n_records = n_rows + len(self._rejected)
        beyond = [line for line, row in self._found.items() if row >= n_records]
        self._absent += beyond

    def _note_rejected(self, asked: Sequence[Column]) -> None:
        """Read again where lines were not read that are left out: others moved up."""
        lines = set(self._mapping.leave_out.lines) - self._rejected.keys()
        if not lines:
            return
        every = _AllFindings()
        self._source.tell(asked, every)
        fresh = {each.line for each in every.shown if each.line is not None} & lines
        if fresh:
            self._rejected |= dict.fromkeys(fresh, _NOWHERE)
            raise Again

    def tell(self, columns: Sequence[Column], findings: Findings) -> None:
        """Add what was wrong with rows that take part, by the session's names."""
        every, omitted = _AllFindings(), set(self._mapping.leave_out.lines)
        self._source.tell([self._column(each).inner for each in columns], every)
        for found in every.shown:
            if found.line is None or found.line not in omitted:
                name = found.column and self._called.get(found.column, found.column)
                findings.add(found.what, found.line, name, of_cell=found.of_cell)
        findings.more += every.more
        for line in self._absent:
            findings.add(
                "the mapping leaves out this line, and no row begins here", line
            )
        if not findings and not self._are_lines_certain():
            findings.add(
                "quotation marks inside cells hide on which lines rows begin: leave rows "
                "out by a cell, in leave_out.values"
            )
        if not self._n_kept and self._n_omitted:
            findings.add("the mapping leaves out all rows")

    def _are_lines_certain(self) -> bool:
        """Return whether the rows that were read are those that lines say there are."""
        places = self._whole
        if not self._mapping.leave_out.lines or not isinstance(places, FileLines):
            return True
        return places.count() == self._n_read + len(self._rejected_records())


class _AllFindings(Findings):
    """Findings of which all keep their places."""

    def add(
        self,
        what: str,
        line: int | None = None,
        column: str | None = None,
        *,
        of_cell: bool = False,
    ) -> None:
        """Add one finding."""
        self.shown.append(Finding(what=what, line=line, column=column, of_cell=of_cell))


def _find_needed(source: Source, how: How, mapping: TableMapping) -> list[str]:
    """Return the columns that a mapping makes.

    Where it is said which columns are read, others may be absent: new rows have no
    outcome yet.
    """
    asked = {*(how.columns or mapping.columns), *how.id_columns}
    return [
        name
        for name in mapping.columns
        if name in asked or mapping.source_of(name) in source.names.all
    ]


def _check_sources(names: Names, wanted: Sequence[str]) -> None:
    absent = [name for name in wanted if name not in names.all]
    if absent:
        hint = did_you_mean(absent[0], names.all)
        raise InvalidData(
            f"The mapping names {format_names(absent)}, and the table has no such "
            f"column.{hint} There are {format_names(names.all)}."
        )


def _map_batch(
    wanted: Sequence[MappedColumn],
    named: Sequence[MappedColumn],
    batch: Batch,
    source: Source,
) -> Batch:
    cells, original = [], []
    for column, piece in zip(wanted, batch.cells, strict=True):
        found = column.map_cells(piece, source.normalise)
        if isinstance(found, MappedCells):
            original.append(found.original)
            found = found.cells
        cells.append(found)
    names = []
    for column, piece in zip(named, batch.names, strict=False):
        if column.said is None:
            names.append(piece)
        else:
            found = column.map_cells(piece, source.normalise)
            names.append(
                texts(found.cells if isinstance(found, MappedCells) else found)
            )
    return Batch(cells, names, original)


def _filter(batch: Batch, keep: NDArray[np.bool_]) -> Batch:
    mask = pa.array(keep)
    return Batch(
        [compute.filter(piece, mask) for piece in batch.cells],
        [compute.filter(piece, mask) for piece in batch.names],
        [values[keep] for values in batch.original],
    )


def _skip(rows: IntArray, before: IntArray) -> IntArray:
    """Return the records of rows that are counted without those of ``before``."""
    return rows + np.searchsorted(before - np.arange(len(before)), rows, side="right")

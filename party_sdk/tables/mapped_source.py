"""A source over another one: its columns, cells and rows as a mapping makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.values import did_you_mean
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import normal
from party_sdk.tables.cells import (
    THOUSANDS_LIKE,
    Kind,
    number_of,
    read_date,
    read_minus,
    read_number,
    split_limit,
)
from party_sdk.tables.columns import (
    PLAIN,
    Bad,
    Column,
    number_of_cell,
    numbers,
    plain_texts,
    texts,
)
from party_sdk.tables.mapping import ColumnMapping, TableMapping
from party_sdk.tables.read_options import Names, ReadOptions
from party_sdk.tables.report import Findings, format_names
from party_sdk.tables.source import Batch, RowLocations, Source

MappedCells: TypeAlias = tuple[pa.Array, FloatArray | None]
"""Cells as the session has them, and numbers (n,) for those of the table; None where
these are the same."""


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """How a column of the table becomes one of the session.

    column: of the session; its codes and its form are those of the table, whose cells
        they are.
    source: its name in the table.
    said: what the mapping says of it, if more than a name.
    """

    column: Column
    source: str
    said: ColumnMapping | None

    @property
    def inner(self) -> Column:
        """Return what to ask the table for: numbers, unless it is said how to read them."""
        is_said = self.said is not None and self.said.says_signs
        kind: Kind = "number" if self._is_numeric and not is_said else "words"
        return Column(self.source, kind)

    @property
    def _has_levels(self) -> bool:
        """Return whether cells are looked up, and not computed."""
        if self.said is None:
            return False
        return bool(self.said.levels) or self.said.says_form or not self._is_numeric

    @property
    def _is_numeric(self) -> bool:
        return self.column.is_numeric or (
            self.said is not None
            and (self.said.unit is not None or self.said.says_numbers)
        )

    @property
    def _codes(self) -> frozenset[str]:
        """Return the cells of the table that stand for no value by its file or terms."""
        field = self.column.field
        meant = set() if self.said is None else set(self.said.levels)
        return self.column.codes - meant - set(() if field is None else field.levels)

    @property
    def _text_codes(self) -> frozenset[str]:
        """Return the same, with those of the mapping that are no numbers."""
        own = () if self.said is None else self.said.missing
        return self._codes | {code for code in own if number_of(code) is None}

    def map_cells(self, piece: pa.Array) -> MappedCells:
        """Return cells of the table as the session has them."""
        if self.said is None:
            return piece, None
        return self._look_up(piece) if self._has_levels else self._compute(piece)

    def _compute(self, piece: pa.Array) -> MappedCells:
        """Return numbers in the session's unit; texts where some are no numbers."""
        read = Column(self.source, "number", codes=self._text_codes)
        found, bad = numbers(replace(read, form=self.column.form), piece)
        mapped = self._convert(found)
        if not bad:
            return pa.array(mapped), found
        return _write_texts(mapped, texts(piece), bad), _mark(found, piece, bad)

    def _convert(self, values: FloatArray) -> FloatArray:
        if self.said is None:
            return values
        absent = [v for code in self.said.missing if (v := number_of(code)) is not None]
        if absent:
            values = np.where(np.isin(values, absent), np.nan, values)
        if self.said.unit is None:
            return values
        factor, offset = self.said.unit
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values * factor + offset)

    def _look_up(self, piece: pa.Array) -> MappedCells:
        """Return texts in the session's words: each that occurs is looked up once."""
        coded = texts(piece).dictionary_encode()
        mapped, original = self._look_up_texts(coded.dictionary)
        places = coded.indices.fill_null(len(original)).to_numpy(zero_copy_only=False)
        cells = pa.DictionaryArray.from_arrays(coded.indices, mapped)
        return cells, np.append(original, np.nan)[places]

    def _look_up_texts(self, given: pa.Array) -> tuple[pa.Array, FloatArray]:
        """Return what texts stand for in the session, and a number for each."""
        said = self.said or ColumnMapping()
        clean = [normal(text) for text in given.to_pylist()]
        forms = clean
        if said.minus is not None:
            forms = [read_minus(text) or text for text in clean]
            given = pa.array(forms, pa.large_string())
        read = replace(self.column, codes=self._codes)
        usual = self._read_forms(forms, plain_texts(read, given))
        read = replace(read, form=PLAIN)
        found, bad = numbers(read, usual)
        others = usual
        if self._is_numeric:
            others = _write_texts(self._convert(found), usual, bad)
        if said.limits is not None:
            others = self._read_limits(forms, others)
        absent = self._codes | set(said.missing)
        mapped = [
            said.levels.get(text, None if text in absent else other)
            for text, other in zip(clean, others.to_pylist(), strict=True)
        ]
        if not self.column.is_described:  # nothing says what number a word is
            bad = [Bad(place, "") for place in range(len(given))]
        bad = [each for each in bad if clean[each.row] not in self._codes]
        return pa.array(mapped, pa.large_string()), _mark(found, given, bad)

    def _read_forms(self, clean: Sequence[str], usual: pa.Array) -> pa.Array:
        """Return texts with numbers and dates of this column's own forms as all read them.

        clean: the texts of the table.
        usual: the same as its file writes them.
        """
        said = self.said
        if said is None or not said.says_form:
            return usual
        if said.dates:
            own = [read_date(text, said.dates) for text in clean]
        elif said.says_signs:
            own = [
                read_number(text, said.decimal, said.thousands)
                or _refuse_thousands(text, said)
                for text in clean
            ]
        else:
            return usual
        return compute.coalesce(pa.array(own, pa.large_string()), texts(usual))

    def _read_limits(self, clean: Sequence[str], others: pa.Array) -> pa.Array:
        """Return texts with the values that stand for limits of detection."""
        said = self.said or ColumnMapping()
        found = [split_limit(text) for text in clean]
        limits = [None if each is None else each.limit for each in found]
        written = pa.array(limits, pa.large_string())
        read = replace(self.column, codes=self._codes)
        usual = self._read_forms(
            [each or "" for each in limits], plain_texts(read, written)
        )
        values, _ = numbers(replace(read, form=PLAIN), usual)
        if said.limits == "half":
            below = np.array([each is not None and each.is_below for each in found])
            values = np.where(below, values / 2, values)
        known = ~np.isnan(values)
        told = compute.cast(pa.array(self._convert(values)), pa.large_string())
        if said.limits == "missing":
            told = pa.nulls(len(told), pa.large_string())
        return compute.if_else(pa.array(known), told, texts(others))


def _refuse_thousands(text: str, said: ColumnMapping) -> str | None:
    """Return a text that is no number in place of 9.370 where the comma is decimal."""
    is_decimal = said.decimal is None or said.decimal in text
    if is_decimal or not re.fullmatch(THOUSANDS_LIKE, text):
        return None
    return re.sub("[.,]", "_", text)


def _write_texts(values: FloatArray, given: pa.Array, bad: Sequence[Bad]) -> pa.Array:
    """Return numbers as texts, and cells that are none as the table has them."""
    written = compute.cast(pa.array(values, from_pandas=True), pa.large_string())
    if not bad:
        return written
    wrong = np.zeros(len(values), dtype=bool)
    wrong[[each.row for each in bad]] = True
    return compute.if_else(pa.array(wrong), given, written)


def _mark(values: FloatArray, given: pa.Array, bad: Sequence[Bad]) -> FloatArray:
    """Return values, with a number in place of each cell that is none."""
    found = np.array(values)
    for each in bad:
        text = texts(given.slice(each.row, 1))[0].as_py()
        if text is not None:
            found[each.row] = number_of_cell(normal(text))
    return found


class MappedSource(Source):
    """A source over another one, with what a mapping makes of its columns and rows.

    source: the table as it is.
    options: with a mapping; its dictionary and dialect say which cells are no value.

    Raises InvalidData if the table has not the columns that the mapping names.
    """

    def __init__(
        self, source: Source, options: ReadOptions, mapping: TableMapping
    ) -> None:
        self._source, self._options, self._mapping = source, options, mapping
        # where it is said which columns are read, others may be absent: new rows have no
        # outcome yet
        own, asked = (
            source.names.all,
            {*(options.columns or mapping.columns), *options.id_columns},
        )
        of_table = {name: mapping.source_of(name) for name in mapping.columns}
        self._called = {
            of: name for name, of in of_table.items() if name in asked or of in own
        }
        needed = [*self._called, *mapping.leave_out.values]
        if absent := [name for name in needed if name not in own]:
            hint = did_you_mean(absent[0], own)
            raise InvalidData(
                f"The mapping names {format_names(absent)}, and the table has no such "
                f"column.{hint} There are {format_names(own)}."
            )
        hidden = {
            name
            for name in source.names.all
            if name in mapping.columns and name not in self._called
        }
        self._shown = [name for name in source.names.all if name not in hidden]
        self._hidden = sorted(hidden)
        self.names = Names(self._called.get(name, name) for name in self._shown)
        self.kinds: Sequence[Kind] = self._kinds()
        self._own_forms = dict(zip(source.names.all, source.forms, strict=True))
        self.forms = [
            PLAIN if mapping.changes(name) else self._own_forms[own]
            for own, name in zip(self._shown, self.names.all, strict=True)
        ]
        self._rejected: frozenset[int] = frozenset()
        self._base = source.locations  # of the rows that can be cut into cells
        self._n_kept, self._n_read = 0, 0
        self._omitted = np.empty(0, np.int64)
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
        return len(self._rejected) + len(self._omitted)

    @property
    def format_description(self) -> dict[str, Any]:
        """Return how the table is written."""
        return self._source.format_description

    @property
    def locations(self) -> RowLocations:
        """Return where the rows that are left stand in the table."""
        return self._base.without(self._omitted)

    def read_locations(self) -> RowLocations | None:
        """Return where the rows stand that the last pass yielded."""
        locations = self._source.read_locations()
        if locations is None or not self._are_lines_certain():
            return None
        if self._mapping.leave_out.lines:
            locations = self._base
        return locations.without(self._omitted)

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield cells as the session has them, and of the rows that take part."""
        wanted = [self._column(column) for column in columns]
        named = [self._name_column(name) for name in naming]
        watched = list(self._mapping.leave_out.values)
        asked = [each.inner for each in wanted]
        names = [*(each.source for each in named), *watched]
        self._n_kept = 0
        lines = self._rows_of_lines()
        begin = 0
        for batch in self._source.batches(asked, names):
            n_rows = len((*batch.cells, *batch.names)[0])
            keep = self._find_kept(begin, n_rows, lines, batch.names[len(named) :])
            begin += n_rows
            pairs = [*map(MappedColumn.map_cells, wanted, batch.cells)]
            cells = [piece for piece, _ in pairs]
            ids = [
                piece if c.said is None else texts(c.map_cells(piece)[0])
                for c, piece in zip(named, batch.names, strict=False)
            ]
            changed = [values for _, values in pairs if values is not None]
            given = batch.cells
            if keep is not None:
                mask = pa.array(keep)
                cells, ids, given = (
                    [compute.filter(piece, mask) for piece in pieces]
                    for pieces in (cells, ids, batch.cells)
                )
                changed = [values[keep] for values in changed]
                n_rows = int(keep.sum())
            self._n_kept += n_rows
            if n_rows:
                yield Batch(cells, ids, given, changed)
        self._n_read = begin

    def _name_column(self, name: str) -> MappedColumn:
        """Return a column of texts as the session has them."""
        said = self._mapping.columns.get(normal(name))
        kind: Kind = "words" if said is None or said.unit is None else "number"
        return self._column(Column(name, kind))

    def _column(self, column: Column) -> MappedColumn:
        name = normal(column.name)
        said = self._mapping.columns.get(name)
        if said is not None and not said.changes_cells:
            said = None
        codes = column.codes
        if said is not None:
            schema = self._options.schema
            described = schema is not None and name in schema.names
            known = frozenset(self._options.file_dialect.codes)
            codes = Column.of(name, "words", schema if described else None, known).codes
            column = Column(name, column.kind, column.field, codes)
        source = self._mapping.source_of(name)
        form = self._own_forms.get(source, PLAIN)
        return MappedColumn(replace(column, form=form), source, said)

    def _rows_of_lines(self) -> IntArray:
        """Return the rows that begin on lines that are left out, ascending."""
        self._omitted = np.empty(0, np.int64)
        lines = self._mapping.leave_out.lines
        if not lines:
            return self._omitted
        self._rejected = self._source.reject_lines(lines)
        locations = self._source.locations
        # a line within a row is none
        self._absent = sorted({*lines}.difference(locations.numbers.tolist()))
        self._base = locations.without_numbers(self._rejected)
        return np.flatnonzero(np.isin(self._base.numbers, lines))

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
        self._omitted = np.append(self._omitted, begin + np.flatnonzero(omit))
        return ~omit

    def tell(self, findings: Findings) -> None:
        """Add what was wrong with rows that take part, by the session's names."""
        every, omitted = Findings(most=None), set(self._mapping.leave_out.lines)
        self._source.tell(every)
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
        is_said = bool(self._mapping.leave_out.lines)
        return not is_said or len(self._base.numbers) == self._n_read

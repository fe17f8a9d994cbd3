"""A source that applies a mapping to the columns, cells and rows of another source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.values import suggest_similar_name
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import normalise_text
from party_sdk.tables.cells import (
    THOUSANDS_LIKE,
    Kind,
    fix_minus,
    parse_limit,
    parse_number,
    read_date,
    read_number,
)
from party_sdk.tables.columns import (
    PLAIN,
    CellFault,
    Column,
    original_numbers,
    plain_texts,
    to_numbers,
    to_texts,
)
from party_sdk.tables.mapping import ColumnMapping, TableMapping
from party_sdk.tables.read_options import Names, ReadOptions
from party_sdk.tables.report import Finding, format_names
from party_sdk.tables.source import Batch, RowLocations, Source

_UNCHANGED: Final = ColumnMapping()


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of the session, with its source in the table and its mapping.

    column: the session's column, with the missing codes and format of the table's
        cells.
    source: the column's name in the table.
    """

    column: Column
    source: str
    mapping: ColumnMapping

    @property
    def source_column(self) -> Column:
        """The table's column, which is read as words if the mapping sets decimal signs."""
        as_numbers = self._is_numeric and not self.mapping.sets_signs
        return Column(self.source, "number" if as_numbers else "words")

    @property
    def _is_numeric(self) -> bool:
        mapping = self.mapping
        return (
            self.column.is_numeric or mapping.unit is not None or mapping.sets_notation
        )

    @property
    def _missing_codes(self) -> frozenset[str]:
        field = self.column.field
        levels = () if field is None else field.levels
        return self.column.codes.difference(self.mapping.levels, levels)

    def map_cells(self, piece: pa.Array) -> pa.Array:
        """Apply the mapping to cells of the table's column."""
        mapping = self.mapping
        if not mapping.changes_cells:
            return piece
        if mapping.levels or mapping.sets_form or not self._is_numeric:
            coded = to_texts(piece).dictionary_encode()
            mapped = self._map_texts(coded.dictionary)
            return pa.DictionaryArray.from_arrays(coded.indices, mapped)
        words = {code for code in mapping.missing if parse_number(code) is None}
        codes, form = self._missing_codes | words, self.column.form
        values, faults = to_numbers(
            Column(self.source, "number", None, codes, form=form), piece
        )
        converted = self._convert_units(values)
        if not faults:
            return pa.array(converted)
        return _format_numbers(converted, to_texts(piece), faults)

    def original_numbers(self, piece: pa.Array) -> FloatArray:
        """Return float64 (n,): numbers for cells of the table's column."""
        return original_numbers(replace(self.column, codes=self._missing_codes), piece)

    def _convert_units(self, values: FloatArray) -> FloatArray:
        codes = [v for c in self.mapping.missing if (v := parse_number(c)) is not None]
        if codes:
            values = np.where(np.isin(values, codes), np.nan, values)
        if self.mapping.unit is None:
            return values
        factor, offset = self.mapping.unit
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values * factor + offset)

    def _map_texts(self, cells: pa.Array) -> pa.Array:
        mapping = self.mapping
        spellings = [normalise_text(text) for text in cells.to_pylist()]
        forms = spellings
        if mapping.minus is not None:
            forms = [fix_minus(text) or text for text in spellings]
            cells = pa.array(forms, pa.large_string())
        column = replace(self.column, codes=self._missing_codes)
        converted = self._read_forms(forms, plain_texts(column, cells))
        if self._is_numeric:
            values, faults = to_numbers(replace(column, form=PLAIN), converted)
            converted = _format_numbers(self._convert_units(values), converted, faults)
        if mapping.limits is not None:
            converted = self._read_limits(forms, converted)
        absent = column.codes.union(mapping.missing)
        mapped = [
            mapping.levels.get(spelling, None if spelling in absent else text)
            for spelling, text in zip(spellings, converted.to_pylist(), strict=True)
        ]
        return pa.array(mapped, pa.large_string())

    def _read_forms(self, spellings: Sequence[str], plain: pa.Array) -> pa.Array:
        """Rewrite numbers and dates that are in the formats named by the mapping.

        plain: the same texts as read in the file's format; used for all other texts.
        """
        mapping = self.mapping
        if mapping.dates:
            readings = [read_date(text, mapping.dates) for text in spellings]
        elif mapping.sets_signs:
            readings = [
                read_number(text, mapping.decimal, mapping.thousands)
                or _mask_separator(text, mapping)
                for text in spellings
            ]
        else:
            return plain
        return compute.coalesce(pa.array(readings, pa.large_string()), to_texts(plain))

    def _read_limits(self, spellings: Sequence[str], converted: pa.Array) -> pa.Array:
        """Replace limits of detection by the values that the mapping prescribes."""
        limits = [parse_limit(text) for text in spellings]
        numerals = [limit and limit.limit for limit in limits]
        column = replace(self.column, codes=self._missing_codes)
        plain = plain_texts(column, pa.array(numerals, pa.large_string()))
        plain = self._read_forms([text or "" for text in numerals], plain)
        values, _ = to_numbers(replace(column, form=PLAIN), plain)
        is_limit = pa.array(~np.isnan(values))
        if self.mapping.limits == "half":
            is_below = [limit is not None and limit.is_below for limit in limits]
            values = np.where(is_below, values / 2, values)
        substitutes = compute.cast(
            pa.array(self._convert_units(values)), pa.large_string()
        )
        if self.mapping.limits == "missing":
            substitutes = pa.nulls(len(limits), pa.large_string())
        return compute.if_else(is_limit, substitutes, to_texts(converted))


def _mask_separator(text: str, mapping: ColumnMapping) -> str | None:
    """Return 9_370, which is not a number, for 9.370 if the decimal sign is a comma."""
    is_decimal = mapping.decimal is None or mapping.decimal in text
    if is_decimal or not re.fullmatch(THOUSANDS_LIKE, text):
        return None
    return re.sub("[.,]", "_", text)


def _format_numbers(
    values: FloatArray, cells: pa.Array, faults: Sequence[CellFault]
) -> pa.Array:
    numerals = compute.cast(pa.array(values, from_pandas=True), pa.large_string())
    is_fault = np.zeros(len(values), dtype=bool)
    is_fault[[fault.row for fault in faults]] = True
    return compute.if_else(pa.array(is_fault), cells, numerals)


class MappedSource(Source):
    """A source that applies a mapping to the columns and rows of another source.

    source: the table before the mapping.
    options: include the dictionary and the dialect, which define missing values.

    Raises InvalidData if the table lacks a column that the mapping names.
    """

    def __init__(
        self, source: Source, options: ReadOptions, mapping: TableMapping
    ) -> None:
        self._source, self._options, self._mapping = source, options, mapping
        headers = source.names.all
        # a column that is not read may be absent, because new rows have no outcome
        required = {*(options.columns or mapping.columns), *options.id_columns}
        self._session_names = {
            header: name
            for name in mapping.columns
            if (header := mapping.source_of(name)) in headers or name in required
        }
        required_headers = [*self._session_names, *mapping.leave_out.values]
        if absent := [name for name in required_headers if name not in headers]:
            hint = suggest_similar_name(absent[0], headers)
            raise InvalidData(
                f"The mapping names {format_names(absent)}, and the table has no such "
                f"column.{hint} There are {format_names(headers)}."
            )
        self._hidden_columns = sorted(
            {*headers}.intersection(mapping.columns).difference(self._session_names)
        )
        self._headers = [name for name in headers if name not in self._hidden_columns]
        self.names = Names(self._session_names.get(n, n) for n in self._headers)
        kinds = dict(zip(headers, source.kinds, strict=True))
        self._source_forms = dict(zip(headers, source.forms, strict=True))
        pairs = [*zip(self._headers, self.names.all, strict=True)]
        self.kinds = [
            _mapped_kind(mapping.columns.get(name, _UNCHANGED), kinds[header])
            for header, name in pairs
        ]
        self.forms = [
            PLAIN if mapping.changes(name) else self._source_forms[header]
            for header, name in pairs
        ]
        self._n_yielded = 0
        self._omitted_rows = np.empty(0, np.int64)
        # lines to leave out that cannot be split into cells, and those without a row
        self._broken_lines, self._absent_lines = set[int](), set[int]()

    @property
    def warnings(self) -> Sequence[str]:
        """The table's warnings, and warnings about rows and columns that are hidden."""
        warnings = list(self._source.warnings)
        if self._hidden_columns:
            warnings.append(
                f"The mapping gives the names of {format_names(self._hidden_columns)} to other "
                "columns: the table's own columns of these names are not read."
            )
        if n := self._n_omitted:
            warnings.append(f"The mapping leaves out {n} row{'s' * (n > 1)}.")
        return warnings

    @property
    def _n_omitted(self) -> int:
        return len(self._broken_lines) + len(self._omitted_rows)

    @property
    def format_description(self) -> dict[str, Any]:
        """The format of the table, as the unmapped source describes it."""
        return self._source.format_description

    def locations(self) -> RowLocations:
        """Return the line or row numbers of the rows that take part."""
        return self._source.locations().without_rows(self._omitted_rows)

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the mapped cells of the rows that take part."""
        mapped = [self._map_column(column) for column in columns]
        id_columns = []
        for name in naming:
            unit = self._mapping.columns.get(normalise_text(name), _UNCHANGED).unit
            kind: Kind = "words" if unit is None else "number"
            id_columns.append(self._map_column(Column(name, kind)))
        n_ids = len(id_columns)
        names = [*(c.source for c in id_columns), *self._mapping.leave_out.values]
        self._n_yielded = 0
        source_columns = [column.source_column for column in mapped]
        first_name = [*names, *(column.name for column in source_columns)][:1]
        lines = self._find_omitted_rows(first_name)
        begin = 0
        for batch in self._source.batches(source_columns, names):
            n_rows = len((*batch.cells, *batch.names)[0])
            mask = self._participation_mask(begin, n_rows, lines, batch.names[n_ids:])
            begin += n_rows
            cells = [*map(MappedColumn.map_cells, mapped, batch.cells)]
            ids = [
                to_texts(column.map_cells(piece))
                if column.mapping.changes_cells
                else piece
                for column, piece in zip(id_columns, batch.names, strict=False)
            ]
            unmapped_cells = batch.cells
            if mask is not None:
                cells, ids, unmapped_cells = (
                    [compute.filter(piece, pa.array(mask)) for piece in pieces]
                    for pieces in (cells, ids, batch.cells)
                )
                n_rows = int(mask.sum())
            self._n_yielded += n_rows
            original = [
                column.original_numbers(piece)
                for column, piece in zip(mapped, unmapped_cells, strict=True)
                if column.mapping.changes_cells
            ]
            if n_rows:
                yield Batch(cells, ids, unmapped_cells, original)

    def _map_column(self, column: Column) -> MappedColumn:
        name = normalise_text(column.name)
        mapping = self._mapping.columns.get(name, _UNCHANGED)
        codes = column.codes
        if mapping.changes_cells:
            schema = self._options.schema
            if schema is not None and name not in schema.names:
                schema = None
            codes = frozenset(self._options.file_dialect.codes)
            codes = Column.from_schema(name, "words", schema, codes).codes
        source = self._mapping.source_of(name)
        form = self._source_forms.get(source, PLAIN)
        return MappedColumn(replace(column, codes=codes, form=form), source, mapping)

    def _find_omitted_rows(self, naming: Sequence[str]) -> IntArray:
        """Return the indices of the rows on lines to leave out, from a separate pass."""
        self._omitted_rows = np.empty(0, np.int64)
        lines = {*self._mapping.leave_out.lines}
        if not lines:
            return self._omitted_rows
        for _ in self._source.batches([], naming):
            pass
        locations = self._source.locations()
        if (numbers := locations.numbers) is None:
            return self._omitted_rows
        # no row begins in the header, or on the later lines of a cell
        lines.difference_update(numbers.tolist())
        self._broken_lines = lines & locations.unread
        self._absent_lines = lines - self._broken_lines
        return np.flatnonzero(np.isin(numbers, self._mapping.leave_out.lines))

    def _participation_mask(
        self, begin: int, n_rows: int, lines: IntArray, columns: Sequence[pa.Array]
    ) -> NDArray[np.bool_] | None:
        """Return a mask of a batch's rows that take part, or None if all do."""
        omit = np.zeros(n_rows, dtype=bool)
        first, last = np.searchsorted(lines, [begin, begin + n_rows])
        omit[lines[first:last] - begin] = True
        omitted_values = self._mapping.leave_out.values.values()
        for values, piece in zip(omitted_values, columns, strict=True):
            coded = to_texts(piece).dictionary_encode()
            words = coded.dictionary.to_pylist()
            matches = [
                i for i, text in enumerate(words) if normalise_text(text) in values
            ]
            if matches:
                codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                omit |= np.isin(codes, matches)
        if not omit.any():
            return None
        self._omitted_rows = np.append(self._omitted_rows, begin + np.flatnonzero(omit))
        return ~omit

    def findings(self) -> list[Finding]:
        """Return findings about rows that take part, by the session's column names."""
        lines, names = {*self._mapping.leave_out.lines}, self._session_names
        findings = [
            finding.model_copy(
                update={"column": names.get(finding.column or "", finding.column)}
            )
            for finding in self._source.findings()
            if finding.line not in lines
        ]
        absent = "the mapping leaves out this line, and no row begins here"
        findings += [
            Finding(what=absent, line=line) for line in sorted(self._absent_lines)
        ]
        if not findings and lines and not self._source.locations().is_certain:
            uncertain = (
                "quotation marks inside cells hide on which lines rows begin: delete the "
                "marks, or leave rows out by a cell, in leave_out.values"
            )
            findings.append(Finding(what=uncertain))
        if not self._n_yielded and self._n_omitted:
            findings.append(Finding(what="the mapping leaves out all rows"))
        return findings


def _mapped_kind(mapping: ColumnMapping, kind: Kind) -> Kind:
    if mapping.has_numeric_levels:
        return "number"
    if mapping.dates:
        return "date"
    if mapping.levels and kind != "date":
        return "words"
    is_number = mapping.unit is not None or mapping.sets_notation
    return "number" if is_number else kind

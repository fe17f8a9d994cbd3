"""One column of a session, made of one column of a table as a mapping says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.schema import Field, normal
from party_sdk.tables.columns import Bad, Column, number_of, numbers, texts
from party_sdk.tables.mapping.model import ColumnMapping
from party_sdk.tables.parsing.cell_forms import read_date, read_number, split_limit

Normalise = Callable[[Column, pa.Array], pa.Array]

_HASHED: Final = 2.0**52
"""Numbers of cells that are no numbers begin here: no level, day or code is as large."""


class MappedCells(NamedTuple):
    """Cells as the session has them, and numbers (n,) for those of the table."""

    cells: pa.Array
    original: FloatArray


@dataclass(frozen=True, slots=False)
class MappedColumn:
    """How a column of the table becomes one of the session.

    column: of the session; its codes are those of the table, whose cells they are.
    source: its name in the table.
    said: what the mapping says of it, if more than a name.
    reads_text: whether all cells are asked for as texts, as rows that are left out may
        hold anything.
    """

    column: Column
    source: str
    said: ColumnMapping | None
    reads_text: bool = False

    @cached_property
    def inner(self) -> Column:
        """Return what to ask the table for."""
        if self._has_levels or (self.said is None and self.reads_text):
            return self._text_column()
        if self.said is None:
            return replace(self.column, name=self.source)
        if self.reads_text:
            return self._text_column()
        return Column(self.source, "number", None, self._text_codes)

    def _text_column(self) -> Column:
        """Return a column of texts, of which none that means something gets lost."""
        levels = {} if self.said is None else self.said.levels
        field = self.column.field
        kept = dict.fromkeys([*levels, *(() if field is None else field.levels)])
        described = None
        if levels:
            described = Field(name=self.source, type="string", categories=tuple(kept))
        return Column(self.source, "words", described, self._codes or frozenset({""}))

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

    @cached_property
    def _codes(self) -> frozenset[str]:
        """Return the cells of the table that stand for no value by its file or terms."""
        field = self.column.field
        meant = set() if self.said is None else set(self.said.levels)
        return self.column.codes - meant - set(() if field is None else field.levels)

    @cached_property
    def _text_codes(self) -> frozenset[str]:
        """Return the same, with those of the mapping that are no numbers."""
        own = () if self.said is None else self.said.missing
        return self._codes | {code for code in own if number_of(code) is None}

    def map_cells(
        self, piece: pa.Array, normalise: Normalise
    ) -> MappedCells | pa.Array:
        """Return cells of the table as the session has them.

        normalise: of the source: what it does with texts of numbers and dates.

        Returns MappedCells, or cells alone where the mapping changes none.
        """
        if self.said is None:
            return normalise(self.column, piece) if self.reads_text else piece
        if self._has_levels:
            return self._look_up(piece, normalise)
        if self.reads_text:
            return self._look_up(piece, normalise)
        return self._compute(piece)

    def _compute(self, piece: pa.Array) -> MappedCells:
        """Return numbers in the session's unit; texts where some are no numbers."""
        read = replace(self.inner, codes=self._text_codes)
        found, bad = numbers(read, piece)
        mapped = self._convert(found)
        if not bad:
            return MappedCells(pa.array(mapped), found)
        return MappedCells(
            _write_texts(mapped, texts(piece), bad), _mark(found, piece, bad)
        )

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

    def _look_up(self, piece: pa.Array, normalise: Normalise) -> MappedCells:
        """Return texts in the session's words: each that occurs is looked up once."""
        coded = texts(piece).dictionary_encode()
        mapped, original = self._look_up_texts(coded.dictionary, normalise)
        places = coded.indices.fill_null(len(original)).to_numpy(zero_copy_only=False)
        return MappedCells(
            pa.DictionaryArray.from_arrays(coded.indices, mapped),
            np.append(original, np.nan)[places],
        )

    def _look_up_texts(
        self, given: pa.Array, normalise: Normalise
    ) -> tuple[pa.Array, FloatArray]:
        """Return what texts stand for in the session, and a number for each."""
        said = self.said or ColumnMapping()
        clean = [normal(text) for text in given.to_pylist()]
        read = replace(self.column, codes=self._codes)
        usual = self._read_forms(clean, normalise(read, given))
        found, bad = numbers(read, usual)
        others = usual
        if self._is_numeric:
            others = _write_texts(self._convert(found), usual, bad)
        if said.limits is not None:
            others = self._read_limits(clean, others, read, normalise)
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
        elif said.decimal is not None or said.thousands is not None:
            own = [read_number(text, said.decimal, said.thousands) for text in clean]
        else:
            return usual
        return compute.coalesce(pa.array(own, pa.large_string()), texts(usual))

    def _read_limits(
        self,
        clean: Sequence[str],
        others: pa.Array,
        read: Column,
        normalise: Normalise,
    ) -> pa.Array:
        """Return texts with the values that stand for limits of detection."""
        said = self.said or ColumnMapping()
        found = [split_limit(text) for text in clean]
        limits = [None if each is None else each.limit for each in found]
        written = pa.array(limits, pa.large_string())
        usual = self._read_forms(
            [each or "" for each in limits], normalise(read, written)
        )
        values, _ = numbers(read, usual)
        if said.limits == "half":
            below = np.array([each is not None and each.is_below for each in found])
            values = np.where(below, values / 2, values)
        known = ~np.isnan(values)
        told = compute.cast(pa.array(self._convert(values)), pa.large_string())
        if said.limits == "missing":
            told = pa.nulls(len(told), pa.large_string())
        return compute.if_else(pa.array(known), told, texts(others))


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
            found[each.row] = _number_text(normal(text))
    return found


def _number_text(text: str) -> float:
    """Return a number that stands for a text alone: 48 bits of its digest."""
    digest = blake2b(text.encode(), digest_size=6).digest()
    return _HASHED + float(int.from_bytes(digest, "little"))

"""From the columns of a batch to float64: numbers, levels, days, yes and no."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.schema import Field, Schema, day_number, normal
from party_sdk.tables.cells import (
    BOOLEANS,
    SEPARATED,
    SHORT_YEAR,
    CellForm,
    Kind,
    is_number,
    number_of,
    read_date,
)
from party_sdk.tables.report import HEADER, form

_YES_AND_NO: Final = BOOLEANS | {
    "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "1": 1.0, "0": 0.0,
    "ja": 1.0, "nein": 0.0, "oui": 1.0, "non": 0.0,
}  # fmt: skip
"""Spellings of a column that the dictionary calls boolean."""


PLAIN: Final = CellForm()
_FIRST_DAY: Final = day_number("1000-01-01")
_USUAL: Final = (pa.float64(), pa.int64())
"""As what texts are read first: with a point as decimal sign, and with a comma."""
EARLY: Final = "a year before 1000: write it with four digits"


_HASHED: Final = 2.0**52
"""Numbers of cells that are no numbers begin here: no level, day or code is as large."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column to read.

    kind: what the table holds, as far as it shows by itself.
    field: what the dictionary says of it, if there is one.
    codes: texts that stand for no value.
    header: its name in the table, where a mapping gives it another.
    form: how the table writes its texts.
    """

    name: str
    kind: Kind
    field: Field | None = None
    codes: frozenset[str] = frozenset()
    header: str = ""
    form: CellForm = PLAIN

    @classmethod
    def of(
        cls,
        name: str,
        kind: Kind,
        schema: Schema | None,
        codes: frozenset[str],
        form: CellForm = PLAIN,
    ) -> Column:
        """Return a column with what a dictionary says of it."""
        if schema is None:
            return cls(name, kind, None, codes, form=form)
        field = schema.field(name)
        said = codes | schema.missing_codes(field)
        return cls(name, kind, field, said - frozenset(field.levels), form=form)

    @property
    def type(self) -> str:
        """Return the column's type, as reports name it."""
        if self.field is None:
            return self.kind
        if self.field.is_category:
            return "ordinal" if self.field.is_ordinal else "category"
        return self.field.type

    @property
    def is_numeric(self) -> bool:
        """Return whether cells are read as numbers."""
        return self.type in {"number", "integer", "nothing"}

    @property
    def is_date(self) -> bool:
        """Return whether cells are read as dates."""
        return self.type == "date" and self.field is not None

    @property
    def is_described(self) -> bool:
        """Return whether it is known what number each cell is."""
        return self.field is not None or self.type not in {"words", "date"}

    def heads(self, text: str) -> bool:
        """Return whether a cell repeats the column's name."""
        return normal(text) == (self.header or self.name)

    @property
    def spellings(self) -> Mapping[str, float] | None:
        """Return the number of each text that may stand here; None of numbers and dates."""
        if self.field is not None and self.field.is_category:
            return {level: float(i) for i, level in enumerate(self.field.levels)}
        if self.type == "boolean":
            return BOOLEANS if self.field is None else _YES_AND_NO
        return None


@dataclass(frozen=True, slots=True)
class Bad:
    """A cell that cannot be read: row of its batch, and what is wrong."""

    row: int
    what: str


def numbers(column: Column, cells: pa.Array) -> tuple[FloatArray, list[Bad]]:
    """Return the cells of a column as float64, NaN for none, and what cannot be read."""
    spellings = column.spellings
    if spellings is not None and not (
        types.is_boolean(cells.type) and column.type == "boolean"
    ):
        return _look_up_spellings(column, cells, spellings)
    if not column.is_described:
        return _presence(column, cells), []
    if column.is_date:
        return _days(column, cells)
    if not (is_numeric(cells.type) or types.is_boolean(cells.type)):
        cells, bad = _parse_numbers(column, texts(cells))
    else:
        bad = []
    found = _floats(cells)
    if codes := _numeric(column.codes):
        found = np.where(np.isin(found, codes), np.nan, found)
    return found, bad


def count_codes(column: Column, cells: pa.Array) -> Counter[str]:
    """Return in how many cells each code stands for no value, by the dictionary."""
    codes = column.codes - {""}
    if not codes or column.field is None:
        return Counter()
    said = compute.utf8_trim_whitespace(texts(cells)).fill_null("")
    is_code = {
        code: compute.equal(said, code).to_numpy(zero_copy_only=False) for code in codes
    }
    if column.is_numeric or column.is_date:
        values, _ = numbers(replace(column, codes=frozenset({""})), cells)
        read = _day if column.is_date else number_of
        is_code = {
            code: found | (values == read(code)) for code, found in is_code.items()
        }
    return Counter({code: int(found.sum()) for code, found in is_code.items()})


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether Arrow calls a column numeric."""
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def kind_of(kind: pa.DataType) -> Kind:
    """Return what a column of an Arrow type holds."""
    if types.is_integer(kind):
        return "integer"
    if is_numeric(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    return "nothing" if types.is_null(kind) else "words"


def texts(cells: pa.Array) -> pa.Array:
    """Return cells as texts: whole numbers without a fraction, days without a time."""
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if types.is_floating(cells.type):
        return _plain(cells)
    if types.is_timestamp(cells.type):
        said = compute.cast(cells, pa.large_string())
        said = compute.replace_substring_regex(said, r"\.0+(Z?)$", r"\1")
        return compute.replace_substring_regex(said, r" 00:00:00Z?$", "")
    try:
        return compute.cast(cells, pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([str(value) for value in cells.to_pylist()], pa.large_string())
    except pa.ArrowNotImplementedError:  # nested: it is there, and that is all
        shown = [None if value is None else "…" for value in cells.to_pylist()]
        return pa.array(shown, pa.large_string())


def _plain(cells: pa.Array) -> pa.Array:
    """Return numbers as texts, each by itself; whole ones as whole ones are written."""
    values = _floats(cells)
    whole = (values == np.trunc(values)) & (np.abs(values) < 2**53)
    integers = pa.array(np.where(whole, values, 0).astype(np.int64))
    said = compute.if_else(
        pa.array(whole),
        compute.cast(integers, pa.large_string()),
        compute.cast(pa.array(values), pa.large_string()),
    )
    return compute.if_else(pa.array(np.isnan(values)), None, said)


def _floats(cells: pa.Array) -> FloatArray:
    if types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    cells = compute.cast(cells, pa.float64(), safe=False)
    content = [None, cells.buffers()[1]]  # to_numpy would import pandas, if it is there
    values = pa.Array.from_buffers(
        pa.float64(), len(cells), content, offset=cells.offset
    )
    found = np.asarray(np.from_dlpack(values), dtype=np.float64)
    if cells.null_count:
        absent = compute.cast(compute.is_null(cells), pa.uint8())
        found = np.where(np.from_dlpack(absent), np.nan, found)
    return found


def _days(column: Column, cells: pa.Array) -> tuple[FloatArray, list[Bad]]:
    """Return dates as days since 1970-01-01, of texts too that begin with the year."""
    if types.is_date(cells.type) or types.is_timestamp(cells.type):
        days = _floats(compute.cast(cells, pa.date32(), safe=False).view(pa.int32()))
        bad: list[Bad] = []
    else:
        days, bad = _parse_days(column, texts(cells))
    # a code of no value may be a date itself
    days = np.where(np.isin(days, [*map(_day, column.codes)]), np.nan, days)
    # a reader of dates takes 05/03/16 for a day of the year 5
    early = days < _FIRST_DAY
    rows = np.flatnonzero(early).tolist()
    return np.where(early, np.nan, days), [*bad, *(Bad(row, EARLY) for row in rows)]


def _parse_days(column: Column, cells: pa.Array) -> tuple[FloatArray, list[Bad]]:
    coded = plain_texts(column, cells).dictionary_encode()
    said = [normal(text) for text in coded.dictionary.to_pylist()]
    table = [_day(text) for text in said]
    lookup = np.array([*table, math.nan])
    places = coded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
    wrong = [
        place
        for place, (text, day) in enumerate(zip(said, table, strict=True))
        if math.isnan(day) and text not in column.codes
    ]
    rows = np.flatnonzero(np.isin(places, wrong)).tolist()
    bad = [Bad(row, _explain(column, said[int(places[row])])) for row in rows]
    return lookup[places], bad


def _day(text: str) -> float:
    try:
        return float(day_number(text[:10]))
    except ValueError:
        return math.nan


def _presence(column: Column, cells: pa.Array) -> FloatArray:
    """Return 0 for each value that is there, whatever it means."""
    said = texts(cells)
    absent = compute.is_null(said)
    if column.codes:
        codes = pa.array(sorted(column.codes), pa.large_string())
        absent = compute.or_(absent, compute.is_in(said, value_set=codes))
    found: FloatArray = np.where(absent.to_numpy(zero_copy_only=False), np.nan, 0.0)
    return found


def _parse_numbers(column: Column, cells: pa.Array) -> tuple[pa.Array, list[Bad]]:
    """Return texts as numbers, as the dictionary or the rest of the column says."""
    with suppress(pa.ArrowInvalid):  # it does not suffice for commas and codes
        return compute.cast(cells, _USUAL[column.form.decimal == ","]), []
    plain = plain_texts(column, cells)
    with suppress(pa.ArrowInvalid):
        return compute.cast(plain, pa.float64()), []
    values = [None if t is None else number_of(t) for t in plain.to_pylist()]
    bad = [
        Bad(row, _explain(column, cells[row].as_py()))
        for row, (text, value) in enumerate(zip(plain, values, strict=True))
        if text.is_valid and value is None
    ]
    return pa.array(values, pa.float64()), bad


def plain_texts(column: Column, cells: pa.Array) -> pa.Array:
    """Return texts of numbers with a point, of dates with the year first; null of codes.

    What is written otherwise stays, and is no number or date.
    """
    if not (column.is_numeric or column.is_date):
        return cells
    clean = compute.utf8_trim_whitespace(cells)
    codes = pa.array(sorted({"", *column.codes}), clean.type)
    given = compute.if_else(compute.is_in(clean, value_set=codes), None, clean)
    if column.is_date:
        order = column.form.dates
        if order in {None, "year-first"}:
            return given
        coded = given.dictionary_encode()
        dates = [read_date(t, [order]) or t for t in coded.dictionary.to_pylist()]
        return pa.array(dates, clean.type).take(coded.indices)
    if column.form.decimal != ",":
        return given
    # a point between thousands is no number: with '_' nothing else is one either
    pointed = compute.replace_substring(given, ".", "_")
    return compute.replace_substring(pointed, ",", ".")


def _look_up_spellings(
    column: Column, cells: pa.Array, spellings: Mapping[str, float]
) -> tuple[FloatArray, list[Bad]]:
    """Return the number of each spelling: looked up once for each that occurs."""
    is_coded = types.is_dictionary(cells.type)
    coded = cells if is_coded else texts(cells).dictionary_encode()
    table, unknown = [], {}
    for place, text in enumerate(texts(coded.dictionary).to_pylist()):
        if text is None:
            table.append(math.nan)
            continue
        clean = normal(text)
        found = spellings.get(clean)
        if found is None and column.type == "boolean":
            found = spellings.get(clean.lower())
        table.append(math.nan if found is None else found)
        if found is None and clean not in column.codes:
            unknown[place] = text
    lookup = np.array([*table, math.nan])
    places = coded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(np.isin(places, list(unknown))).tolist() if unknown else ()
    bad = [Bad(row, _not_among(column, unknown[int(places[row])])) for row in wrong]
    return lookup[places], bad


def _explain(column: Column, cell: str) -> str:
    """Return what a cell is not, and what may help, with its form alone."""
    if column.heads(cell):
        return HEADER
    shape, written = form(cell.strip()), column.form
    if column.is_date:
        if SHORT_YEAR.fullmatch(cell.strip()):
            return EARLY
        if written.dates is None and any(sign in cell for sign in "/-."):
            return (
                f"{shape!r}: is the day or the month first? --csv dates=day-first says"
            )
        return f"{shape!r} is no date in the order {written.dates or 'year-first'}"
    other = replace(written, decimal="." if written.decimal == "," else ",")
    hint = ""
    if is_number(cell, other):
        hint = f": the decimal sign here is {written.decimal!r} (--csv decimal=…)"
    elif not any(character.isdigit() for character in cell):
        hint = " (if it stands for no value: --csv missing=…)"
    elif is_number(cell.replace(",", "").replace(".", ""), written):
        hint = f": {SEPARATED}"
    return f"{shape!r} is no number{hint}"


def _not_among(column: Column, text: str) -> str:
    if column.heads(text):
        return HEADER
    if column.type == "boolean":
        return f"{form(text)!r} is neither yes nor no"
    own = normal(text).casefold()
    near = [level for level in column.spellings or () if level.casefold() == own]
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{form(text)!r} is no level of the dictionary{hint}"


@cache
def _numeric(codes: frozenset[str]) -> tuple[float, ...]:
    """Return the codes of no value that are numbers, such as -9."""
    values = [number_of(code) for code in codes]
    return tuple(v for v in values if v is not None and math.isfinite(v))


def number_of_cell(text: str) -> float:
    """Return the number that a cell is, or one that stands for its text."""
    value = number_of(text)
    if value is not None:
        return value
    digest = blake2b(text.encode(), digest_size=6).digest()
    return _HASHED + float(int.from_bytes(digest, "little"))


def without_codes(cells: pa.Array, codes: Collection[str]) -> pa.Array:
    """Return cells as texts, empty where one stands for no value."""
    said = texts(cells).fill_null("")
    if not codes:
        return said
    clean = compute.utf8_trim_whitespace(said)
    absent = compute.is_in(clean, value_set=pa.array(sorted(codes), pa.large_string()))
    return compute.if_else(absent, "", said)


def id_texts(parts: Sequence[pa.Array]) -> tuple[pa.Array, Any]:
    """Return ids of one or several columns as written, and a mask of rows without one."""
    from clustering_protocols.shared_stages.alignment.identifiers import join

    named = [texts(part) for part in parts]
    empty = np.zeros(len(named[0]), dtype=bool)
    for part in named:
        lengths = _floats(compute.utf8_length(compute.utf8_trim_whitespace(part)))
        empty |= ~(lengths > 0)
    if len(named) == 1:
        return named[0], empty
    rows = zip(*(part.fill_null("").to_pylist() for part in named), strict=True)
    return pa.array([join(row) for row in rows], pa.large_string()), empty

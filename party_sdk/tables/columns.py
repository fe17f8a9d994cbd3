"""Convert columns of a batch to float64: numbers, category levels, dates and booleans."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.schema import (
    Field,
    Schema,
    normalise_text,
    parse_day_number,
)
from party_sdk.tables.cells import (
    BOOLEANS,
    SEPARATOR_REMEDY,
    SHORT_YEAR,
    TIME,
    CellForm,
    Kind,
    is_number,
    parse_number,
    read_date,
)
from party_sdk.tables.report import HEADER, mask_text

_YES_AND_NO: Final = BOOLEANS | {
    "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "1": 1.0, "0": 0.0,
    "ja": 1.0, "nein": 0.0, "oui": 1.0, "non": 0.0,
}  # fmt: skip
"""Spellings that are recognised if the dictionary declares a column as boolean."""

PLAIN: Final = CellForm()
_FIRST_DAY: Final = parse_day_number("1000-01-01")
_FIRST_CASTS: Final = (pa.float64(), pa.int64())
"""Types tried first for texts: of columns with decimal points, and with commas."""
EARLY_YEAR: Final = "a year before 1000: write it with four digits"

_HASH_OFFSET: Final = 2.0**52
"""The smallest hash of a text: numbers of levels, days and codes are smaller."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read.

    kind: the kind of its values, as detected from the table.
    field: its field in the dictionary, or None without a dictionary.
    codes: texts that mean a missing value.
    header: its name in the table, if a mapping renames it; otherwise empty.
    form: the table's number and date format.
    """

    name: str
    kind: Kind
    field: Field | None = None
    codes: frozenset[str] = frozenset()
    header: str = ""
    form: CellForm = PLAIN

    @classmethod
    def from_schema(
        cls,
        name: str,
        kind: Kind,
        schema: Schema | None,
        codes: frozenset[str],
        form: CellForm = PLAIN,
    ) -> Column:
        """Return a column with its field and missing codes from the dictionary."""
        if schema is None:
            return cls(name, kind, None, codes, form=form)
        field = schema.field(name)
        missing_codes = codes | schema.missing_codes(field)
        return cls(
            name, kind, field, missing_codes - frozenset(field.levels), form=form
        )

    @property
    def type(self) -> str:
        """The type that reports state: the dictionary's if there is one, else the kind."""
        if self.field is None:
            return self.kind
        if self.field.is_category:
            return "ordinal" if self.field.is_ordinal else "category"
        return self.field.type

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are read as numbers."""
        return self.type in {"number", "integer", "nothing"}

    @property
    def is_date(self) -> bool:
        """Whether the cells are read as dates."""
        return self.type == "date" and self.field is not None

    @property
    def is_described(self) -> bool:
        """Whether cells can become numbers. Words and dates need a dictionary for this."""
        return self.field is not None or self.type not in {"words", "date"}

    def is_header(self, text: str) -> bool:
        """Return whether a cell repeats the column's name."""
        return normalise_text(text) == (self.header or self.name)

    @property
    def spellings(self) -> Mapping[str, float] | None:
        """The number for each allowed text, or None if the type is not a set of texts."""
        if self.field is not None and self.field.is_category:
            return {level: float(i) for i, level in enumerate(self.field.levels)}
        if self.type == "boolean":
            return BOOLEANS if self.field is None else _YES_AND_NO
        return None


class CellFault(NamedTuple):
    """A cell that cannot be read: the index of its row in the batch, and the problem."""

    row: int
    problem: str


def to_numbers(column: Column, cells: pa.Array) -> tuple[FloatArray, list[CellFault]]:
    """Convert cells to float64 (n,), and return them with the unreadable cells.

    Missing and unreadable values are NaN. Words and dates without a dictionary become
    0.
    """
    spellings = column.spellings
    if spellings is not None and not (
        types.is_boolean(cells.type) and column.type == "boolean"
    ):
        return _look_up_spellings(column, cells, spellings)
    if not column.is_described:
        return _to_presence(column, cells), []
    if column.is_date:
        return _to_days(column, cells)
    if not (is_numeric(cells.type) or types.is_boolean(cells.type)):
        cells, faults = _parse_numbers(column, to_texts(cells))
    else:
        faults = []
    values = _to_floats(cells)
    if codes := _numeric_codes(column.codes):
        values = np.where(np.isin(values, codes), np.nan, values)
    return values, faults


def count_codes(column: Column, cells: pa.Array) -> Counter[str]:
    """Count the cells with each code that the dictionary declares as missing."""
    codes = column.codes - {""}
    if not codes or column.field is None:
        return Counter()
    cell_texts = compute.utf8_trim_whitespace(to_texts(cells)).fill_null("")
    is_code = {
        code: compute.equal(cell_texts, code).to_numpy(zero_copy_only=False)
        for code in codes
    }
    if column.is_numeric or column.is_date:
        values, _ = to_numbers(replace(column, codes=frozenset({""})), cells)
        parse = _parse_day if column.is_date else parse_number
        is_code = {
            code: mask | (values == parse(code)) for code, mask in is_code.items()
        }
    return Counter({code: int(mask.sum()) for code, mask in is_code.items()})


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is numeric."""
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def kind_of_type(kind: pa.DataType) -> Kind:
    """Return the kind of values of an Arrow type."""
    if types.is_integer(kind):
        return "integer"
    if is_numeric(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    return "nothing" if types.is_null(kind) else "words"


def to_texts(cells: pa.Array) -> pa.Array:
    """Convert cells to text: whole numbers without a fraction, days without a time."""
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if types.is_floating(cells.type):
        return _format_floats(cells)
    if types.is_timestamp(cells.type):
        formatted = compute.cast(cells, pa.large_string())
        formatted = compute.replace_substring_regex(formatted, r"\.0+(Z?)$", r"\1")
        return compute.replace_substring_regex(formatted, r" 00:00:00Z?$", "")
    try:
        return compute.cast(cells, pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([str(value) for value in cells.to_pylist()], pa.large_string())
    except pa.ArrowNotImplementedError:  # of a nested value, only its presence matters
        presence = [None if value is None else "…" for value in cells.to_pylist()]
        return pa.array(presence, pa.large_string())


def _format_floats(cells: pa.Array) -> pa.Array:
    values = _to_floats(cells)
    whole = (values == np.trunc(values)) & (np.abs(values) < 2**53)
    integers = pa.array(np.where(whole, values, 0).astype(np.int64))
    formatted = compute.if_else(
        pa.array(whole),
        compute.cast(integers, pa.large_string()),
        compute.cast(pa.array(values), pa.large_string()),
    )
    return compute.if_else(pa.array(np.isnan(values)), None, formatted)


def _to_floats(cells: pa.Array) -> FloatArray:
    if types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    cells = compute.cast(cells, pa.float64(), safe=False)
    content = [None, cells.buffers()[1]]  # to_numpy would import pandas
    values = pa.Array.from_buffers(
        pa.float64(), len(cells), content, offset=cells.offset
    )
    floats = np.asarray(np.from_dlpack(values), dtype=np.float64)
    if cells.null_count:
        absent = compute.cast(compute.is_null(cells), pa.uint8())
        floats = np.where(np.from_dlpack(absent), np.nan, floats)
    return floats


def _to_days(column: Column, cells: pa.Array) -> tuple[FloatArray, list[CellFault]]:
    """Convert dates, or texts of dates, to days since 1970-01-01."""
    if types.is_date(cells.type) or types.is_timestamp(cells.type):
        days = _to_floats(compute.cast(cells, pa.date32(), safe=False).view(pa.int32()))
        faults: list[CellFault] = []
    else:
        days, faults = _parse_days(column, to_texts(cells))
    # a code of a missing value may itself be a date
    days = np.where(np.isin(days, [*map(_parse_day, column.codes)]), np.nan, days)
    # some programs read 05/03/16 as a day in the year 5
    early = days < _FIRST_DAY
    rows = np.flatnonzero(early).tolist()
    return np.where(early, np.nan, days), [
        *faults,
        *(CellFault(row, EARLY_YEAR) for row in rows),
    ]


def _parse_days(column: Column, cells: pa.Array) -> tuple[FloatArray, list[CellFault]]:
    coded = plain_texts(column, cells).dictionary_encode()
    spellings = [normalise_text(text) for text in coded.dictionary.to_pylist()]
    days = [_parse_day(text) for text in spellings]
    problems = {
        index: _explain_fault(column, text)
        for index, (text, day) in enumerate(zip(spellings, days, strict=True))
        if math.isnan(day) and text not in column.codes
    }
    return _look_up(coded.indices, days, problems)


def _look_up(
    indices: pa.Array, values: Sequence[float], problems: Mapping[int, str]
) -> tuple[FloatArray, list[CellFault]]:
    """Return the value at each index, and the cells whose index has a problem."""
    lookup = np.array([*values, math.nan])
    chosen = indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(chosen, list(problems))).tolist() if problems else ()
    return lookup[chosen], [CellFault(row, problems[int(chosen[row])]) for row in rows]


def _parse_day(text: str) -> float:
    try:
        return float(parse_day_number(TIME.sub("", text)))
    except ValueError:
        return math.nan


def _to_presence(column: Column, cells: pa.Array) -> FloatArray:
    """Return float64 (n,): 0 where there is a value, NaN where it is missing."""
    cell_texts = to_texts(cells)
    absent = compute.is_null(cell_texts)
    if column.codes:
        codes = pa.array(sorted(column.codes), pa.large_string())
        absent = compute.or_(absent, compute.is_in(cell_texts, value_set=codes))
    presence: FloatArray = np.where(absent.to_numpy(zero_copy_only=False), np.nan, 0.0)
    return presence


def _parse_numbers(column: Column, cells: pa.Array) -> tuple[pa.Array, list[CellFault]]:
    with suppress(pa.ArrowInvalid):  # fails for decimal commas and codes
        return compute.cast(cells, _FIRST_CASTS[column.form.decimal == ","]), []
    plain = plain_texts(column, cells)
    with suppress(pa.ArrowInvalid):
        return compute.cast(plain, pa.float64()), []
    values = [None if t is None else parse_number(t) for t in plain.to_pylist()]
    faults = [
        CellFault(row, _explain_fault(column, cells[row].as_py()))
        for row, (text, value) in enumerate(zip(plain, values, strict=True))
        if text.is_valid and value is None
    ]
    return pa.array(values, pa.float64()), faults


def plain_texts(column: Column, cells: pa.Array) -> pa.Array:
    """Rewrite the cells of a number or date column in a standard format.

    Numbers get a decimal point, dates the order of ISO 8601. Codes of missing values
    become null.

    Any other text stays or becomes one that cannot be parsed as a number or date.
    """
    if not (column.is_numeric or column.is_date):
        return cells
    clean = compute.utf8_trim_whitespace(cells)
    codes = pa.array(sorted({"", *column.codes}), clean.type)
    present = compute.if_else(compute.is_in(clean, value_set=codes), None, clean)
    if column.is_date:
        order = column.form.dates
        if order in {None, "year-first"}:
            return present
        coded = present.dictionary_encode()
        dates = [read_date(t, [order]) or t for t in coded.dictionary.to_pylist()]
        return pa.array(dates, clean.type).take(coded.indices)
    if column.form.decimal != ",":
        return present
    # '_' occurs in no number: 1.000 must not be read as 1
    pointed = compute.replace_substring(present, ".", "_")
    return compute.replace_substring(pointed, ",", ".")


def _look_up_spellings(
    column: Column, cells: pa.Array, spellings: Mapping[str, float]
) -> tuple[FloatArray, list[CellFault]]:
    is_coded = types.is_dictionary(cells.type)
    coded = cells if is_coded else to_texts(cells).dictionary_encode()
    table, problems = [], {}
    for index, text in enumerate(to_texts(coded.dictionary).to_pylist()):
        if text is None:
            table.append(math.nan)
            continue
        clean = normalise_text(text)
        number = spellings.get(clean)
        if number is None and column.type == "boolean":
            number = spellings.get(clean.lower())
        table.append(math.nan if number is None else number)
        if number is None and clean not in column.codes:
            problems[index] = _explain_level(column, text)
    return _look_up(coded.indices, table, problems)


def _explain_fault(column: Column, cell: str) -> str:
    """Return why a number or date cannot be read, without quoting the value itself."""
    if column.is_header(cell):
        return HEADER
    shape, own_form = mask_text(cell.strip()), column.form
    if column.is_date:
        if SHORT_YEAR.fullmatch(cell.strip()):
            return EARLY_YEAR
        if own_form.dates is None and any(sign in cell for sign in "/-."):
            return (
                f"{shape!r}: is the day or the month first? Use --csv dates=day-first or "
                "--csv dates=month-first"
            )
        return f"{shape!r} is not a date in the order {own_form.dates or 'year-first'}"
    decimal, hint = own_form.decimal, ""
    if is_number(cell, "." if decimal == "," else ","):
        hint = f": the decimal sign here is {decimal!r} (--csv decimal=…)"
    elif not any(character.isdigit() for character in cell):
        hint = " (if it means a missing value: missing = […] in a mapping)"
    elif is_number(re.sub("[.,]", "", cell), decimal):
        hint = f": {SEPARATOR_REMEDY}"
    return f"{shape!r} is not a number{hint}"


def _explain_level(column: Column, text: str) -> str:
    if column.is_header(text):
        return HEADER
    if column.type == "boolean":
        return f"{mask_text(text)!r} is neither yes nor no"
    folded = normalise_text(text).casefold()
    similar = [level for level in column.spellings or () if level.casefold() == folded]
    hint = f" (did you mean {similar[0]!r}?)" if similar else ""
    return f"{mask_text(text)!r} is not a level of the dictionary{hint}"


@cache
def _numeric_codes(codes: frozenset[str]) -> tuple[float, ...]:
    values = [parse_number(code) for code in codes]
    return tuple(v for v in values if v is not None and math.isfinite(v))


def original_numbers(column: Column, cells: pa.Array) -> FloatArray:
    """Return float64 (n,): numbers for a table's own cells, whatever a dictionary says.

    A number, or otherwise a day, is read in the column's format; yes and no of a
    boolean column are 1 and 0; any other text becomes a hash. A missing value is NaN.

    column: the column, with the missing codes and the format of the table's cells.
    """
    numeric = replace(column, kind="number", field=None)
    if is_numeric(cells.type) or types.is_boolean(cells.type):
        return to_numbers(numeric, cells)[0]
    coded = to_texts(cells).dictionary_encode()
    numbers, faults = to_numbers(numeric, coded.dictionary)
    values, order = numbers.tolist(), column.form.dates or "year-first"
    spellings = column.spellings if column.type == "boolean" else None
    for row, _ in faults:
        text = normalise_text(coded.dictionary[row].as_py())
        value = (spellings or {}).get(text.lower(), math.nan)
        if math.isnan(value):
            value = _parse_day(read_date(text, [order]) or text)
        values[row] = _hash_text(text) if math.isnan(value) else value
    return _look_up(coded.indices, values, {})[0]


def _hash_text(text: str) -> float:
    digest = blake2b(text.encode(), digest_size=6).digest()
    return _HASH_OFFSET + float(int.from_bytes(digest, "little"))


def without_codes(cells: pa.Array, codes: Collection[str]) -> pa.Array:
    """Return cells as text, in which codes of missing values are replaced by ""."""
    cell_texts = to_texts(cells).fill_null("")
    if not codes:
        return cell_texts
    clean = compute.utf8_trim_whitespace(cell_texts)
    absent = compute.is_in(clean, value_set=pa.array(sorted(codes), pa.large_string()))
    return compute.if_else(absent, "", cell_texts)


def join_ids(parts: Sequence[pa.Array]) -> tuple[pa.Array, Any]:
    """Join the id columns to one text per row, and return a mask of rows without an id."""
    from clustering_protocols.shared_stages.alignment.identifiers import join_parts

    id_parts = [to_texts(part) for part in parts]
    empty = np.zeros(len(id_parts[0]), dtype=bool)
    for part in id_parts:
        lengths = _to_floats(compute.utf8_length(compute.utf8_trim_whitespace(part)))
        empty |= ~(lengths > 0)
    if len(id_parts) == 1:
        return id_parts[0], empty
    rows = zip(*(part.fill_null("").to_pylist() for part in id_parts), strict=True)
    return pa.array([join_parts(row) for row in rows], pa.large_string()), empty

"""What is wrong with the cells of a table, and which values may be codes.

A table with problems is read once more, as texts. Each text that occurs in a batch is
looked at once, by the functions that read it as a number or a level.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from clustering_protocols.terms.schema import Field
from party_sdk.tables import guards
from party_sdk.tables.cells import (
    SHORT_YEAR,
    read_date,
    read_minus,
    read_number,
    split_limit,
)
from party_sdk.tables.codes import as_date
from party_sdk.tables.columns import Column, numbers
from party_sdk.tables.report import HEADER, CellProblem
from party_sdk.tables.source import Source

_MOST_VALUES: Final = 1_000
"""Different values of one column that are counted one by one; the others together."""
_MOST_LEVELS: Final = 20
_NO_NUMBERS: Final = "not numbers"
_THOUSAND: Final = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")
_ORDERS: Final = ("year-first", "day-first", "month-first")


def find_cell_problems(
    source: Source, columns: Sequence[Column], allow: frozenset[str]
) -> tuple[CellProblem, ...]:
    """Return what is wrong with the cells of columns, by column and kind.

    allow: guards that are switched off.
    """
    described = [column for column in columns if column.is_described]
    return tuple(_problems_of(source, described, allow)) if described else ()


def _problems_of(
    source: Source, columns: Sequence[Column], allow: frozenset[str]
) -> Iterator[CellProblem]:
    counted = [_CountedColumn(column, source, allow) for column in columns]
    begin = 0
    for cells in source.texts(columns):
        for each, piece in zip(counted, cells, strict=True):
            each.count(piece, begin)
        begin += len(cells[0])
    places = source.read_places()
    if places is None:
        return
    first = sorted({values.row for each in counted for values in each.kinds.values()})
    lines = dict(zip(first, places.of(first), strict=True))
    single = Counter(
        v.row for each in counted for v in each.kinds.values() if v.n_rows == 1
    )
    for each in counted:
        for what, values in each.kinds.items():
            is_of_row = values.n_rows == 1 and single[values.row] > 1
            yield values.to_problem(
                each.column, what, lines[values.row], is_of_row=is_of_row
            )


class _WrongValues:
    """Values of one column with one fault: rows of each, and the first row of all."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.n_rows = 0
        self.counts: dict[str, int] = {}

    def add(self, text: str, n_rows: int) -> None:
        """Add rows that hold a value."""
        self.n_rows += n_rows
        if text in self.counts or len(self.counts) < _MOST_VALUES:
            self.counts[text] = self.counts.get(text, 0) + n_rows

    def to_problem(
        self, column: Column, what: str, line: int, *, is_of_row: bool
    ) -> CellProblem:
        """Return them for people, the most frequent first.

        is_of_row: whether this one value stands in a row with other wrong ones.
        """
        values = sorted(self.counts.items(), key=lambda each: -each[1])
        return CellProblem(
            column=column.name,
            what=what,
            values=tuple(values),
            n_rows=self.n_rows,
            line=line,
            hint=_hint_for(
                what, [text for text, _ in values], row=line if is_of_row else None
            ),
        )


class _CountedColumn:
    """A column whose wrong texts are counted, batch by batch.

    kinds: by what is wrong.
    """

    def __init__(self, column: Column, source: Source, allow: frozenset[str]) -> None:
        self.column, self.kinds = column, dict[str, _WrongValues]()
        self._source, self._allow = source, allow

    def count(self, piece: pa.Array, begin: int) -> None:
        """Count the texts of a batch whose first row is ``begin``."""
        coded = piece.dictionary_encode(null_encoding="encode")
        texts = coded.dictionary
        places = coded.indices.to_numpy(zero_copy_only=False)
        n_rows = np.bincount(places, minlength=len(texts))
        _, first = np.unique(places, return_index=True)
        for place, what in self._faults(texts):
            row = begin + int(first[place])
            values = self.kinds.setdefault(what, _WrongValues(row))
            values.row = min(values.row, row)
            values.add(texts[place].as_py() or "", int(n_rows[place]))

    def _faults(self, texts: pa.Array) -> Iterable[tuple[int, str]]:
        """Yield the texts, by their places, that cannot stand here, and why."""
        column = self.column
        found, bad = numbers(column, self._source.normalise(column, texts))
        for each in bad:
            if each.what != HEADER and not column.heads(texts[each.row].as_py() or ""):
                yield each.row, _not_read(column)
        X = found[:, None]
        spread = guards.Spread.of(X)
        unread = {each.row for each in bad}
        for row, _, what in guards.misfits([column], X, spread, self._allow):
            if row not in unread:
                yield row, _with_bounds(column, what)


def _not_read(column: Column) -> str:
    field = column.field
    if field is not None and field.is_category:
        shown = ", ".join(field.levels[:_MOST_LEVELS])
        more = f" and {n} more" if (n := len(field.levels) - _MOST_LEVELS) > 0 else ""
        return f"not levels; allowed: {shown}{more}"
    if column.type == "boolean":
        return "neither yes nor no"
    return "not dates" if column.is_date else _NO_NUMBERS


def _with_bounds(column: Column, what: str) -> str:
    """Return a fault with what the dictionary allows instead."""
    field = column.field
    if field is None or "dictionary's" not in what:
        return what
    low, high = (_format_bound(field, end) for end in field.bounds)
    if low and high:
        return f"{what}; allowed: {low} to {high}"
    return f"{what}; allowed: {f'at least {low}' if low else f'at most {high}'}"


def _format_bound(field: Field, end: float) -> str:
    if not np.isfinite(end):
        return ""
    return as_date(end) if field.type == "date" else f"{end:g}"


def _hint_for(what: str, texts: Sequence[str], row: int | None) -> str:
    """Return what mends values, where their kind shows it.

    row: the line of other wrong values beside this one, if it stands among such.
    """
    is_number = what == _NO_NUMBERS
    if is_number and any(map(read_minus, texts)):
        return 'negative numbers by their minus? minus = "any" in a mapping reads them'
    if is_number and any(split_limit(text) for text in texts):
        return (
            'a limit of detection: limits = "half", "value" or "missing" in a mapping'
        )
    if is_number and (hint := _hint_for_numbers(texts)):
        return hint
    if is_number and not any(text.strip()[:1].isdigit() for text in texts):
        if row is not None:
            return f"a row of units? [leave_out] lines = [{row}] in a mapping"
        words = " ".join(f"--csv {shlex.quote(f'missing={t}')}" for t in texts[:3])
        return f"if they stand for no value: {words}"
    if what == "not dates":
        return _hint_for_dates(texts)
    if what.startswith("not levels"):
        return "coterie table --propose drafts a mapping"
    return ""


def _hint_for_numbers(texts: Sequence[str]) -> str:
    """Return what mends numbers: another decimal sign, or one between thousands."""
    apart = [t for t in texts if any(read_number(t, None, sign) for sign in ".,")]
    signs = {sign for t in apart for sign in ".," if read_number(t, sign, None)}
    if not apart:
        return ""
    sign = signs.pop() if len(signs) == 1 else ""
    if not sign or not all(read_number(text, sign, None) for text in apart):
        return 'thousands that stand apart: thousands = "." or "," in a mapping'
    is_either = all(_THOUSAND.fullmatch(text.strip()) for text in apart)
    either = f'thousands = "{sign}" or ' if is_either else ""
    return f'{either}decimal = "{sign}" in a mapping'


def _hint_for_dates(texts: Sequence[str]) -> str:
    """Return what mends dates: an order, or another form where no order reads them."""
    if any(read_date(text, (order,)) for text in texts for order in _ORDERS):
        return 'dates = ["day-first", "year-first"] in a mapping says their order'
    if any(SHORT_YEAR.fullmatch(text.strip()) for text in texts):
        return "write years with four digits, such as 2026-01-31"
    return "write them as 2026-01-31"

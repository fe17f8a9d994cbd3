"""Codes among numbers: values that may mean 'missing', and categories written as numbers.

A code for a missing value is an extreme of its column that stands apart from the rest:
-9 below concentrations, 999 above body mass indices, 1900-01-01 before dates of birth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import day_number
from party_sdk.tables.columns import Column
from party_sdk.tables.spool import Spool

CODES: Final = frozenset(
    sign * float(digit * length)
    for sign in (1, -1)
    for digit in "789"
    for length in range(1, 9)
) | frozenset(
    {-1.0, -2.0, -6.0, -66.0, -666.0, -97.0, -98.0, 97.0, 98.0}
    | {-997.0, -998.0, 997.0, 998.0, -9997.0, -9998.0, 9997.0, 9998.0}
    | {99.9, 999.9, 9999.9, 99.99, 999.99, -99.9, -999.9, -99.99, -999.99}
    | {-(2.0**15), 2.0**15 - 1, -(2.0**31), 2.0**31 - 1}
)  # fmt: skip
"""Numbers that questionnaires, laboratories and statistics packages write for 'missing'."""

DATES: Final = frozenset(
    float(day_number(text))
    for text in (
        "0001-01-01", "1111-11-11", "1753-01-01", "1800-01-01", "1899-12-30",
        "1899-12-31", "1900-01-01", "1900-12-31", "1901-01-01", "1904-01-01",
        "1960-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2999-12-31",
        "8888-08-08", "9999-01-01", "9999-09-09", "9999-12-31",
    )
)  # fmt: skip
"""Days that databases and calendars write for 'unknown', since 1970-01-01."""

MOST_VALUES: Final = 10
"""Whole numbers of at most so many values may be codes of categories."""

_MOST_PEELED: Final = 5
_MOST_SHARE: Final = 0.5
_NEAREST: Final = 5
_FAR: Final = 2.0
_APART: Final = 0.5
_LONG: Final = 66
_LONG_APART: Final = 0.1
_STEPS: Final = 1.5
_FEW_STEPS: Final = 5.0
_ZERO_APART: Final = 0.15
_MANY_STEPS: Final = 10.0
_SPIKE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneValue:
    """A value of a column that stands apart from the others.

    least, largest: of the other values.
    """

    value: float
    count: int
    least: float
    largest: float


@dataclass(frozen=True, slots=True)
class _Side:
    """One end of a column's values, as if it were the upper end.

    codes, counts: the values that may be codes, innermost first.
    rest, rest_counts: the other values, nearest to the codes first.
    """

    codes: FloatArray
    counts: IntArray
    rest: FloatArray
    rest_counts: IntArray

    @property
    def gap(self) -> float:
        """Return the distance of the innermost code to the rest."""
        return float(abs(self.codes[0] - self.rest[0]))

    @property
    def extent(self) -> float:
        """Return how far the rest goes."""
        return float(abs(self.rest[0] - self.rest[-1]))

    @property
    def step(self) -> float:
        """Return the usual distance of neighbours in the rest."""
        return float(np.median(np.abs(np.diff(self.rest))))

    @property
    def is_spike(self) -> bool:
        """Return whether far more rows hold the codes than any value near to them."""
        nearest = int(self.rest_counts[:_NEAREST].max())
        return int(self.counts.max()) >= _SPIKE * max(1, nearest)

    @property
    def is_known(self) -> bool:
        """Return whether values that are codes elsewhere stand apart here."""
        if self.gap <= _STEPS * self.step:
            return False
        if self.gap >= _FAR * self.extent:
            return True
        if int(self.counts.max()) < 2:
            return False
        if self.codes[0] < 0 <= self.rest.min():
            return True
        if abs(self.codes[0]) < _LONG:  # perhaps the next of many small numbers
            return self.gap >= _APART * self.extent
        steps = self.gap >= _FEW_STEPS * self.step
        return self.is_spike or (steps and self.gap >= _LONG_APART * self.extent)

    @property
    def is_lone(self) -> bool:
        """Return whether a value that is a code nowhere else stands apart here."""
        if len(self.rest) < _NEAREST or int(self.counts[0]) < _SPIKE:
            return False
        if self.counts[0] > _MOST_SHARE * (self.counts[0] + self.rest_counts.sum()):
            return False
        if self.codes[0] != 0:
            return self.gap > self.extent
        return (
            self.is_spike
            and self.gap >= _ZERO_APART * self.extent
            and self.gap >= _MANY_STEPS * self.step
        )


def lone_values(x: FloatArray, known: frozenset[float] = CODES) -> list[LoneValue]:
    """Return extremes of a column that may mean 'missing', ascending.

    Known codes count where they stand apart from the other values, by distance, by sign
    or by how many rows hold them. Any other value counts if it is repeated and lies
    farther from the others than these from each other; a zero may lie nearer.

    x: float64 (n,); NaN is no value.
    known: values that are codes elsewhere.
    """
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    low, high = _n_codes(values, known), _n_codes(values[::-1], known)
    if len(values) - low - high < 2:
        return []
    found = [
        *_apart(values, counts, low, high),
        *_apart(values[::-1], counts[::-1], high, low),
    ]
    kept = np.isin(values, [value for value, _ in found], invert=True)
    least, largest = float(values[kept].min()), float(values[kept].max())
    return [
        LoneValue(value=value, count=count, least=least, largest=largest)
        for value, count in sorted(found)
    ]


def n_coded(x: FloatArray) -> int:
    """Return how many values a column of codes has; 0 of one that has none.

    Codes are few whole numbers, other than 0 and 1 alone.
    """
    values = np.unique(x[~np.isnan(x)])
    few = 2 <= len(values) <= MOST_VALUES and len(x) >= 2 * MOST_VALUES
    if not few or not (values == np.trunc(values)).all():
        return 0
    return 0 if len(values) == 2 and set(values) <= {0.0, 1.0} else len(values)


def as_date(day: float) -> str:
    """Return a day since 1970-01-01 as ISO 8601 writes it."""
    return str(np.datetime64(int(day), "D"))


def _n_codes(values: FloatArray, known: frozenset[float]) -> int:
    """Return how many values at the beginning are codes elsewhere."""
    for place, value in enumerate(values[:_MOST_PEELED]):
        if float(value) not in known:
            return place
    return min(len(values), _MOST_PEELED)


def _apart(
    values: FloatArray, counts: IntArray, own: int, other: int
) -> Iterator[tuple[float, int]]:
    """Yield the first values that are codes here, with their counts.

    values: float64 array; from the end that is looked at.
    own, other: how many values at this and at the other end are codes elsewhere.
    """
    end = len(values) - other
    # 7 and 99 are codes elsewhere, and 7 may be the largest number here
    for n_taken in range(max(1, own), 0, -1):
        if end - n_taken < 2:
            continue
        side = _Side(
            codes=values[:n_taken][::-1],
            counts=counts[:n_taken][::-1],
            rest=values[n_taken:end],
            rest_counts=counts[n_taken:end],
        )
        if side.is_known if own else side.is_lone:
            taken = values[:n_taken].tolist(), counts[:n_taken].tolist()
            yield from zip(*taken, strict=True)
            return


_MOST_ROWS: Final = 50_000
_MOST_CELLS: Final = 10_000_000
_MOST_TOLD: Final = 10


def code_warnings(columns: Sequence[Column], spool: Spool) -> Iterator[str]:
    """Yield sentences on values that may mean 'missing', and on columns of codes.

    Of a large table rows evenly spread over it are looked at; counts are of all rows.

    spool: the table's rows, with a column for each of these.
    """
    most = min(_MOST_ROWS, max(1, _MOST_CELLS // max(1, spool.width)))
    step = max(1, -(-spool.n_rows // most))
    sample = spool.take(np.arange(0, spool.n_rows, step))
    told = [
        _sentence(columns[place], value, count)
        for place, value, count in _lone(columns, spool, sample)
    ]
    yield from told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        yield f"{len(told) - _MOST_TOLD} more values stand apart from their columns."
    if coded := list(_find_coded_columns(columns, sample)):
        more = f" and {len(coded) - _MOST_TOLD} more" * (len(coded) > _MOST_TOLD)
        yield (
            "Whole numbers of few values, perhaps codes of categories: "
            f"{', '.join(coded[:_MOST_TOLD])}{more}. A dictionary says what they are."
        )


def _lone(
    columns: Sequence[Column], spool: Spool, sample: FloatArray
) -> list[tuple[int, LoneValue, int]]:
    """Return lone values of the columns of numbers and dates, counted in all rows."""
    found = [
        (place, value)
        for place, column in enumerate(columns)
        if (column.is_numeric or column.is_date)
        for value in lone_values(sample[:, place], DATES if column.is_date else CODES)
    ]
    counts = [value.count for _, value in found]
    if found and len(sample) < spool.n_rows:
        counts = [0] * len(found)
        for X in spool.batches():
            for i, (place, value) in enumerate(found):
                counts[i] += int((X[:, place] == value.value).sum())
    return [(*each, count) for each, count in zip(found, counts, strict=True)]


def _sentence(column: Column, found: LoneValue, count: int) -> str:
    shown = as_date if column.is_date else _as_number
    value, rows = shown(found.value), "1 row" if count == 1 else f"{count} rows"
    return (
        f"{column.name!r}: {value} in {rows}, apart from all others "
        f"({shown(found.least)} to {shown(found.largest)}). "
        f"(If it stands for no value: --csv missing={value}.)"
    )


def _find_coded_columns(columns: Sequence[Column], sample: FloatArray) -> Iterator[str]:
    """Yield the columns without a description that hold few whole numbers."""
    for place, column in enumerate(columns):
        if column.field is None and column.is_numeric:
            x = sample[:, place]
            lone = [value.value for value in lone_values(x)]
            if n := n_coded(x[~np.isin(x, lone)]):
                yield f"{column.name!r} ({n} values)"


def _as_number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"

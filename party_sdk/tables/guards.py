"""Guards against sending ids and totals, and against reading codes as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import parse_day_number
from party_sdk.tables.columns import Column
from party_sdk.tables.files import CELL_LINES, LARGE_FILE
from party_sdk.tables.read_options import UNNAMED
from party_sdk.tables.table import Spool

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
"""Numbers that mean 'missing' in questionnaires, laboratories and statistics packages."""

DATES: Final = frozenset(
    float(parse_day_number(text))
    for text in (
        "0001-01-01", "1111-11-11", "1753-01-01", "1800-01-01", "1899-12-30",
        "1899-12-31", "1900-01-01", "1900-12-31", "1901-01-01", "1904-01-01",
        "1960-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2999-12-31",
        "8888-08-08", "9999-01-01", "9999-09-09", "9999-12-31",
    )
)  # fmt: skip
"""Dates that mean 'unknown' in databases and calendars, in days since 1970-01-01."""

MOST_VALUES: Final = 10
"""Whole numbers with at most this many distinct values may be codes of categories."""

_MOST_LEADING: Final = 5
_MOST_SHARE: Final = 0.5
_N_NEAREST: Final = 5
_FAR_RATIO: Final = 2.0
_APART_RATIO: Final = 0.5
_LEAST_LONG_CODE: Final = 66
_LONG_CODE_RATIO: Final = 0.1
_STEPS: Final = 1.5
_FEW_STEPS: Final = 5.0
_ZERO_RATIO: Final = 0.15
_MANY_STEPS: Final = 10.0
_SPIKE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneValue:
    """A value far from all others of its column, and the number of rows that have it.

    minimum, maximum: the range of the other values.
    """

    value: float
    count: int
    minimum: float
    maximum: float


def lone_values(x: FloatArray, codes: frozenset[float] = CODES) -> list[LoneValue]:
    """Return the outliers of a column that may mean 'missing', in ascending order.

    A common code such as 999 is returned if its distance, sign or frequency sets it
    apart. Any other value must be frequent, and farther from the remaining values than
    these are from each other. For a zero, a smaller distance suffices.

    x: float64 (n,); NaN for a missing value.
    codes: numbers that are commonly used as codes.
    """
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    n_low, n_high = (
        sum(1 for _ in takewhile(codes.__contains__, end[:_MOST_LEADING].tolist()))
        for end in (values, values[::-1])
    )
    if len(values) - n_low - n_high < 2:
        return []
    outliers = [
        *_find_outliers(values, counts, n_low, n_high),
        *_find_outliers(values[::-1], counts[::-1], n_high, n_low),
    ]
    is_common = np.isin(values, [value for value, _ in outliers], invert=True)
    minimum, maximum = float(values[is_common].min()), float(values[is_common].max())
    return [
        LoneValue(value=value, count=count, minimum=minimum, maximum=maximum)
        for value, count in sorted(outliers)
    ]


def as_date(day: float) -> str:
    """Format a day, counted from 1970-01-01, in ISO 8601."""
    return str(np.datetime64(int(day), "D"))


def _find_outliers(
    values: FloatArray, counts: IntArray, n_codes: int, n_other_codes: int
) -> Iterator[tuple[float, int]]:
    """Yield the outliers at one end of a column, each with its number of rows.

    values: float64 (n,), sorted so that the examined end comes first.
    n_codes, n_other_codes: number of common codes at this end and at the other end.
    """
    end = len(values) - n_other_codes
    # if 99 and 7 are at the end, 7 may be an ordinary value of this column
    for n_taken in range(max(1, n_codes), 0, -1):
        if end - n_taken < 2:
            continue
        codes, ordinary = slice(n_taken - 1, None, -1), slice(n_taken, end)
        stands_apart = _known_codes_stand_apart if n_codes else _lone_value_stands_apart
        if stands_apart(
            values[codes], counts[codes], values[ordinary], counts[ordinary]
        ):
            code_columns = values[:n_taken].tolist(), counts[:n_taken].tolist()
            yield from zip(*code_columns, strict=True)
            return


def _known_codes_stand_apart(
    codes: FloatArray, counts: IntArray, ordinary: FloatArray, ordinary_counts: IntArray
) -> bool:
    """Return whether common codes at one end of a column are outliers there.

    codes, counts: the codes and their frequencies, innermost first.
    ordinary, ordinary_counts: the other values, those nearest to the codes first.
    """
    gap, extent, step = _distances(codes, ordinary)
    if gap <= _STEPS * step:
        return False
    if gap >= _FAR_RATIO * extent:
        return True
    if int(counts.max()) < 2:
        return False
    if codes[0] < 0 <= ordinary.min():
        return True
    if abs(codes[0]) < _LEAST_LONG_CODE:  # it may be just the next number
        return gap >= _APART_RATIO * extent
    is_apart = gap >= _FEW_STEPS * step and gap >= _LONG_CODE_RATIO * extent
    return is_apart or _is_spike(counts, ordinary_counts)


def _lone_value_stands_apart(
    codes: FloatArray, counts: IntArray, ordinary: FloatArray, ordinary_counts: IntArray
) -> bool:
    if len(ordinary) < _N_NEAREST or int(counts[0]) < _SPIKE:
        return False
    if counts[0] > _MOST_SHARE * (counts[0] + ordinary_counts.sum()):
        return False
    gap, extent, step = _distances(codes, ordinary)
    if codes[0] != 0:
        return gap > extent
    is_apart = gap >= _ZERO_RATIO * extent and gap >= _MANY_STEPS * step
    return is_apart and _is_spike(counts, ordinary_counts)


def _distances(codes: FloatArray, ordinary: FloatArray) -> tuple[float, float, float]:
    """Return the gap before the codes, and range and median step of other values."""
    gap, extent = abs(codes[0] - ordinary[0]), abs(ordinary[0] - ordinary[-1])
    return float(gap), float(extent), float(np.median(np.abs(np.diff(ordinary))))


def _is_spike(counts: IntArray, ordinary_counts: IntArray) -> bool:
    nearest = int(ordinary_counts[:_N_NEAREST].max())
    return int(counts.max()) >= _SPIKE * max(1, nearest)


_MOST_ROWS: Final = 50_000
_MOST_CELLS: Final = 10_000_000
_MAX_SHOWN: Final = 10


def find_codes(columns: Sequence[Column], spool: Spool) -> tuple[list[str], list[str]]:
    """Describe values that may mean 'missing', and warn about columns of codes.

    Of a large table only evenly spaced rows are examined, but all rows are counted.

    Returns sentences that quote outliers, and at most one warning, which quotes none.
    """
    max_rows = min(_MOST_ROWS, max(1, _MOST_CELLS // max(1, spool.width)))
    step = max(1, -(-spool.n_rows // max_rows))
    sample = spool.take(np.arange(0, spool.n_rows, step))
    sentences = [
        _describe_lone(columns[index], value, count)
        for index, value, count in _find_lone_values(columns, spool, sample)
    ]
    if n_more := len(sentences[_MAX_SHOWN:]):
        more = f"{n_more} more values are far from all others."
        sentences = [*sentences[:_MAX_SHOWN], more]
    warnings = []
    if coded := list(_find_coded_columns(columns, sample)):
        more = f" and {len(coded) - _MAX_SHOWN} more" * (len(coded) > _MAX_SHOWN)
        warnings.append(
            "Whole numbers with few distinct values, perhaps codes of categories: "
            f"{', '.join(coded[:_MAX_SHOWN])}{more}. Describe them in a dictionary."
        )
    return sentences, warnings


def _find_lone_values(
    columns: Sequence[Column], spool: Spool, sample: FloatArray
) -> list[tuple[int, LoneValue, int]]:
    lone = [
        (index, value)
        for index, column in enumerate(columns)
        if (column.is_numeric or column.is_date)
        for value in lone_values(sample[:, index], DATES if column.is_date else CODES)
    ]
    counts = [value.count for _, value in lone]
    if lone and len(sample) < spool.n_rows:
        counts = [0] * len(lone)
        for X in spool.batches():
            for i, (index, value) in enumerate(lone):
                counts[i] += int((X[:, index] == value.value).sum())
    return [(*pair, count) for pair, count in zip(lone, counts, strict=True)]


def _describe_lone(column: Column, lone: LoneValue, count: int) -> str:
    def format_value(value: float) -> str:
        return as_date(value) if column.is_date else f"{value:.15g}"

    value, rows = format_value(lone.value), "1 row" if count == 1 else f"{count} rows"
    return (
        f"{column.name!r}: {value} in {rows}, apart from all others "
        f"({format_value(lone.minimum)} to {format_value(lone.maximum)})."
    )


def _find_coded_columns(columns: Sequence[Column], sample: FloatArray) -> Iterator[str]:
    """Yield the columns that contain few distinct whole numbers, and not only 0 and 1."""
    for index, column in enumerate(columns):
        if column.field is None and column.is_numeric:
            x = sample[:, index]
            x = x[~np.isin(x, [value.value for value in lone_values(x)])]
            values = np.unique(x[~np.isnan(x)])
            has_few = 2 <= len(values) <= MOST_VALUES and len(x) >= 2 * MOST_VALUES
            if has_few and (values == np.trunc(values)).all() and {*values} != {0, 1}:
                yield f"{column.name!r} ({len(values)} values)"


RUNNING_NUMBER: Final = "running-number"
LARGE_INTEGERS: Final = "large-integers"
TOTALS_ROW: Final = "totals-row"
SWITCHES: Final = (RUNNING_NUMBER, LARGE_INTEGERS, TOTALS_ROW, CELL_LINES, LARGE_FILE)
"""Guards that a party can switch off for a table with ``--allow``."""

_TRUTHS: Final = frozenset(
    {"class", "label", "target", "truth", "klasse", "cluster", "species"}
)
MOST_MAGNITUDE: Final = 1e150
"""The sum of squares of larger numbers might overflow float64."""
_MAX_INT: Final = 2.0**53
_LEAST_ROWS: Final = 10
_TOTAL: Final = (
    r"(?i)^\s*(?:total|totals|grand total|sum|summe|gesamt|insgesamt|somme|totaal|totale|suma"
    r"|mean|average|mittelwert|durchschnitt):*\s*$"
)


def check_switches(allow: Sequence[str]) -> frozenset[str]:
    """Return the guards to switch off. Raises InvalidParameters if one is unknown."""
    if unknown := sorted(set(allow) - set(SWITCHES)):
        raise InvalidParameters(
            f"No guard is called {unknown[0]!r}; there are {', '.join(SWITCHES)}."
        )
    return frozenset(allow)


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, maximum, sum and number of missing values of each column in a batch.

    low, high: NaN for a column without values.
    """

    low: FloatArray
    high: FloatArray
    sums: FloatArray
    missing: IntArray

    @classmethod
    def measure(cls, X: FloatArray) -> Spread:
        """Compute the spread of the rows X (n, n_columns)."""
        width = X.shape[1]
        missing = np.zeros(width, dtype=np.int64)
        if not len(X):
            empty = np.full(width, np.nan)
            return cls(empty, empty, np.zeros(width), missing)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = cls(X.min(axis=0), X.max(axis=0), X.sum(axis=0), missing)
            for index in np.flatnonzero(np.isnan(spread.sums)).tolist():
                present = X[~np.isnan(X[:, index]), index]
                missing[index] = len(X) - len(present)
                if len(present):
                    spread.low[index] = present.min()
                    spread.high[index] = present.max()
                spread.sums[index] = present.sum()
            return spread

    @property
    def magnitude(self) -> FloatArray:
        """The largest absolute value in each column."""
        largest: FloatArray = np.fmax(np.abs(self.low), np.abs(self.high))
        return largest


class NumberGuard:
    """Checks the numbers of a table, one batch of rows after the other.

    missing: int64 (n_columns,), number of missing values.
    low, high: float64 (n_columns,), range of the values; NaN for a column without any.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        width = len(columns)
        self.n_rows = 0
        self.missing = np.zeros(width, dtype=np.int64)
        self.low, self.high = np.full(width, np.nan), np.full(width, np.nan)
        self._sums = np.zeros(width)
        self._largest = np.zeros(width)  # largest absolute value above the last row
        self._last = np.full(width, np.nan)
        self._step = np.full(width, np.nan)
        self._running = np.array([c.is_numeric for c in columns], dtype=bool)
        self._rising = np.array([c.kind == "integer" for c in columns], dtype=bool)

    def add_batch(self, X: FloatArray, spread: Spread) -> None:
        """Examine the next rows X (n, n_columns) of the table and their spread."""
        if not len(X):
            return
        self._update_steps(X)
        before = Spread.measure(X[:-1]).magnitude
        last = np.abs(np.nan_to_num(self._last))
        self._largest = np.fmax(np.fmax(self._largest, last), before)
        self.low = np.fmin(self.low, spread.low)
        self.high = np.fmax(self.high, spread.high)
        self.missing += spread.missing
        with np.errstate(over="ignore", invalid="ignore"):
            self._sums += spread.sums
        self._last = X[-1].copy()
        self.n_rows += len(X)

    def _update_steps(self, X: FloatArray) -> None:
        candidates = np.flatnonzero(self._running | self._rising)
        if not candidates.size:
            return
        begin = self._last[candidates][None] if self.n_rows else X[:0, candidates]
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.diff(np.concatenate([begin, X[:, candidates]]), axis=0)
        if not len(steps):
            return
        has_no_step = np.isnan(self._step[candidates])
        self._step[candidates[has_no_step]] = steps[0, has_no_step]
        step = self._step[candidates]
        self._running[candidates] &= (steps == step).all(axis=0) & (step != 0)
        self._rising[candidates] &= (steps > 0).all(axis=0)

    @property
    def running_columns(self) -> list[str]:
        """The names of the columns that look like row numbers."""
        has_enough_rows = self.n_rows >= 2 * _LEAST_ROWS
        return [
            column.name
            for column, is_running in zip(self._columns, self._running, strict=True)
            if (has_enough_rows and is_running) or UNNAMED.fullmatch(column.name)
        ]

    @property
    def has_totals(self) -> bool:
        """Whether the last row looks like a row of totals.

        At least half of the row's values must be the sums of all values above them. At
        least two of these sums (or the only one) must also exceed each value above.
        """
        present = ~np.isnan(self._last)
        if self.n_rows < _LEAST_ROWS or not present.any():
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            sums_above = self._sums - np.nan_to_num(self._last)
            equal = np.isclose(self._last, sums_above, rtol=1e-9, atol=0)
        above = equal & (np.abs(self._last) > self._largest)
        n_needed = min(2, np.count_nonzero(present))
        return bool(equal[present].mean() >= 0.5 and above[present].sum() >= n_needed)

    @property
    def id_like_columns(self) -> frozenset[str]:
        """The names of the columns whose values may be ids: rising whole numbers."""
        rising = self._rising & (self.n_rows >= 2 * _LEAST_ROWS)
        pairs = zip(self._columns, rising, strict=True)
        return frozenset(
            [*self.running_columns, *(c.name for c, rises in pairs if rises)]
        )

    def warnings(self) -> list[str]:
        """Return warnings about constant, empty and id-like columns, and true classes."""
        sentences = []
        constant = (self.low == self.high) & (self.missing == 0)
        constant &= np.abs(self.low) <= _MAX_INT  # larger integers lose digits
        if zeros := self._quote_names(constant & (self.low == 0)):
            sentences.append(f"Only zeros: {zeros}. This does not distinguish rows.")
        if quoted := self._quote_names(constant & (self.low != 0)):
            sentences.append(
                f"One value in all rows: {quoted}. This does not distinguish rows."
            )
        all_read = all(column.is_described for column in self._columns)
        if self.n_rows > 1 and len(constant) and constant.all() and all_read:
            sentences.append("No column tells two rows apart: is this the right table?")
        if empty := self._quote_names(self.missing == self.n_rows):
            sentences.append(f"No value in any row: {empty}.")
        rising = self._rising & ~self._running & (self.n_rows >= 2 * _LEAST_ROWS)
        if quoted := self._quote_names(rising):
            sentences.append(f"Rising whole numbers, perhaps ids: {quoted}.")
        names = [column.name for column in self._columns]
        if truths := [name for name in names if name.casefold() in _TRUTHS]:
            classes = ", ".join(map(repr, truths))
            sentences.append(f"Perhaps true classes rather than data: {classes}.")
        return sentences

    def _quote_names(self, mask: Any) -> str:
        described = [column.is_described for column in self._columns]
        indices = np.flatnonzero(mask & np.array(described, dtype=bool))
        return ", ".join(repr(self._columns[index].name) for index in indices[:10])


def find_forbidden_numbers(
    columns: Sequence[Column],
    X: FloatArray,
    spread: Spread,
    allow: frozenset[str],
) -> list[tuple[int, int, str]]:
    """Return (row, column index, problem) for each number in X that must not be sent."""
    faults: list[tuple[int, int, str]] = []

    def report(index: int, is_faulty: Any, fault: str) -> None:
        faults.extend((int(row), index, fault) for row in np.flatnonzero(is_faulty))

    suspect = (spread.magnitude > _MAX_INT) | np.array(
        [column.field is not None for column in columns]
    )
    for index in np.flatnonzero(suspect).tolist():
        column, x = columns[index], X[:, index]
        report(index, np.isinf(x), "an infinite value")
        huge = np.isfinite(x) & (np.abs(x) > MOST_MAGNITUDE)
        report(index, huge, f"above {MOST_MAGNITUDE:g}: sums of such numbers overflow")
        if column.type == "integer" and LARGE_INTEGERS not in allow:
            large = (np.abs(x) > _MAX_INT) & (np.abs(x) <= MOST_MAGNITUDE)
            report(index, large, "a whole number that loses digits: an id?")
        if (field := column.field) is None:
            continue
        if field.constraints.required:
            report(index, np.isnan(x), "empty, and the dictionary requires a value")
        if column.type == "integer":
            report(index, np.isfinite(x) & (x != np.trunc(x)), "not a whole number")
        low, high = field.bounds
        report(index, x < low, "below the dictionary's minimum")
        report(index, x > high, "above the dictionary's maximum")
    return faults


def marks_totals(text: str) -> bool:
    """Return whether the text of a cell marks a row of totals."""
    return re.search(_TOTAL, text) is not None


def find_totals(texts: pa.Array) -> IntArray:
    """Return the indices of the texts that mark a row of totals, as int64."""
    is_total = compute.match_substring_regex(texts, _TOTAL)
    rows: IntArray = compute.indices_nonzero(is_total).to_numpy().astype(np.int64)
    return rows

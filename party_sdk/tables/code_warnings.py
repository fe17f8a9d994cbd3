"""What is said of codes among a table's numbers, with counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray
from party_sdk.tables.codes import (
    CODES,
    DATES,
    LoneValue,
    as_date,
    lone_values,
    n_coded,
)
from party_sdk.tables.columns import Column
from party_sdk.tables.spool import Spool

_MOST_ROWS: Final = 50_000
_MOST_CELLS: Final = 10_000_000
_MOST_TOLD: Final = 10


def code_warnings(
    columns: Sequence[Column], spool: Spool, dates: Mapping[str, FloatArray]
) -> Iterator[str]:
    """Yield sentences on values that may mean 'missing', and on columns of codes.

    Of a large table rows evenly spread over it are looked at; counts are of all rows.

    spool: the table's rows, with a column for each of these.
    dates: mapping of name to float64 (n_rows,); days since 1970-01-01 of columns of
        dates that no dictionary describes.
    """
    sample = _sample(spool)
    told = [
        _sentence(columns[place], value, count)
        for place, value, count in _lone(columns, spool, sample)
    ]
    told += [
        _sentence(Column(name, "date"), value, value.count)
        for name, days in dates.items()
        for value in lone_values(days, DATES)
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


def _sample(spool: Spool) -> FloatArray:
    """Return rows evenly spread over a table, all of a small one."""
    most = min(_MOST_ROWS, max(1, _MOST_CELLS // max(1, spool.width)))
    step = max(1, -(-spool.n_rows // most))
    return spool.take(np.arange(0, spool.n_rows, step))


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
    shown = as_date if column.kind == "date" or column.is_date else _as_number
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

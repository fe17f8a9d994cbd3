"""What a person reads of a record: its numbers as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MOST_ROWS: Final = 5
_MOST_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableTable:
    """A table of text; its first column names the rows."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[ReadableTable, ...]:
    """Return the first rows and columns of each array that is not empty."""
    return tuple(
        _table(name, array) for name, array in arrays.items() if array.size > 0
    )


def _table(name: str, array: NDArray[Any]) -> ReadableTable:
    whole = np.atleast_2d(array.T).T
    shown = whole[:_MOST_ROWS, :_MOST_COLUMNS]
    n_rows, n_columns = whole.shape
    size = f"{n_rows:,} × {n_columns:,}"
    cut = "" if whole.shape == shown.shape else f", of which {len(shown)} are shown"
    return ReadableTable(
        caption=f"{name}: {size} numbers{cut}",
        columns=("row", *(str(place + 1) for place in range(shown.shape[1]))),
        rows=[
            (str(place + 1), *(f"{value:.4g}" for value in row.tolist()))
            for place, row in enumerate(shown)
        ],
    )

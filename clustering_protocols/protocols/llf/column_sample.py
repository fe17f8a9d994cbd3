"""Which joint rows of split columns are measured to find a start, and in what groups."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.records.arrays import IntArray

MOST_ROWS: Final = 20_000
MOST_GROUPS: Final = 128
LEAST_ROWS: Final = 5
"""Of a group, and of a cluster to start from: no centre is a row."""
_MOST_WORDS: Final = 1 << 21


class Sample(NamedTuple):
    """How many joint rows are measured, and to the means of how many groups of them."""

    n_rows: int
    n_groups: int

    @property
    def groups(self) -> IntArray:
        """Return the group (n_rows,) of each row, by the place at which it travels."""
        return np.arange(self.n_rows, dtype=np.int64) % self.n_groups


def sample_of(n_rows: int, n_columns: int) -> Sample:
    """Return what is measured of a table: one group more than columns, if rows suffice."""
    rows = min(n_rows, MOST_ROWS)
    groups = max(2, min(n_columns + 1, rows // LEAST_ROWS, MOST_GROUPS))
    return Sample(min(rows, _MOST_WORDS // groups), groups)


def least_rows(n_rows: int, k: int) -> int:
    """Return how many rows each of k clusters has at least, to start from their means."""
    return max(1, min(LEAST_ROWS, n_rows // k))

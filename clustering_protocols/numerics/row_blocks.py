"""Blocks of rows, each loaded by the thread or process that works on it.

A block holds views of received arrays and computes its rows from them when it is loaded,
so that a pass over all rows takes memory for the current blocks alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from clustering_protocols.common.limits import fit_in_one_array
from clustering_protocols.records.arrays import FloatArray, IntArray

BLOCK_ITEMS: Final = 1 << 20
"""Approximate count of numbers in a loaded block."""


class RowBlock(Protocol):
    """Consecutive rows."""

    @property
    def first(self) -> int:
        """Return the number of the first row."""
        ...

    @property
    def n_rows(self) -> int:
        """Return how many rows there are."""
        ...

    def load(self) -> FloatArray:
        """Return the rows (n_rows, F), C-contiguous.

        A row has the same bits in whichever block it is loaded.
        """
        ...


class RowSubset(Protocol):
    """Rows that can be read by their numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of features."""
        ...

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) with these numbers (s,), which must fit into memory."""
        ...


class RowBlocks(RowSubset, Protocol):
    """Rows in blocks, which can be read any number of times."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in their order, a block at a time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayBlock:
    """Rows of an array.

    rows: float64 (n_rows, F); a view.
    """

    first: int
    rows: FloatArray = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return how many rows there are."""
        return len(self.rows)

    def load(self) -> FloatArray:
        """Return the rows."""
        return np.ascontiguousarray(self.rows, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """Rows in one array X (n, F)."""

    X: FloatArray = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of features."""
        n, n_features = self.X.shape
        return n, n_features

    def blocks(self) -> Iterator[ArrayBlock]:
        """Yield all rows in their order, a block at a time."""
        for rows in slices(self.shape[0], rows_of_a_block(self.shape[1])):
            yield ArrayBlock(first=rows.start, rows=self.X[rows])

    def take(self, numbers: IntArray) -> FloatArray:
        """Return some rows (s, F) by their numbers (s,)."""
        return np.ascontiguousarray(self.X[numbers], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideBySideBlock:
    """Rows whose features lie in several arrays.

    columns: tuple of float64 (n_rows, F_j); views.
    """

    first: int
    columns: tuple[FloatArray, ...] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return how many rows there are."""
        return len(self.columns[0])

    def load(self) -> FloatArray:
        """Return the rows."""
        return np.hstack(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class SideBySide:
    """Rows whose features lie in several arrays (n, F_j), one beside the other."""

    columns: tuple[FloatArray, ...] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of features."""
        return len(self.columns[0]), sum(array.shape[1] for array in self.columns)

    def blocks(self) -> Iterator[SideBySideBlock]:
        """Yield all rows in their order, a block at a time."""
        for rows in slices(self.shape[0], rows_of_a_block(self.shape[1])):
            parts = tuple(array[rows] for array in self.columns)
            yield SideBySideBlock(first=rows.start, columns=parts)

    def take(self, numbers: IntArray) -> FloatArray:
        """Return some rows (s, F) by their numbers (s,)."""
        return np.hstack([array[numbers] for array in self.columns])


def of(rows: FloatArray | RowBlocks) -> RowBlocks:
    """Return rows in blocks; an array (n, F) is wrapped."""
    return ArrayRows(rows) if isinstance(rows, np.ndarray) else rows


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` out of n items."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def rows_of_a_block(n_features: int) -> int:
    """Return the number of rows of a block: at least one."""
    return max(BLOCK_ITEMS // n_features, 1)


def span(block: RowBlock) -> slice:
    """Return the slice of a block among all rows."""
    return slice(block.first, block.first + block.n_rows)


def whole(rows: RowBlocks) -> FloatArray:
    """Return all rows (n, F) in one array, which must fit into memory."""
    if isinstance(rows, ArrayRows):
        return rows.X
    X = np.empty(rows.shape)
    for block in rows.blocks():
        X[span(block)] = block.load()
    return X


def load_if_small(rows: RowBlocks) -> RowBlocks:
    """Return rows, bit for bit, in one array if they are few enough for k-means++."""
    return ArrayRows(whole(rows)) if fit_in_one_array(*rows.shape) else rows

"""Blocks of rows that are loaded only by the thread or process that works on them.

A block holds views of received arrays and computes its rows from them when it is
loaded, so a pass over all rows needs memory only for the blocks in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from clustering_protocols.common.limits import fits_in_one_array
from clustering_protocols.records.arrays import FloatArray, IntArray

BLOCK_ITEMS: Final = 1 << 20
"""The approximate number of values in a loaded block."""


class RowBlock(Protocol):
    """A block of consecutive rows."""

    @property
    def first(self) -> int:
        """Return the index of the first row."""
        ...

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        ...

    def load(self) -> FloatArray:
        """Return the rows as a C-contiguous array of shape (n_rows, F).

        A row has the same bits, whichever block it is loaded with.
        """
        ...


class RowSubset(Protocol):
    """Rows that can be read by their indices."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""
        ...

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) at these indices (s,), which must fit into memory."""
        ...


class RowBlocks(RowSubset, Protocol):
    """Rows that are divided into blocks and can be read repeatedly."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in order, one block at a time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayBlock:
    """A block of rows of an array.

    rows: float64 (n_rows, F); a view.
    """

    first: int
    rows: FloatArray = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def load(self) -> FloatArray:
        """Return the rows as a contiguous float64 array."""
        return np.ascontiguousarray(self.rows, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """Rows that are stored in one array X (n, F)."""

    X: FloatArray = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""
        n, n_features = self.X.shape
        return n, n_features

    def blocks(self) -> Iterator[ArrayBlock]:
        """Yield all rows in order, one block at a time."""
        for rows in iterate_slices(self.shape[0], rows_per_block(self.shape[1])):
            yield ArrayBlock(first=rows.start, rows=self.X[rows])

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) with these indices (s,)."""
        return np.ascontiguousarray(self.X[numbers], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideBySideBlock:
    """A block of rows whose features are stored in several arrays.

    columns: tuple of float64 (n_rows, F_j); views.
    """

    first: int
    columns: tuple[FloatArray, ...] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.columns[0])

    def load(self) -> FloatArray:
        """Return the rows with the features of all arrays."""
        return np.hstack(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class SideBySide:
    """Rows whose features are stored in several arrays (n, F_j)."""

    columns: tuple[FloatArray, ...] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""
        return len(self.columns[0]), sum(array.shape[1] for array in self.columns)

    def blocks(self) -> Iterator[SideBySideBlock]:
        """Yield all rows in order, one block at a time."""
        for rows in iterate_slices(self.shape[0], rows_per_block(self.shape[1])):
            parts = tuple(array[rows] for array in self.columns)
            yield SideBySideBlock(first=rows.start, columns=parts)

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) with these indices (s,)."""
        return np.hstack([array[numbers] for array in self.columns])


def as_row_blocks(rows: FloatArray | RowBlocks) -> RowBlocks:
    """Return rows as blocks; an array (n, F) is wrapped in :class:`ArrayRows`."""
    return ArrayRows(rows) if isinstance(rows, np.ndarray) else rows


def iterate_slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices that divide n items into parts of at most ``size`` items."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def rows_per_block(n_features: int) -> int:
    """Return the number of rows in a block, which is at least one."""
    return max(BLOCK_ITEMS // n_features, 1)


def rows_of_block(block: RowBlock) -> slice:
    """Return the slice of all rows that a block covers."""
    return slice(block.first, block.first + block.n_rows)


def load_all_rows(rows: RowBlocks) -> FloatArray:
    """Load all rows into one array (n, F), which must fit into memory."""
    if isinstance(rows, ArrayRows):
        return rows.X
    X = np.empty(rows.shape)
    for block in rows.blocks():
        X[rows_of_block(block)] = block.load()
    return X


def load_if_small(rows: RowBlocks) -> RowBlocks:
    """Load rows into one array if k-means++ would, or return them unchanged."""
    return ArrayRows(load_all_rows(rows)) if fits_in_one_array(*rows.shape) else rows

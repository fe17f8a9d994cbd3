"""Blocks of rows that are loaded only by the thread or process that works on them.

A block holds views of received arrays and computes its rows from them when it is
loaded, so a pass over all rows needs memory only for the blocks in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

BLOCK_ITEMS: Final = 1 << 20
"""The approximate number of values in a loaded block."""


class RowSubset(Protocol):
    """Rows that can be read by their indices."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""
        ...

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) at these indices (s,), which must fit into memory."""
        ...


class RowBlocks(ABC):
    """Rows that are divided into blocks and can be read repeatedly.

    A row has the same bits, whether it is loaded with all rows, in a block, or alone.
    Subclasses are dataclasses: the analyst's service replaces arrays in their fields by
    references to stored uploads, so that no row is sent to another process.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""

    @abstractmethod
    def part(self, rows: slice) -> RowBlocks:
        """Return some consecutive rows without copying them."""

    @abstractmethod
    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) at these indices (s,), which must fit into memory."""

    @abstractmethod
    def load(self) -> FloatArray:
        """Return all rows as a C-contiguous array (n, F), which must fit into memory."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in order, one block at a time."""
        n, n_features = self.shape
        for rows in iterate_slices(n, rows_per_block(n_features)):
            yield RowBlock(span=rows, rows=self.part(rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBlock:
    """A block of consecutive rows.

    span: the indices of these rows among all rows.
    """

    span: slice
    rows: RowBlocks = field(repr=False)

    def load(self) -> FloatArray:
        """Return the rows as a C-contiguous array (n, F)."""
        return self.rows.load()


@dataclass(frozen=True, init=False, eq=False)
class ArrayRows(RowBlocks):
    """Rows in one array (n, F), or in several arrays (n, F_j) side by side."""

    arrays: tuple[FloatArray, ...] = field(repr=False)

    def __init__(self, *arrays: FloatArray) -> None:
        object.__setattr__(self, "arrays", arrays)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of features."""
        return len(self.arrays[0]), sum(array.shape[1] for array in self.arrays)

    def part(self, rows: slice | IntArray) -> ArrayRows:
        """Return some of the rows; a slice of rows is not copied."""
        return ArrayRows(*(array[rows] for array in self.arrays))

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) with these indices (s,)."""
        return self.part(numbers).load()

    def load(self) -> FloatArray:
        """Return the rows, without a copy if one contiguous array holds them."""
        if len(self.arrays) == 1:
            return np.ascontiguousarray(self.arrays[0], dtype=np.float64)
        return np.hstack(self.arrays)


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

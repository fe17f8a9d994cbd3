"""Representatives of groups of rows, which make spectral clustering of many rows feasible.

Some rows are drawn uniformly, every row joins the group of the nearest drawn row, and
the mean of a group represents its rows. This takes one pass over the rows, a block at a
time. The method is KASP (D. Yan, L. Huang, M. I. Jordan, "Fast approximate spectral
clustering", 2009) with one update of k-means, which makes the representatives less
random than drawn rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks, RowSubset
from clustering_protocols.records.arrays import FloatArray, IntArray

from .kmeans import Clustering
from .lloyd import ScaledRows, Units, nearest_centroids
from .row_kernels import add_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Representatives:
    """Groups of rows, each represented by its mean.

    drawn: int64 (m,); the indices of the drawn rows, in ascending order.
    V: float64 (m, F); the mean of each group, or the drawn row if the group is empty.
    nearest: int32 (n,); the number of each row's group, or the lowest one if several
        drawn rows are equally near.
    """

    drawn: IntArray = field(repr=False)
    V: FloatArray = field(repr=False)
    nearest: NDArray[np.int32] = field(repr=False)

    @classmethod
    def draw(
        cls,
        blocks: RowBlocks,
        limit: int,
        rng: np.random.Generator,
        engine: Engine = ONE_THREAD,
    ) -> Representatives:
        """Draw at most ``limit`` rows and assign every row to the nearest of them.

        The drawn rows, a few blocks and four bytes per row are held in memory. The
        result has the same bits with any engine and any division into blocks.
        """
        n = blocks.shape[0]
        numbers = np.sort(rng.choice(n, min(limit, n), replace=False, shuffle=False))
        rows = ScaledRows.scale(blocks, engine, len(numbers))
        V = rows.take(numbers)
        nearest = np.empty(n, np.int32)
        total, sizes = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
        kernel = partial(_assign_block, rows.units, V)
        for span, labels, sums, counts in rows.engine.map(kernel, rows.source.blocks()):
            nearest[span] = labels
            total += sums
            sizes += counts
        nonempty = sizes > 0  # a drawn row that equals an earlier one attracts no rows
        V[nonempty] = total[nonempty] / sizes[nonempty, np.newaxis] / rows.units.of_sums
        return cls(drawn=numbers, V=V + rows.units.offset, nearest=nearest)

    def expand_clustering(self, clustering: Clustering) -> Clustering:
        """Convert a clustering of the groups into a clustering of all rows."""
        return replace(
            clustering,
            labels=clustering.labels[self.nearest],
            starts=self.drawn[clustering.starts],
        )


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedRows:
    """The row of each group, repeated for every member of the group."""

    rows: RowSubset = field(repr=False)
    nearest: NDArray[np.int32] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the number of features."""
        return len(self.nearest), self.rows.shape[1]

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, width) with these indices (s,)."""
        return self.rows.take(self.nearest[numbers].astype(np.int64))


def _assign_block(
    units: Units, V: FloatArray, block: RowBlock
) -> tuple[slice, NDArray[np.int32], IntArray, IntArray]:
    """Return a block's slice, its rows' labels, and sums and counts of rows by label."""
    X, ones = block.load(), np.ones(V.shape[1])
    labels = nearest_centroids(units, V, X).labels
    sums, counts = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
    add_rows(X, labels, units.offset, ones, units.of_sums, sums, counts)
    return block.span, labels.astype(np.int32), sums, counts

"""Parts of a graph of neighbours, where there are more of them than clusters.

Rows of different parts share no edge, so that the graph does not say which parts belong
together; distances do. The smallest part joins the part that lies nearest to it, until
there are no more than asked for. The smallest, because it is most likely a clique that
formed by chance, and because far outliers would keep clusters of their own if the parts
that lie nearest to each other went first (decision record 50).
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray

from .neighbors import Neighbors


def join(part: IntArray, most: int, neighbors: Neighbors) -> IntArray:
    """Return part numbers (n,) below so many, from those of components (n,).

    No part is cut. Of parts of one size that joins first which lies nearest to another;
    the order of rows decides only where distances are equal, too.
    """
    parts = _Parts(part, neighbors)
    while parts.count > most:
        parts.join_smallest()
    _, renumbered = np.unique(parts.part, return_inverse=True)
    return renumbered


class _Parts:
    """The parts, their sizes, and of those that were searched for what lies nearest."""

    def __init__(self, part: IntArray, neighbors: Neighbors) -> None:
        self.part = part.copy()
        self.neighbors = neighbors
        self.sizes = np.bincount(part).astype(np.float64)  # inf: it has joined another
        self.count = len(self.sizes)
        self.rows: IntArray = np.full(self.count, -1)  # -1: not searched for
        self.distances: FloatArray = np.full(self.count, np.inf)

    def join_smallest(self) -> None:
        smallest = np.flatnonzero(self.sizes == self.sizes.min())
        for number in smallest[self.rows[smallest] < 0]:
            found = self.neighbors.outside(self.part == number)
            self.rows[number], self.distances[number] = found
        joining = smallest[self.distances[smallest].argmin()]
        joined = self.part[self.rows[joining]]
        self.part[self.part == joining] = joined
        self.sizes[joined] += self.sizes[joining]
        self.sizes[joining] = np.inf
        self.rows[joined] = -1  # what lay nearest may now be inside
        self.count -= 1

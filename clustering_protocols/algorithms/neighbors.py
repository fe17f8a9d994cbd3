"""Nearest neighbours of rows, computed from their coordinates or from their distances.

Spectral clustering uses the interface :class:`Neighbors`, so that it also works if only
the distances between rows are known.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray

from . import condensed_distances

_TREE_WIDTH: Final = 20  # in more columns, a tree query visits nearly every row
_TREE_ROWS: Final = 500  # a tree query for more rows would return too many pairs


class ClosestPair(NamedTuple):
    """A row inside a set and the row outside it that is closest, with their distance."""

    inside: int
    row: int
    distance: float


class Neighbors(Protocol):
    """Finds nearest neighbours among n rows."""

    def nearest_rows(self, count: int) -> IntArray:
        """Return the indices (n, count) of each row's nearest rows, itself included."""

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside the mask (n,) and a row outside it."""


class RowNeighbors:
    """Finds neighbours among rows X (n, width), with a k-d tree if X has few columns."""

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        self.tree = cKDTree(X) if X.shape[1] <= _TREE_WIDTH else None

    def nearest_rows(self, count: int) -> IntArray:
        """Return the indices (n, count) of each row's nearest rows, itself included."""
        if self.tree is not None:
            _, nearest = self.tree.query(self.X, count, workers=-1)
            return np.reshape(nearest, (-1, count))
        search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(self.X)
        neighbors: IntArray = search.kneighbors(self.X, return_distance=False)
        return neighbors

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside the mask (n,) and a row outside it."""
        rows = np.flatnonzero(inside)
        if self.tree is not None and len(rows) <= _TREE_ROWS:
            # at least one of len(rows) + 1 neighbours must lie outside
            distances, numbers = self.tree.query(self.X[rows], len(rows) + 1)
            distances = np.where(inside[numbers], np.inf, distances)
            first, column = np.unravel_index(distances.argmin(), distances.shape)
            row, distance = numbers[first, column], distances[first, column]
        else:
            numbers, distances = pairwise_distances_argmin_min(
                self._centre_rows(inside), self._centre_rows(~inside)
            )
            first = distances.argmin()
            row, distance = np.flatnonzero(~inside)[numbers[first]], distances[first]
        return ClosestPair(int(rows[first]), int(row), float(distance))

    def _centre_rows(self, mask: MaskArray) -> FloatArray:
        # the square of a large mean would swamp the digits of distances
        rows: FloatArray = self.X[mask]
        rows -= self.X.mean(axis=0)
        return rows


class DistanceNeighbors:
    """Finds neighbours among n rows, given their condensed distances."""

    def __init__(self, distances: FloatArray) -> None:
        self.distances = distances

    def nearest_rows(self, count: int) -> IntArray:
        """Return the indices (n, count) of the rows nearest to each row, itself first."""
        rows, _ = condensed_distances.nearest_rows(self.distances, count)
        return rows

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside the mask (n,) and a row outside it."""
        return ClosestPair(*condensed_distances.closest_outside(self.distances, inside))

"""Nearest neighbours of rows, from their coordinates or from their distances.

Graphs of neighbours are built and joined through one interface, so that the same
clustering runs if only distances are known.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray

from . import condensed_distances

_TREE_WIDTH: Final = 20  # with more columns a tree visits nearly every row
_TREE_ROWS: Final = 500  # a tree query for more rows would list too many pairs


class ClosestPair(NamedTuple):
    """The closest pair of a row inside a set and a row outside, and its distance."""

    inside: int
    row: int
    distance: float


class Neighbors(Protocol):
    """Finds the nearest among n rows."""

    def nearest_rows(self, count: int) -> IntArray:
        """Return row numbers (n, count) of each row's nearest rows, itself included."""

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside a mask (n,) and one outside."""


class RowNeighbors:
    """Neighbours among rows X (n, width), by a tree if there are few columns."""

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        self.tree = cKDTree(X) if X.shape[1] <= _TREE_WIDTH else None

    def nearest_rows(self, count: int) -> IntArray:
        """Return row numbers (n, count) of each row's nearest rows, itself included."""
        if self.tree is not None:
            _, nearest = self.tree.query(self.X, count, workers=-1)
            return np.reshape(nearest, (-1, count))
        search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(self.X)
        neighbors: IntArray = search.kneighbors(self.X, return_distance=False)
        return neighbors

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside a mask (n,) and one outside."""
        rows = np.flatnonzero(inside)
        if self.tree is not None and len(rows) <= _TREE_ROWS:
            # at least one of len(rows) + 1 neighbours lies outside
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
        """Return some rows less the mean of all, whose square would swamp distances."""
        rows: FloatArray = self.X[mask]
        rows -= self.X.mean(axis=0)
        return rows


class DistanceNeighbors:
    """Neighbours among rows whose condensed distances (n (n - 1) / 2,) are known."""

    def __init__(self, distances: FloatArray) -> None:
        self.distances = distances

    def nearest_rows(self, count: int) -> IntArray:
        """Return row numbers (n, count) of each row's nearest rows, itself included."""
        rows, _ = condensed_distances.nearest_rows(self.distances, count)
        return rows

    def closest_outside(self, inside: MaskArray) -> ClosestPair:
        """Return the closest pair of a row inside a mask (n,) and one outside."""
        return ClosestPair(*condensed_distances.closest_outside(self.distances, inside))

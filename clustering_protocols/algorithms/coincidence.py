"""Treat centroids and memberships as equal if they differ only by rounding errors.

In exact arithmetic, fuzzy c-means moves coinciding centroids identically, so they
coincide forever. Rounding errors separate such centroids, and updates may amplify the
difference, until the centroid nearest to a row depends on the machine. Two rules give
the same result everywhere, on split and on pooled data: coinciding centroids are made
equal in all bits, and a row is assigned to the lowest-numbered of several equal
centroids.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

COINCIDENCE: Final = 1e-11
"""Coordinates that differ by no more than this, in units of the feature, are equal.

The value is a thousand times the rounding error of a mean in one update, and far below
the precision at which anybody reads a result.
"""


def equalise_coordinates(V: FloatArray, unit: FloatArray) -> FloatArray:
    """Return a copy of the centroids in which coinciding coordinates are exactly equal.

    In each feature, coordinates that are at most ``COINCIDENCE`` units apart when
    sorted form a run, and every coordinate of a run takes the value of its
    lowest-numbered cluster. Features are handled independently of each other.

    V: float64 (k, m); the centroids.
    unit: float64 (m,); the scale of each feature: its spread, or its declared extent.
    """
    features = np.arange(V.shape[1])
    order = np.argsort(V, axis=0, kind="stable")
    ordered = np.take_along_axis(V, order, axis=0)
    apart = np.diff(ordered, axis=0, prepend=ordered[:1]) > COINCIDENCE * unit
    runs = np.cumsum(apart, axis=0)
    lowest = np.full(V.shape, len(V))
    np.minimum.at(lowest, (runs, features), order)
    equal = np.empty_like(V)
    equal[order, features] = V[lowest[runs, features], features]
    return equal


def count_coinciding_centroids(V: FloatArray) -> int:
    """Return how many centroids (k, m) equal a lower-numbered centroid in all bits.

    The coordinates must have been equalised by :func:`equalise_coordinates`.
    """
    return len(V) - len(np.unique(V, axis=0))


def strongest_clusters(degrees: FloatArray, tie: float) -> IntArray:
    """Return the number (n,) of the cluster to which each row belongs most strongly.

    A row that belongs equally to several clusters gets the lowest of their numbers.

    degrees: float64 (n, k); degrees of membership, none of them negative.
    tie: degrees count as equal if they differ by at most this fraction of the larger
        one, because rounding alone may cause such a difference.
    """
    largest = degrees.max(axis=1, keepdims=True)
    labels: IntArray = (degrees >= largest * (1 - tie)).argmax(axis=1)
    return labels


def count_coinciding_clusters(degrees: FloatArray, tie: float) -> int:
    """Return how many clusters have the same degrees as a lower-numbered one in all rows.

    degrees, tie: as for :func:`strongest_clusters`.
    """
    distinct: list[FloatArray] = []
    for column in degrees.T:
        if not any(
            (np.abs(column - earlier) <= tie * np.maximum(column, earlier)).all()
            for earlier in distinct
        ):
            distinct.append(column)
    return int(degrees.shape[1]) - len(distinct)

"""Treat centroids and degrees as equal if only rounding separates them.

In exact arithmetic, fuzzy c-means moves coinciding centroids identically, so that they
coincide for ever. Rounding separates them, and updates may multiply the difference: which
of them is nearest to a row then depends on the machine. Two rules make the result the
same everywhere, on split and on pooled data: centroids that coincide are made equal in
all bits, and a row goes to the lowest-numbered of equal ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

COINCIDENCE: Final = 1e-11
"""Coordinates that differ by no more than this, in units of the feature, are equal.

This is a thousand times the rounding of a mean in one update, and far below the precision
to which anybody reads a result.
"""


def equalise_coordinates(V: FloatArray, unit: FloatArray) -> FloatArray:
    """Return the centroids, with coinciding coordinates made equal in all bits.

    In each feature, sorted coordinates whose gaps are at most ``COINCIDENCE`` units form
    a run, and all coordinates of a run become that of its lowest cluster. Features are
    handled separately, so the outcome does not depend on which party holds which.

    V: float64 (k, m).
    unit: float64 (m,); the scale of differences in each feature: its spread, or its
        declared extent.
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
    """Count centroids (k, m) that equal a lower-numbered one in all bits.

    Call :func:`equalise_coordinates` first.
    """
    return len(V) - len(np.unique(V, axis=0))


def strongest_clusters(degrees: FloatArray, tie: float) -> IntArray:
    """Return the cluster (n,) of each row's largest degree; ties go to the lowest.

    degrees: float64 (n, k); none below 0.
    tie: degrees that differ by at most this share of the larger count as equal, because
        rounding alone may separate them.
    """
    largest = degrees.max(axis=1, keepdims=True)
    labels: IntArray = (degrees >= largest * (1 - tie)).argmax(axis=1)
    return labels


def count_coinciding_clusters(degrees: FloatArray, tie: float) -> int:
    """Count clusters whose degrees equal those of a lower-numbered cluster in every row.

    degrees, tie: as for :func:`strongest`.
    """
    distinct: list[FloatArray] = []
    for column in degrees.T:
        if not any(
            (np.abs(column - earlier) <= tie * np.maximum(column, earlier)).all()
            for earlier in distinct
        ):
            distinct.append(column)
    return int(degrees.shape[1]) - len(distinct)

"""Classical scaling: compute coordinates of rows from the distances between them.

W. S. Torgerson, "Multidimensional scaling", 1952. The Gram matrix of points in d
dimensions has rank d, so its pivoted Cholesky factor has d columns, which are computed
from d + 1 rows of distances. No n × n matrix is ever computed.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.condensed_distances import count_rows, read_row
from clustering_protocols.records.arrays import FloatArray

_ROUNDING = 1e-13  # rounding error as a fraction of the largest squared distance


def classical_scaling(squared: FloatArray, n_dimensions: int) -> FloatArray:
    """Return centred coordinates (n, width) along the principal axes of the points.

    The width is the number of dimensions that the points span, and at least one.

    squared: float64 (n (n - 1) / 2,); condensed squared distances of points in at most
        ``n_dimensions`` dimensions.
    """
    n = count_rows(squared)
    from_origin, row = np.empty(n), np.empty(n)
    read_row(squared, n, 0, from_origin)
    residual = from_origin.copy()  # squared distances from the span of all pivots
    scale = residual.max(initial=0.0)
    factor = np.zeros((n, min(n_dimensions, n - 1)))
    rank = 0
    while rank < factor.shape[1]:
        pivot = int(np.argmax(residual))
        if residual[pivot] <= _ROUNDING * scale:
            break
        read_row(squared, n, pivot, row)
        gram = (from_origin + from_origin[pivot] - row) / 2
        column = gram - factor[:, :rank] @ factor[pivot, :rank]
        column /= np.sqrt(residual[pivot])
        factor[:, rank] = column
        residual -= column * column
        residual[pivot] = 0.0
        rank += 1
    centred = factor[:, :rank] - factor[:, :rank].mean(axis=0)
    if not rank:
        return np.zeros((n, 1))
    _, axes = np.linalg.eigh(centred.T @ centred)
    rotated: FloatArray = centred @ axes[:, ::-1]
    return rotated

"""Distances in scipy's condensed form, which lists each pair i < j of n rows once.

The condensed form takes half the memory of a square matrix. The distances of a row to
earlier rows are not contiguous in this form, so all distances of the row are copied
into a buffer before they are read.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray


def count_rows(condensed: FloatArray) -> int:
    """Return the number n of rows that have these n (n - 1) / 2 condensed distances."""
    return (1 + isqrt(1 + 8 * len(condensed))) // 2


@in_c("row")
def read_row(condensed: FloatArray, n: int, i: int, row: FloatArray) -> None:
    """Copy the distances between row i and all n rows, itself included, into ``row``."""
    rows = np.arange(i)
    row[:i] = condensed[rows * n - rows * (rows + 1) // 2 - rows - 1 + i]
    row[i] = 0.0
    begin = i * n - i * (i + 1) // 2
    row[i + 1 :] = condensed[begin : begin + n - i - 1]


def nearest_rows(condensed: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return the indices and the distances (n, count) of the rows nearest to each row.

    Each row is listed as its own nearest row. Ties are ordered by row index.
    """
    n = count_rows(condensed)
    rows: IntArray = np.empty((n, count), dtype=np.int64)
    distances = np.empty((n, count))
    _fill_nearest(condensed, n, rows, distances)
    return rows, distances


@in_c("rows", "distances")
def _fill_nearest(
    condensed: FloatArray, n: int, rows: IntArray, distances: FloatArray
) -> None:
    row = np.empty(n)
    for i in range(n):
        read_row(condensed, n, i, row)
        row[i] = -1.0
        rows[i] = np.argsort(row, kind="stable")[: rows.shape[1]]
        row[i] = 0.0
        distances[i] = row[rows[i]]


def closest_outside(condensed: FloatArray, inside: MaskArray) -> tuple[int, int, float]:
    """Return the closest pair of a row inside a set and a row outside, and their distance.

    Of several equally close pairs, the one whose row inside has the lowest index is
    returned, and among these the one whose row outside has the lowest index.

    inside: bool (n,); marks the rows in the set.
    """
    pair: IntArray = np.full(2, -1, dtype=np.int64)
    distance = _find_outside(condensed, inside, pair)
    return int(pair[0]), int(pair[1]), distance


@in_c("pair")
def _find_outside(condensed: FloatArray, inside: MaskArray, pair: IntArray) -> float:
    row, smallest = np.empty(len(inside)), np.inf
    for i in np.flatnonzero(inside).tolist():
        read_row(condensed, len(inside), i, row)
        row[inside] = np.inf
        if row.min() < smallest:
            pair[:] = i, row.argmin()
            smallest = float(row.min())
    return smallest

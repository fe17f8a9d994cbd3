"""Condensed distances: the pairs i < j of n rows, row by row, as scipy's ``pdist``.

Half the bytes of a square. A row's distances to earlier rows lie scattered, and are
gathered one row at a time.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from clustering_protocols.numerics.compilation import compile_kernel, inline_helper
from clustering_protocols.records.arrays import FloatArray, IntArray, MaskArray


def n_rows(condensed: FloatArray) -> int:
    """Return n of n (n - 1) / 2 distances."""
    return (1 + isqrt(1 + 8 * len(condensed))) // 2


@inline_helper
def place(n: int, i: int, j: int) -> int:
    """Return the index of the pair i < j."""
    return i * n - i * (i + 1) // 2 - i - 1 + j


@compile_kernel
def read_row(condensed: FloatArray, n: int, i: int, row: FloatArray) -> None:
    """Fill ``row`` (n,) with the distances of row i; 0 to itself."""
    at = i - 1
    for j in range(i):
        row[j] = condensed[at]
        at += n - j - 2
    row[i] = 0.0
    begin = place(n, i, i + 1)
    for j in range(i + 1, n):
        row[j] = condensed[begin + j - i - 1]


def square(condensed: FloatArray) -> FloatArray:
    """Return the n × n matrix."""
    n = n_rows(condensed)
    full = np.empty((n, n))
    _fill_square(condensed, full)
    return full


@compile_kernel
def _fill_square(condensed: FloatArray, full: FloatArray) -> None:
    n = len(full)
    at = 0
    for i in range(n):
        full[i, i] = 0.0
        for j in range(i + 1, n):
            full[i, j] = full[j, i] = condensed[at]
            at += 1


def nearest(condensed: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return row numbers and distances (n, count) of each row's nearest rows.

    A row comes first among its own; equal distances go to the lower number.
    """
    n = n_rows(condensed)
    rows: IntArray = np.empty((n, count), dtype=np.int64)
    distances = np.empty((n, count))
    _fill_nearest(condensed, n, rows, distances)
    return rows, distances


@compile_kernel
def _fill_nearest(
    condensed: FloatArray, n: int, rows: IntArray, distances: FloatArray
) -> None:
    count = rows.shape[1]
    buffer = np.empty(n)
    for i in range(n):
        read_row(condensed, n, i, buffer)
        buffer[i] = -1.0
        best, away = rows[i], distances[i]
        held = 0
        for j in range(n):
            value = buffer[j]
            if held == count and value >= away[count - 1]:
                continue
            at = held if held < count else count - 1
            held = min(held + 1, count)
            while at > 0 and away[at - 1] > value:
                away[at], best[at] = away[at - 1], best[at - 1]
                at -= 1
            away[at], best[at] = value, j
        away[0] = 0.0


@compile_kernel
def nearest_outside(condensed: FloatArray, inside: MaskArray) -> tuple[int, int, float]:
    """Return rows inside and outside of a mask (n,) that lie nearest, and how far.

    Of equal distances those of the lowest row inside count, then the lowest outside.
    """
    n = len(inside)
    buffer = np.empty(n)
    first, second, least = -1, -1, np.inf
    for i in range(n):
        if not inside[i]:
            continue
        read_row(condensed, n, i, buffer)
        for j in range(n):
            if not inside[j] and buffer[j] < least:
                first, second, least = i, j, buffer[j]
    return first, second, least

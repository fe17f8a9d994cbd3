"""Squared distances between rows of residues, condensed: pairs i < j, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.compilation import compile_kernel, inline_helper
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.field import fold, reduce_word, squares

from .limits import n_pairs

_ROWS: Final = 16  # a tile of 16 × 256 sums and four columns stay in the first cache
_COLUMNS: Final = 256
_GROUP: Final = 4  # features per pass; see `squares`
_PAIRS: Final = 1 << 21  # of a stripe, about: 16 MB


def field_distances(
    Z: WordArray, engine: Engine = ONE_THREAD, first: int | None = None
) -> WordArray:
    """Return Σ_f (Z_if - Z_i'f)² mod p for all pairs i < i', or those of the first rows.

    Z: uint64 (n, width); residues in [0, p).
    engine: works on stripes of rows with about as many pairs each.
    first: how many rows i may be; all unless it is given.

    Returns uint64 (n (n - 1) / 2,), with L = first (n L - L (L + 1) / 2,): in the order
        of :func:`scipy.spatial.distance.pdist`.
    """
    n, width = Z.shape
    last = n if first is None else first
    columns = np.zeros((-(-width // _GROUP) * _GROUP, n), dtype=np.uint64)
    columns[:width] = Z.T
    out: WordArray = np.empty(n_pairs(n) - n_pairs(n - last), dtype=np.uint64)
    begin = 0
    for part in engine.map(partial(_stripe, columns), _stripes(n, last)):
        out[begin : begin + len(part)] = part
        begin += len(part)
    return out


def _stripes(n: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield first and last row of each stripe: whole tiles, some million pairs."""
    top = 0
    while top < last:
        tiles = max(1, _PAIRS // (_ROWS * (n - top)))
        bottom = min(last, top + _ROWS * tiles)
        yield top, bottom
        top = bottom


def _stripe(columns: WordArray, rows: tuple[int, int]) -> WordArray:
    """Return the distances of pairs whose first row is in a stripe."""
    n, (top, bottom) = columns.shape[1], rows
    n_here = n_pairs(n - top) - n_pairs(n - bottom)
    out: WordArray = np.empty(n_here, dtype=np.uint64)
    _fill(columns, top, bottom, out)
    return out


@inline_helper
def _apart(x: np.uint64, y: np.uint64) -> np.uint64:
    return np.uint64(abs(np.int64(x) - np.int64(y)))


@compile_kernel
def _fill(columns: WordArray, first: int, last: int, out: WordArray) -> None:
    n = columns.shape[1]
    tile = np.empty((_ROWS, _COLUMNS), np.uint64)
    before = first * n - first * (first + 1) // 2
    for top in range(first, last, _ROWS):
        bottom = min(last, top + _ROWS)
        for left in range(top, n, _COLUMNS):
            right = min(n, left + _COLUMNS)
            _sum_tile(columns, top, bottom, left, right, tile)
            for i in range(top, bottom):
                begin = i * n - i * (i + 1) // 2 - i - 1 - before
                for j in range(max(left, i + 1), right):
                    out[begin + j] = reduce_word(tile[i - top, j - left])


@compile_kernel
def _sum_tile(
    columns: WordArray, top: int, bottom: int, left: int, right: int, tile: WordArray
) -> None:
    tile[:] = np.uint64(0)
    for f in range(0, columns.shape[0], _GROUP):
        a, b = columns[f, left:right], columns[f + 1, left:right]
        c, d = columns[f + 2, left:right], columns[f + 3, left:right]
        for i in range(top, bottom):
            sums = tile[i - top]
            ai, bi = columns[f, i], columns[f + 1, i]
            ci, di = columns[f + 2, i], columns[f + 3, i]
            for j in range(len(a)):
                sums[j] = fold(
                    sums[j]
                    + squares(
                        _apart(ai, a[j]),
                        _apart(bi, b[j]),
                        _apart(ci, c[j]),
                        _apart(di, d[j]),
                    )
                )

"""Squared distances between rows of residues, condensed: pairs i < j, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.field import LIMB, LOW_LIMB, add_limbs, reduce

from .maths import n_pairs

_ROWS: Final = 16  # of a tile in C
_GROUP: Final = 4  # features per pass in C
_PAIRS: Final = 1 << 21  # of a stripe, about: 16 MB


def field_distances(
    Z: WordArray, engine: Engine = ONE_THREAD, first: int | None = None
) -> WordArray:
    """Return Σ_f (Z_if - Z_i'f)² mod p of pairs i < i', all or of the first rows (eq. 4).

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
    _fill_distances(columns, top, bottom, out)
    return out


@in_c("out")
def _fill_distances(columns: WordArray, first: int, last: int, out: WordArray) -> None:
    begin = 0
    for i in range(first, last):
        row = out[begin : begin + columns.shape[1] - i - 1]
        row[:] = 0
        for column in columns:
            later = column[i + 1 :]
            apart = np.maximum(column[i], later) - np.minimum(column[i], later)
            a0, a1 = apart & LOW_LIMB, apart >> LIMB
            row[:] = add_limbs(row, a0 * a0, (a0 * a1) << np.uint64(1), a1 * a1)
        row[:] = reduce(row)
        begin += len(row)

"""Triangular factors of rows that come in blocks: R of QR, folded in their order.

R has the singular values and right singular vectors of the whole. A Gram matrix, which
would only have to be added up, squares the condition: of nearly dependent columns it
loses the rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.blocks import Engine

_LEAST_ROWS: Final = 4096


def qr_r(matrix: FloatArray) -> FloatArray:
    """Return the triangular factor alone."""
    factor: FloatArray = np.asarray(np.linalg.qr(matrix, mode="r"))
    return factor


def folded(factors: Iterable[FloatArray]) -> FloatArray:
    """Return R of rows whose blocks have these factors (r_b, m): at least one."""
    remaining = iter(factors)
    R = next(remaining)
    for factor in remaining:
        R = qr_r(np.vstack([R, factor]))
    return R


def side_by_side(columns: Sequence[FloatArray], engine: Engine) -> FloatArray:
    """Return R of arrays (r, m_i) side by side, a block of their rows at a time.

    No array of all their rows is formed. What a block gives depends on nothing but its
    rows, and how long blocks are on the width: the same bits on any engine.
    """
    width = sum(column.shape[1] for column in columns)

    def factor(rows: slice) -> FloatArray:
        return qr_r(np.hstack([column[rows] for column in columns]))

    return folded(engine.map(factor, _blocks(len(columns[0]), width)))


def _blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield blocks of many more rows than columns: a factor is as large as its columns."""
    size = max(_LEAST_ROWS, 4 * width)
    for begin in range(0, n_rows, size):
        yield slice(begin, begin + size)

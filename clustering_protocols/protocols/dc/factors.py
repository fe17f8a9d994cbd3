"""Triangular factors of rows that come in blocks: R of QR, folded in their order.

R has the singular values and right singular vectors of the whole. A Gram matrix, which
would only have to be added up, squares the condition: of nearly dependent columns it
loses the rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.records.arrays import FloatArray

_LEAST_ROWS: Final = 4096


def qr_r(matrix: FloatArray) -> FloatArray:
    """Return the triangular factor alone."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def fold_factors(factors: Iterable[FloatArray]) -> FloatArray:
    """Return R of rows whose blocks have these factors (r_b, m): at least one."""
    remaining = iter(factors)
    R = next(remaining)
    for factor in remaining:
        R = qr_r(np.vstack([R, factor]))
    return R


def factor_centred(
    columns: Sequence[FloatArray], means: Sequence[FloatArray], engine: Engine
) -> FloatArray:
    """Return R of arrays (r, m_i) less their means (m_i,), side by side.

    A block of their rows at a time: no array of all their rows is formed. What a block
    gives depends on nothing but its rows, and how long blocks are on the width: the same
    bits on any engine.
    """
    width = sum(column.shape[1] for column in columns)
    blocks = (
        tuple(column[rows] for column in columns)
        for rows in _slices(len(columns[0]), width)
    )
    return fold_factors(
        engine.map(partial(_factor_centred_block, tuple(means)), blocks)
    )


def factor_groups(
    groups: Sequence[Sequence[FloatArray]], ones: int, engine: Engine
) -> FloatArray:
    """Return R of groups of arrays (r, m_i), and of columns of ones behind each group.

    In blocks, as :func:`factor_centred`.
    """
    width = sum(column.shape[1] for group in groups for column in group)
    width += ones * len(groups)
    blocks = (
        tuple(tuple(column[rows] for column in group) for group in groups)
        for rows in _slices(len(groups[0][0]), width)
    )
    return fold_factors(engine.map(partial(_factor_group_block, ones), blocks))


def _factor_centred_block(
    means: Sequence[FloatArray], block: Sequence[FloatArray]
) -> FloatArray:
    moved = [column - mean for column, mean in zip(block, means, strict=True)]
    return qr_r(np.hstack(moved))


def _factor_group_block(ones: int, block: Sequence[Sequence[FloatArray]]) -> FloatArray:
    beside = np.ones((len(block[0][0]), ones))
    return qr_r(np.hstack([each for group in block for each in (*group, beside)]))


def _slices(n_rows: int, width: int) -> Iterator[slice]:
    """Yield blocks of many more rows than columns: a factor is as large as its columns."""
    size = max(_LEAST_ROWS, 4 * width)
    for begin in range(0, n_rows, size):
        yield slice(begin, begin + size)

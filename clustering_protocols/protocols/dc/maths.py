"""The parts of a party's map f_ij (equation 13): factors, axes, images of rows.

In Kawamata et al., equation 1 is k-means++ (:func:`.algorithms.kmeans.draw_starts`),
equations 2 and 3 are spectral clustering (:mod:`.algorithms.spectral`), and equation 4
is the layout in the terms. Equations 5, 6, 13 and 14 are the party's ``FittedMap``
(:mod:`.party`), which is made of the functions here. Equations 7 to 11 and 15 to 20 are
in :mod:`.common_space`, and equation 12 is in :mod:`.analyst`.

X (n, m) denotes the rows of one party. The rows are read in batches, so that the
reduced rows are the only array with n rows in memory.

The triangular factor R of X is accumulated from the QR factors of blocks of rows, in order.
R has the same singular values and right singular vectors as X. A Gram matrix would square
the condition number, and lose the rank of nearly dependent columns.

Images of rows are not computed by matrix products, because the last bits of these depend
on the number of rows and on the machine. Here a row's image has the same bits in every
block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from clustering_protocols.numerics.blocks import Engine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.numerics.row_blocks import iterate_slices
from clustering_protocols.records.arrays import FloatArray

_LEAST_ROWS: Final = 4096  # minimum rows of a block that is factored
_LEAST_PIVOT: Final = 1e-8


def qr_r(matrix: FloatArray) -> FloatArray:
    """Return R of a QR decomposition, or the matrix itself if it is not tall.

    A tall matrix has more rows than columns.
    """
    if matrix.shape[0] <= matrix.shape[1]:
        return matrix
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def least_squares(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the matrix G of least norm that minimises the Frobenius norm of A G - B.

    G is computed from one QR decomposition of [A, B] or, if the columns of A are nearly
    dependent, from the singular value decomposition of A.
    """
    width = A.shape[1]
    R: FloatArray = np.asarray(np.linalg.qr(np.hstack([A, B]), mode="r"))
    pivots = np.abs(np.diagonal(R)[:width])
    if len(A) >= width and pivots.min() > _LEAST_PIVOT * pivots.max():
        G = np.linalg.solve(R[:width, :width], R[:width, width:])
    else:
        G = np.linalg.lstsq(A, B, rcond=None)[0]
    return G.astype(np.float64, copy=False)


def fold_factors(factors: Iterable[FloatArray]) -> FloatArray:
    """Combine the factors R (r_b, m) of blocks of rows into the factor of all rows."""
    remaining = iter(factors)
    R = next(remaining)
    for factor in remaining:
        R = qr_r(np.vstack([R, factor]))
    return R


def factor_columns(
    columns: Sequence[FloatArray],
    engine: Engine,
    means: Sequence[FloatArray] | None = None,
) -> FloatArray:
    """Return the factor R of [A_1 - mean_1, A_2 - mean_2, …] for arrays A_i (r, m_i).

    Rows are factored in blocks, so that the whole matrix is never formed. A block has
    many more rows than columns, since otherwise its factor would be no smaller than the
    block. The size of blocks depends only on the number of columns, so that every
    engine gives the same bits.

    means: for each array, float64 (m_i,); None means zeros.
    """
    width = sum(column.shape[1] for column in columns)
    blocks = (
        tuple(column[rows] for column in columns)
        for rows in iterate_slices(len(columns[0]), max(_LEAST_ROWS, 4 * width))
    )
    offsets = tuple(means or [np.zeros(1)] * len(columns))
    return fold_factors(engine.map(partial(_factor_block, offsets), blocks))


def _factor_block(
    means: Sequence[FloatArray], block: Sequence[FloatArray]
) -> FloatArray:
    centred = [column - mean for column, mean in zip(block, means, strict=True)]
    return qr_r(np.hstack(centred))


RowFunction = Callable[[FloatArray], FloatArray]
"""From rows (n, m) to images (n, width)."""


def map_rows(function: RowFunction, data: DataSource) -> FloatArray:
    """Return the images (n, width) of all rows of a data source."""
    return np.concatenate([function(batch) for batch in data.batches()])


def triangular_factor(
    data: DataSource, mean: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return R (m, m) of a QR decomposition of (X - mean) / scale, read in batches."""
    scaled = ((batch - mean) / scale for batch in data.batches())
    return fold_factors(chain([np.empty((0, len(mean)))], scaled))


def principal_axes(
    R: FloatArray, n_rows: int, shift: float = 0.0
) -> tuple[FloatArray, int]:
    """Return the right singular vectors (m, m), by descending singular value, and the rank.

    R: float64 (m, m); a triangular factor of the centred data.
    n_rows: number of rows of the data; it enters the threshold below which a singular
        value counts as zero.
    shift: norm of the mean, which raises the threshold, since the rounding error of x -
        mean is relative to x. A dimension of rounding errors alone must not count towards
        the rank, or the party would drop this dimension instead of a real one.
    """
    _, values, Vt = np.linalg.svd(R)
    rounding = np.finfo(np.float64).eps * max(values[0], shift)
    threshold = max(n_rows, R.shape[1]) * rounding
    rank = int(np.count_nonzero(values > threshold)) if values[0] > 0 else 0
    return Vt.T, rank


def reduced_width(rank: int, n_rows: int) -> int:
    """Return m̃, the number of dimensions to send: the rank minus one, at least one.

    Subtracting one from the number of columns instead would drop nothing if a column is
    constant.
    """
    return max(1, min(rank, n_rows) - 1)


@in_c("image")
def add_products(X: FloatArray, G: FloatArray, first: int, image: FloatArray) -> None:
    """Add the product X G to columns of ``image``, starting at column ``first``.

    X: float64 (n, width).
    G: float64 (width, m), C-contiguous.
    image: float64 (n, m̂), C-contiguous; modified in place.
    """
    whole = X.shape[1] - X.shape[1] % 4
    added = np.zeros((len(X), G.shape[1]))
    for j in range(0, whole, 4):
        a, b, c, d = (X[:, i, None] * G[i] for i in range(j, j + 4))
        added += (a + b) + (c + d)
    for j in range(whole, X.shape[1]):
        added += X[:, j, None] * G[j]
    image[:, first : first + G.shape[1]] += added

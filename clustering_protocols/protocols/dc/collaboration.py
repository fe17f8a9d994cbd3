"""The analyst's collaboration maps g_i, from anchor projections to one common space.

Notation of the paper (Kawamata et al., "A new type of federated clustering"):
X̃^anc_i (r × m̃_i) the anchor projections of row group i, its column groups side by
side; G_i the map of row group i; m̂ the dimensions of the common space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.errors import ProtocolFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class CollaborationMap:
    """g_i: x̃ -> x̃ G + g.

    Attributes
    ----------
    G : float64 array of shape (m̃_i, m̂)
    g : float64 array of shape (m̂,)
        Zero for a linear map.
    """

    G: FloatArray = field(repr=False)
    g: FloatArray = field(repr=False)


def isometric_target(
    anchors: Sequence[Sequence[FloatArray]], n_features: int
) -> FloatArray:
    """Return T = U_1 Σ_1 (r × m̂) of the centred anchor blocks.

    Parameters
    ----------
    anchors : list over row groups of list over column groups of (r, m̃_ij)
    n_features : int
        m, over all column groups: the anchors themselves span no more.

    Notes
    -----
    Block (i, j) is weighted by 1/√c_j, c_j the number of row groups that have column
    group j: stacked, the c_j images of one anchor then count once, and distances in T
    are those between anchors. T = W V_1 for W = U Σ V', so U is never formed.
    """
    n_row_groups = len(anchors)
    blocks = [
        (block - block.mean(axis=0)) / np.sqrt(n_row_groups)
        for row_group in anchors
        for block in row_group
    ]
    W = np.hstack(blocks)
    values, V = _right_singular(W)
    kept = min(_rank(values, W.shape), n_features)
    if kept == 0:
        raise ProtocolFailed("All anchor projections are constant.")
    return W @ V[:, :kept]


def orthonormal_target(
    anchors: Sequence[Sequence[FloatArray]], *, affine: bool
) -> FloatArray:
    """Return T = U_1 (r × m̂), m̂ the smallest width (equations 15 and 18).

    For affine maps a column of ones stands beside each row group's projections.
    """
    ones = [np.ones((len(anchors[0][0]), 1))] if affine else []
    W = np.hstack([np.hstack([*row_group, *ones]) for row_group in anchors])
    kept = min(sum(block.shape[1] for block in row_group) for row_group in anchors)
    U, _, _ = np.linalg.svd(W, full_matrices=False)
    return np.ascontiguousarray(U[:, :kept])


def fit_map(
    anchors: Sequence[FloatArray], target: FloatArray, *, affine: bool
) -> CollaborationMap:
    """Return the least-squares map of a row group's anchors to the target.

    Equations 16 and 19; least squares where the paper writes a pseudo-inverse.
    """
    A = np.hstack(list(anchors))
    if not affine:
        G = _least_squares(A, target)
        return CollaborationMap(G=G, g=np.zeros(target.shape[1]))
    mean, target_mean = A.mean(axis=0), target.mean(axis=0)
    # With a column of ones, least squares is that of the centred problem.
    G = _least_squares(A - mean, target - target_mean)
    return CollaborationMap(G=G, g=target_mean - mean @ G)


def apply_map(
    mapping: CollaborationMap, rows: Sequence[FloatArray], out: FloatArray
) -> None:
    """Write X̂_i = [X̃_i, 1] G_i (equation 20) to ``out`` (n_i, m̂), block by block."""
    out[:] = mapping.g
    begin = 0
    for block in rows:
        end = begin + block.shape[1]
        out += block @ mapping.G[begin:end]
        begin = end


def _least_squares(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the G of least norm that minimises the Frobenius norm of A G - B."""
    G: FloatArray = np.linalg.lstsq(A, B, rcond=None)[0].astype(np.float64, copy=False)
    return G


def _right_singular(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return singular values (falling) and right singular vectors of a tall matrix."""
    R = np.linalg.qr(W, mode="r")
    _, values, Vt = np.linalg.svd(R, full_matrices=False)
    return values, Vt.T


def _rank(values: FloatArray, shape: tuple[int, ...]) -> int:
    threshold = max(shape) * np.finfo(np.float64).eps * values[0]
    return int(np.count_nonzero(values > threshold))

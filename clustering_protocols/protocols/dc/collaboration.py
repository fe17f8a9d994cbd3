"""The analyst's collaboration maps g_i, from anchor projections to one common space.

Notation of the paper (Kawamata et al., "A new type of federated clustering"):
X̃^anc_ij (r × m̃_ij) the anchor projections of party (i, j); G_i the map of row group i;
m̂ the dimensions of the common space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.records.arrays import FloatArray

from . import factors


@dataclass(frozen=True, slots=True, kw_only=True)
class CollaborationMap:
    """g: x̃ -> x̃ G + g.

    G: float64 (width, m̂).
    g: float64 (m̂,); zero for a linear map.
    """

    G: FloatArray = field(repr=False)
    g: FloatArray = field(repr=False)


def isometric_maps(
    blocks: Sequence[FloatArray],
    n_features: int,
    *,
    affine: bool,
    engine: Engine = ONE_THREAD,
) -> list[CollaborationMap]:
    """Return the maps of one column group to T = U_1 Σ_1 of its anchor projections.

    blocks: sequence of float64 arrays (r, m̃_ij); of the row groups that have this
        column group.
    n_features: m_j: the anchors of this column group span no more.
    affine: whether the maps may shift.

    The stack W = [X̃^anc_ij - mean]_i / √c_j = U Σ V' counts the c_j images of one
    anchor once, so distances in T = W V_1 are those between anchors. With W = Q R both
    the target, Q (R V_1), and the blocks, Q R_i, have small coefficients: U and T are
    never formed, and each G_ij is a least-squares problem of the size of R.

    Column groups are aligned one by one. Their anchors are independent, so what a fit
    to several of them at once finds of one group in another is chance; and a row group
    that lacks a column group simply gets the anchors' mean there.
    """
    r, count = len(blocks[0]), len(blocks)
    means = [block.mean(axis=0) for block in blocks]
    R = factors.factor_centred(blocks, means, engine)
    target = R @ _leading_directions(R, r, n_features) / np.sqrt(count)
    parts = _parts(R, [block.shape[1] for block in blocks])
    return [
        _fit(part, mean, target, r, affine=affine)
        for part, mean in zip(parts, means, strict=True)
    ]


def orthonormal_maps(
    anchors: Sequence[Sequence[FloatArray]],
    *,
    affine: bool,
    engine: Engine = ONE_THREAD,
) -> list[CollaborationMap]:
    """Return the map of each row group to T = U_1 (equations 15 to 19).

    For affine maps a column of ones stands beside each row group's projections; m̂ is
    the smallest width. Least squares where the paper writes a pseudo-inverse, and both
    sides in the coordinates of Q, as in :func:`isometric_maps`.

    anchors: list over row groups of list over its column groups of (r, m̃_ij).
    """
    widths = [sum(block.shape[1] for block in row_group) for row_group in anchors]
    ones, kept = int(affine), min(widths)
    R = factors.factor_groups(anchors, ones, engine)
    U, _, _ = np.linalg.svd(R, full_matrices=False)
    parts = _parts(R, [width + ones for width in widths])
    solved = [_least_squares(part, U[:, :kept]) for part in parts]
    if affine:
        return [CollaborationMap(G=G[:-1], g=G[-1]) for G in solved]
    return [CollaborationMap(G=G, g=np.zeros(kept)) for G in solved]


def side_by_side(
    maps: Mapping[int, CollaborationMap], dims: Sequence[int]
) -> CollaborationMap:
    """Return one map of a row group from the maps of the column groups that it has.

    dims: dimensions of every column group's part of the common space.
    """
    edges = np.concatenate([[0], np.cumsum(dims)])
    G = np.zeros((sum(len(m.G) for m in maps.values()), edges[-1]))
    g = np.zeros(edges[-1])
    begin = 0
    for column, mapping in sorted(maps.items()):
        end = begin + len(mapping.G)
        part = slice(edges[column], edges[column + 1])
        G[begin:end, part] = mapping.G
        g[part] = mapping.g
        begin = end
    return CollaborationMap(G=G, g=g)


def _parts(R: FloatArray, widths: Sequence[int]) -> list[FloatArray]:
    """Return the columns of R that belong to each of what stood side by side."""
    return np.split(R, np.cumsum(widths)[:-1], axis=1)


def _leading_directions(R: FloatArray, n_rows: int, n_features: int) -> FloatArray:
    """Return V_1: the right singular vectors of at most n_features real directions."""
    _, values, Vt = np.linalg.svd(R, full_matrices=False)
    threshold = max(n_rows, R.shape[1]) * np.finfo(np.float64).eps * values[0]
    kept = min(int(np.count_nonzero(values > threshold)), n_features)
    if kept == 0:
        raise ProtocolFailed("All anchor projections of a column group are constant.")
    return Vt[:kept].T


def _fit(
    part: FloatArray, mean: FloatArray, target: FloatArray, r: int, *, affine: bool
) -> CollaborationMap:
    """Return argmin ‖[X̃, 1] G - T‖, or without the ones, in the coordinates of Q."""
    if affine:
        G = _least_squares(part, target)
        return CollaborationMap(G=G, g=-mean @ G)
    # Not centred, the projections have one more coordinate: along the ones.
    A = np.vstack([part, np.sqrt(r) * mean])
    T = np.vstack([target, np.zeros(target.shape[1])])
    return CollaborationMap(G=_least_squares(A, T), g=np.zeros(target.shape[1]))


def _least_squares(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the G of least norm that minimises the Frobenius norm of A G - B."""
    return np.linalg.lstsq(A, B, rcond=None)[0].astype(np.float64, copy=False)

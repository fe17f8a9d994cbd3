"""Figures of labels from squared Euclidean distances alone: no coordinates.

A mean has no distances of its own, but they follow. With weights w_i of cluster c that
add up to 1 and D_ic = Σ_j w_j d²_ij:

    q_c = ½ Σ_i w_i D_ic,   ‖x_i - m_c‖² = D_ic - q_c,
    ‖m_c - m_l‖² = Σ_i w_i (D_il - q_l) - q_c   (w of c);

q_c is Q_c/n_c where all rows of a cluster weigh alike. One pass over the pairs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.algorithms.condensed import n_rows
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.compiled import compiled
from clustering_protocols.figures import Figures

from . import sums as formulas

_ROUNDING: Final = 1e-13
"""Squared distances that are this small against the largest are rounding: 0."""

_BoolArray = NDArray[np.bool_]


class _Around(NamedTuple):
    """Squared distances of rows to means (n, k), and of means to each other (k, k)."""

    means: FloatArray
    separations: FloatArray


def of_distances(
    squared: FloatArray, labels: IntArray, *, memberships: FloatArray | None = None
) -> Figures:
    """Return the figures of labels, the exact silhouette among them.

    Parameters
    ----------
    squared : float64 array of shape (n (n - 1) / 2,)
        Condensed squared Euclidean distances, as scipy's ``pdist``; never copied.
    labels : int64 array of shape (n,)
        Cluster numbers; rows of no cluster (-1) are left out.
    memberships : float64 array of shape (n, k), optional
        Brings partition coefficient and Xie-Beni, the latter around the means of the
        rows with weights μ².

    Raises
    ------
    ValueError
        If no row belongs to a cluster, or there are other than n labels.
    """
    if n_rows(squared) != len(labels):
        raise ValueError("as many labels as rows are needed")
    known = labels >= 0
    if not known.any():
        raise ValueError("no row belongs to a cluster")
    own, counts = labels[known], np.bincount(labels[known])
    by_square = np.zeros((len(labels), len(counts)))
    by_root = np.zeros_like(by_square)
    _add_by_cluster(squared, labels, by_square, by_root)
    others: dict[str, float | None] = {}
    if formulas.comparable(int(np.count_nonzero(counts)), len(own)):
        each = formulas.silhouettes(by_root[known], own, counts)
        others["silhouette"] = formulas.mean_silhouette(float(each.sum()), len(own))
    del by_root
    rounding = _ROUNDING * float(squared.max(initial=0.0))
    if memberships is not None:
        U = np.where(known[:, None], memberships, 0.0)
        others |= _of_memberships(squared, U, len(own), rounding)
    by_square /= np.maximum(counts, 1)
    alike = np.zeros_like(by_square)
    alike[known, own] = 1.0 / counts[own]
    around = _around(by_square, alike, rounding)
    return formulas.of_sums(_sums(around, known, own, counts), **others)


def _sums(
    around: _Around, known: _BoolArray, own: IntArray, counts: IntArray
) -> formulas.ClusterSums:
    D = around.means[known]
    within = np.take_along_axis(D, own[:, None], axis=1)[:, 0]
    return formulas.ClusterSums(
        counts=counts,
        squares=np.bincount(own, within).astype(np.float64),
        distances=np.bincount(own, np.sqrt(within)).astype(np.float64),
        separations=around.separations,
        silhouettes=float(formulas.simplified_silhouettes(D, own, counts).sum()),
    )


def _of_memberships(
    squared: FloatArray, U: FloatArray, n: int, rounding: float
) -> dict[str, float | None]:
    """Return partition coefficient and Xie-Beni of memberships (n_all, k)."""
    degrees = np.square(U)
    total = degrees.sum(axis=0)
    there = total > 0
    weights = np.ascontiguousarray(degrees[:, there] / total[there])
    D = np.zeros_like(weights)
    _add_weighted(squared, weights, D)
    around = _around(D, weights, rounding)
    compactness = float((degrees[:, there] * around.means).sum())
    return {
        "partition_coefficient": formulas.partition_coefficient(float(total.sum()), n),
        "xie_beni": formulas.xie_beni(compactness, n, around.separations),
    }


def _around(D: FloatArray, weights: FloatArray, rounding: float) -> _Around:
    """Return what lies around the means of weights (n, k), given D; D is overwritten."""
    q = 0.5 * np.einsum("ic,ic->c", weights, D)
    D -= q
    between = weights.T @ D - q[:, None]
    between = 0.5 * (between + between.T)
    D[rounding >= D] = 0.0
    between[rounding >= between] = 0.0
    return _Around(D, between)


@compiled
def _add_by_cluster(
    squared: FloatArray, labels: IntArray, by_square: FloatArray, by_root: FloatArray
) -> None:
    """Add up each row's squared distances, and distances, to the rows of each cluster."""
    n, at = len(labels), 0
    for i in range(n):
        own = labels[i]
        for j in range(i + 1, n):
            other = labels[j]
            if own >= 0 and other >= 0:
                root = np.sqrt(squared[at])
                by_square[i, other] += squared[at]
                by_square[j, own] += squared[at]
                by_root[i, other] += root
                by_root[j, own] += root
            at += 1


@compiled
def _add_weighted(squared: FloatArray, weights: FloatArray, D: FloatArray) -> None:
    """Add D_ic = Σ_j w_jc d²_ij."""
    n, k = weights.shape
    at = 0
    for i in range(n):
        for j in range(i + 1, n):
            for c in range(k):
                D[i, c] += weights[j, c] * squared[at]
                D[j, c] += weights[i, c] * squared[at]
            at += 1

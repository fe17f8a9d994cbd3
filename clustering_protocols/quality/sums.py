"""Quality figures computed from sums over rows, so that nobody needs to see all rows.

As in scikit-learn, only the k' clusters that have rows are counted. Figures that
compare clusters are None if k' < 2, or if there are as many clusters as rows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray

_ALIKE: Final = 1e-3
"""k times the partition coefficient is below 1 + this if all memberships are equal."""
_COINCIDING: Final = 1e6
"""The Xie-Beni index of centroids a thousandth of a standard deviation apart."""


def figures_from_sums(
    sizes: IntArray, means: FloatArray, around: FloatArray, **figures: Any
) -> Figures:
    """Compute the quality figures of a clustering from sums over its rows.

    sizes: int64 (k,); the size n_c of each cluster; empty clusters are ignored.
    means: float64 (k, F); the mean m_c of each cluster.
    around: float64 (2k + 1,); sums of distances from these means over all rows, as
        returned by :func:`.block_sums.sum_around_means`.
    **figures: values for further fields of :class:`Figures`, computed by the caller.

    Raises ValueError if no cluster has rows.
    """
    nonempty = np.flatnonzero(sizes > 0)
    if not nonempty.size:
        raise ValueError("no row belongs to a cluster")
    counts = sizes[nonempty].astype(np.float64)
    squares, distances = around[:-1].reshape(2, -1)
    squared = squared_separations(means)[np.ix_(nonempty, nonempty)]
    n_rows, inertia = float(counts.sum()), float(squares[nonempty].sum())
    # Σ_c n_c ‖m_c - m‖², from the distances between means
    between = float(counts @ squared @ counts) / (2.0 * n_rows)
    compares = are_comparable(len(nonempty), n_rows)
    scatter = distances[nonempty] / counts
    return Figures(
        n_clusters=len(nonempty),
        inertia=max(inertia, 0.0),
        simplified_silhouette=mean_silhouette(float(around[-1]), n_rows)
        if compares
        else None,
        calinski_harabasz=calinski_harabasz(len(nonempty), n_rows, between, inertia),
        davies_bouldin=davies_bouldin(scatter, squared) if compares else None,
        **figures,
    )


def are_comparable(n_clusters: int, n_rows: float) -> bool:
    """Return whether there are at least two clusters, and fewer clusters than rows."""
    return 2 <= n_clusters < n_rows


def squared_separations(means: FloatArray) -> FloatArray:
    """Return the squared distances (k, k) between the means (k, F) of clusters."""
    return np.array([np.square(means - mean).sum(axis=1) for mean in means])


def calinski_harabasz(
    n_clusters: int, n_rows: float, between: float, within: float
) -> float | None:
    """Return the Calinski-Harabasz index of a clustering.

    The index is [Σ n_c ‖m_c - m‖² / (k' - 1)] / [Σ q_c / (n - k')]. The result is None
    if clusters cannot be compared. It is also None if every row lies on the mean of its
    cluster, because the ratio is then infinite.

    n_clusters: k', the number of clusters that have rows.
    between: Σ n_c ‖m_c - m‖².
    within: Σ q_c, where q_c is Σ ‖x - m_c‖² over the rows of cluster c.
    """
    if not are_comparable(n_clusters, n_rows) or not within > 0.0:
        return None
    return between * (n_rows - n_clusters) / (within * (n_clusters - 1))


def davies_bouldin(scatter: FloatArray, squared: FloatArray) -> float | None:
    """Return the Davies-Bouldin index, the mean of max_{l ≠ c} (s_c + s_l) / ‖m_c - m_l‖.

    The result is None if two means coincide, because a ratio is then infinite.

    scatter: float64 (k,), k ≥ 2; s_c, the mean distance of rows to their mean.
    squared: float64 (k, k); the squared distances between the means m_c.
    """
    distances = np.sqrt(_with_infinite_diagonal(squared))
    if not distances.min() > 0.0:
        return None
    ratios = (scatter[:, None] + scatter[None, :]) / distances
    return float(ratios.max(axis=1).mean())


def xie_beni(compactness: float, n_rows: float, squared: FloatArray) -> float | None:
    """Return the Xie-Beni index Σ_c Σ_i μ_ci² ‖x_i - v_c‖² / (n · min ‖v_c - v_l‖²).

    X. L. Xie and G. Beni, "A validity measure for fuzzy clustering", 1991. The result
    is None for a single cluster, or if two centroids coincide up to rounding.

    compactness: the numerator of the index.
    squared: float64 (k, k); the squared distances between the centroids v.
    """
    nearest = float(_with_infinite_diagonal(squared).min())
    if not 0.0 < nearest < np.inf:
        return None
    value = max(compactness, 0.0) / (n_rows * nearest)
    return value if value < _COINCIDING else None


def partition_coefficient(
    squares: float, n_rows: float, sizes: IntArray
) -> float | None:
    """Return the partition coefficient Σ_c Σ_i μ_ci² / n, which lies in [1/k, 1].

    The result is None if clusters coincide, that is, if all memberships are equal or
    all rows have their largest membership in the same cluster.

    squares: Σ_c Σ_i μ_ci².
    sizes: int64 (k,); the number of rows with their largest membership in each cluster.
    """
    value, k = min(squares / n_rows, 1.0), len(sizes)
    coincide = k > 1 and value * k < 1 + _ALIKE
    return None if coincide or np.count_nonzero(sizes) < 2 else value


def mean_silhouette(total: float, n_rows: float) -> float:
    """Return the mean of n_rows silhouettes from their sum, clipped to [-1, 1]."""
    return float(np.clip(total / n_rows, -1.0, 1.0))


def _with_infinite_diagonal(squared: FloatArray) -> FloatArray:
    off_diagonal = np.array(squared, dtype=np.float64)
    np.fill_diagonal(off_diagonal, np.inf)
    return off_diagonal

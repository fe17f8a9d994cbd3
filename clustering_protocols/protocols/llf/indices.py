"""Intrinsic indices from sums over rows, so that no row is needed to compute them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols.arrays import FloatArray


def separations(V: FloatArray) -> FloatArray:
    """Return squared distances (k, k) between centroids, infinite on the diagonal."""
    D: FloatArray = cdist(V, V, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    return D


def xie_beni(compactness: float, n_rows: int, V: FloatArray) -> float | None:
    """Return Σ_c Σ_j μ_cj² ‖x_j - v_c‖² / (n · min ‖v_c - v_l‖²).

    X. L. Xie and G. Beni, "A validity measure for fuzzy clustering", 1991. None for one
    cluster, or where two centroids coincide.

    Parameters
    ----------
    compactness : float
        The numerator.
    V : float64 array of shape (k, F)
    """
    nearest = float(separations(V).min())
    if not 0.0 < nearest < np.inf:
        return None
    return compactness / (n_rows * nearest)


def soft_davies_bouldin(
    scatter: FloatArray, weights: FloatArray, V: FloatArray
) -> float | None:
    """Return the mean over c of max_l (S_c + S_l) / ‖v_c - v_l‖.

    S_c = Σ_j μ_cj^λ ‖x_j - v_c‖ / Σ_j μ_cj^λ: the index of Davies and Bouldin (1979) with
    degrees for weights, after the idea of A. Vergani and E. Binaghi, 2018. For c-means
    it is the index itself. None for one cluster, an empty one, or where two coincide.

    Parameters
    ----------
    scatter, weights : float64 arrays of shape (k,)
        Numerators and denominators of S_c.
    V : float64 array of shape (k, F)
    """
    D = separations(V)
    if len(V) < 2 or not (weights > 0).all() or not D.min() > 0.0:
        return None
    S = scatter / weights
    ratios = (S[:, None] + S[None, :]) / np.sqrt(D)
    return float(ratios.max(axis=1).mean())

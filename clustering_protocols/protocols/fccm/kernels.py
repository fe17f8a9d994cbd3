"""The equations of fuzzy co-clustering, on sparse co-occurrences.

Memberships are kept with objects (items) as rows: U (n, C), W (m, C), so that both
products are sparse matrix times dense matrix.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from clustering_protocols.arrays import FloatArray

TIE: Final = 1e-9
"""Memberships that differ by no more than this share are equal.

The sums have 40 bits and more, and small λ_u multiplies what rounding leaves of them.
"""


def item_exponents(R: csr_array, U: FloatArray, lambda_w: float) -> FloatArray:
    """Return λ_w^{-1} Σ_i u_ci r_ij (m, C): the exponents of equation 3.

    Parameters
    ----------
    R : csr_array of shape (n, m)
    U : float64 array of shape (n, C)
    """
    exponents: FloatArray = (R.T @ U) / lambda_w
    return exponents


def aggregation(R: csr_array, W: FloatArray) -> FloatArray:
    """Return Σ_j w_cj r_ij (n, C), given weights (m, C) of the items."""
    sums: FloatArray = R @ W
    return sums


def object_memberships(sums: FloatArray, lambda_u: float) -> FloatArray:
    """Return u_ci (n, C), equation 2: a softmax that does not overflow."""
    memberships: FloatArray = softmax(sums / lambda_u, axis=1)
    return memberships


def item_memberships(exponents: FloatArray) -> FloatArray:
    """Return w_cj (m, C), equation 3, where all items are at hand."""
    memberships: FloatArray = softmax(exponents, axis=0)
    return memberships


def first_memberships(n: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Return U(0) (n, C): uniform numbers, normalised for each object."""
    drawn = rng.random((n, n_clusters))
    normalised: FloatArray = drawn / drawn.sum(axis=1, keepdims=True)
    return normalised

"""The equations of fuzzy co-clustering, on sparse co-occurrences.

Honda, Oda, Tanaka, Notsu: eq. 1 is the criterion, eq. 2 the memberships u of objects,
eq. 3 the memberships w of items. The paper numbers no other equation.

Memberships have one row per object, U (n, C), or per item, W (m, C), so that both products
multiply a sparse by a dense matrix. Several starts are computed side by side, in C columns
each; the results of a start have the same bits whichever other starts there are.
"""

from __future__ import annotations

from typing import Final

from scipy.sparse import csr_array
from scipy.special import softmax, xlogy

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray

TIE: Final = 1e-9
"""Memberships that differ by no more than this fraction count as equal.

The sums have 40 bits and more, and a small λ_u multiplies their rounding.
"""


def item_exponents(R: csr_array, U: FloatArray, lambda_w: float) -> FloatArray:
    """Return the exponents (m, C) of equation 3, λ_w^{-1} Σ_i u_ci r_ij.

    R: csr_array of shape (n, m).
    U: float64 (n, C).
    """
    exponents: FloatArray = (R.T @ U) / lambda_w
    return exponents


def aggregation(R: csr_array, W: FloatArray) -> FloatArray:
    """Return the sums Σ_j w_cj r_ij (n, C), given memberships W (m, C) of the items."""
    sums: FloatArray = R @ W
    return sums


def object_memberships(sums: FloatArray, lambda_u: float) -> FloatArray:
    """Return the memberships u_ci (..., C) of equation 2, without overflow."""
    memberships: FloatArray = softmax(sums / lambda_u, axis=-1)
    return memberships


def criteria(
    sums: FloatArray,
    before: FloatArray,
    U: FloatArray,
    log_normalisers: FloatArray,
    fuzziness: tuple[float, float],
) -> FloatArray:
    """Return the criterion (equation 1) of each of L starts (L,), from totals alone.

    It is Σ u s - λ_u Σ u log u - λ_w Σ w log w. The last sum does not require w: log
    w_cj is an exponent of equation 3 minus the logarithm of its normaliser, so that λ_w
    Σ_j w_cj log w_cj = Σ_i u'_ci s_ci - λ_w log Σ_j exp(λ_w^{-1} Σ_i u'_ci r_ij).

    sums: float64 (n, L, C); s_ci = Σ_j w_cj r_ij.
    before, U: float64 (n, L, C); u' are the memberships from which w was computed, and
        u those computed from s.
    log_normalisers: float64 (L,); the logarithms of the normalisers, summed over
        clusters.
    fuzziness: λ_u and λ_w.
    """
    lambda_u, lambda_w = fuzziness
    of_objects = ((U - before) * sums - lambda_u * xlogy(U, U)).sum(axis=(0, 2))
    J: FloatArray = of_objects + lambda_w * log_normalisers
    return J


def first_memberships(n: int, n_clusters: int, stream: KeyedStream) -> FloatArray:
    """Return random U(0) (n, C): uniform numbers, normalised for each object."""
    uniform = stream.uniform(n, n_clusters)
    U: FloatArray = uniform / uniform.sum(axis=1, keepdims=True)
    return U

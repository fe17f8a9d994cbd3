"""Global normalisation in fixed point: what is taken off the exponents, and when again.

Σ_j exp(exponent) over all sites is what the exponents of equation 3 are divided by; it
may be as large as e^1000. So all sites take the same shift B_c off the exponents of a
cluster, chosen so that the sum lies between a coarse and an overflowing one. They all
know U and the totals, so all choose alike and nothing is said about it, but for the
lanes of which a site's own share would overflow.

Arrays hold C clusters of each lane, side by side.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.fixed_point import FixedPoint

from .params import CoClustering, FccmSession
from .starts import Mask

HEADROOM: Final = 512.0
"""How much larger than before Σ exp may become without a repeat."""

FINE_BITS: Final = 40
"""Σ exp has at least so many bits; a smaller one is asked for again."""

MAX_REPEATS: Final = 64


def most_sums(params: CoClustering) -> int:
    """Return how often sums may be asked for: each iteration's with all its repeats."""
    return (params.max_iter + 1) * (MAX_REPEATS + 1)


def n_items(session: FccmSession) -> int:
    """Return the number of items of all sites."""
    return sum(session.member(slot).n_columns for slot in session.slots)


def encodings(session: FccmSession) -> tuple[FixedPoint, FixedPoint]:
    """Return the encodings of the sums over items, and of the normalisers.

    ``site``: of their logarithms, added up over the clusters of a lane.
    """
    params = session.params
    if not params.is_global:  # weights of a site sum to 1
        of_sums = FixedPoint.of(1.001 * len(session.slots) * params.r_max)
        return of_sums, FixedPoint.of(1.001 * _largest_logarithm(session))
    largest = largest_normaliser(session)
    return FixedPoint.of(1.001 * largest * params.r_max), FixedPoint.of(1.001 * largest)


def largest_normaliser(session: FccmSession) -> float:
    """Return the bound on Σ exp over all sites."""
    return max(float(n_items(session)), HEADROOM)


def _largest_logarithm(session: FccmSession) -> float:
    """Return the bound on Σ_t Σ_c log Σ_j exp(exponent_cj): no exponent is below 0."""
    params = session.params
    exponents = session.n_rows(session.slots[0]) / params.lambda_w
    widths = np.array([session.member(slot).n_columns for slot in session.slots])
    logarithms = float(np.log(widths).sum())
    return len(widths) * exponents + params.n_clusters * logarithms


def safe(session: FccmSession, U: FloatArray) -> FloatArray:
    """Return shifts (C,) with which no exponent is above 0: Σ_i u_ci / λ_w."""
    params = session.params
    bound: FloatArray = U.sum(axis=0) / params.lambda_w
    return bound * (1.0 + 1e-9)  # sites round U differently


def overflows(session: FccmSession, weights: FloatArray) -> Mask:
    """Return of which lanes (A,) a site's weights (m_t, A·C) exceed its part of the bound.

    Its part is that of its items: with the safe shift no weight is above 1.
    """
    share = largest_normaliser(session) * len(weights) / n_items(session)
    fit = (weights.sum(axis=0) <= share).reshape(-1, session.params.n_clusters)
    over: Mask = ~fit.all(axis=1)
    return over


def too_coarse(session: FccmSession, Z: FloatArray) -> Mask:
    """Return of which lanes (A,) normalisers (A·C,) have too few bits in some cluster."""
    params = session.params
    unit = float(encodings(session)[1].unit)
    # bits with which memberships agree to 1e-6: sums are divided by lambda_u
    needed = math.log2(1.0 / (1e-6 * params.lambda_u)) + 4
    finest = 2.0 ** min(max(FINE_BITS, needed), math.log2(unit) - 3)
    few = (Z * unit < finest).reshape(-1, params.n_clusters)
    coarse: Mask = few.any(axis=1)
    return coarse


def lower_shifts(session: FccmSession, shifts: FloatArray, Z: FloatArray) -> FloatArray:
    """Return shifts with which Σ exp is at most 1, given a coarse total.

    Rounding may have lost half a unit of each item and site.
    """
    unit = float(encodings(session)[1].unit)
    lost = (n_items(session) + len(session.slots)) / unit
    return shifts + np.log(np.maximum(Z, 0.0) + lost)


def track_shifts(shifts: FloatArray, Z: FloatArray) -> FloatArray:
    """Return shifts with which Σ exp would be 1 if nothing moved."""
    return shifts + np.log(Z)

"""Budgets of differential privacy, and the noise that they require.

OpenDP (the optional extra ``dp``) calibrates the noise for a budget; the noise is drawn
here.

Noise is integer, because the gaps of floating-point noise reveal the number to which it
was added (I. Mironov, "On significance of the least significant bits for differential
privacy", CCS 2012). It comes from a keyed stream, because a repeated draw must be the
same noise: two draws over the same numbers would be two releases.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray

Mechanism = Literal["laplace", "gaussian"]

_SCALES: Final = (0.05, 1e14)  # smallest and largest scale, in units of the sensitivity


class PrivacyCost(NamedTuple):
    """(ε, δ) of one or of several releases."""

    epsilon: float
    delta: float


def noise_scale(mechanism: Mechanism, sensitivity: int, cost: PrivacyCost) -> float:
    """Return the smallest noise scale whose releases stay within a privacy cost.

    It is at least a twentieth of the sensitivity: less noise gives hardly any privacy.

    mechanism: {"laplace", "gaussian"}.
    sensitivity: by how much one person can change the released integer.
    cost: ``delta`` is used for Gaussian noise only.
    """
    _opendp()  # a cached scale must not hide that the library is missing
    return _least_scale(mechanism, sensitivity, cost)


@lru_cache(maxsize=64)  # a search takes a second, and releases need few scales
def _least_scale(mechanism: Mechanism, sensitivity: int, cost: PrivacyCost) -> float:
    dp = _opendp()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")

    def measurement(scale: float) -> Any:
        if mechanism == "laplace":
            return dp.m.make_laplace(*space, scale=scale)
        concentrated = dp.m.make_gaussian(*space, scale=scale)
        approximate = dp.c.make_zCDP_to_approxDP(concentrated)
        return dp.c.make_fix_delta(approximate, cost.delta)

    d_out = cost.epsilon if mechanism == "laplace" else tuple(cost)
    low, high = (factor * sensitivity for factor in _SCALES)
    if measurement(low).check(sensitivity, d_out):
        return low
    bounds = (low, high)
    return float(dp.binary_search_param(measurement, sensitivity, d_out, bounds=bounds))


def noise(
    mechanism: Mechanism, stream: KeyedStream, scale: float, size: int
) -> IntArray:
    """Return noise (size,) of a mechanism."""
    draw = discrete_laplace if mechanism == "laplace" else discrete_gaussian
    return draw(stream, scale, size)


def _opendp() -> ModuleType:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise GuardRefused(
            "Noise is calibrated by OpenDP: pip install 'coterie[dp]'."
        ) from None
    dp.enable_features("contrib")
    return dp


def exponential(stream: KeyedStream, size: int) -> FloatArray:
    """Return standard exponential numbers (size,) with 52 bits at every magnitude.

    Each is -log of a uniform number whose exponent comes from one word and whose digits
    come from another, so that the tail, down to 2^-64, is as precise as the middle.
    """
    exponents = np.frexp(stream.words(size).astype(np.float64))[1]
    zeros = np.maximum(64 - exponents, 0)  # the largest words round up to 2^64
    digits = (1.0 + stream.uniform(size)) / 2.0
    samples: FloatArray = zeros * np.log(2.0) - np.log(digits)
    return samples


def discrete_laplace(stream: KeyedStream, scale: float, size: int) -> IntArray:
    """Return whole numbers x (size,), each with a probability ∝ exp(-|x| / scale).

    The whole part of an exponential number is geometric; the difference of two geometric
    numbers has this distribution.
    """
    geometric = np.floor(scale * exponential(stream, 2 * size)).astype(np.int64)
    return geometric[:size] - geometric[size:]


def discrete_gaussian(stream: KeyedStream, scale: float, size: int) -> IntArray:
    """Return whole numbers x (size,), each with a probability ∝ exp(-x² / (2 scale²)).

    Discrete Laplace numbers are drawn, and some rejected (C. Canonne, G. Kamath,
    T. Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 3).
    """
    laplace_scale = np.floor(scale) + 1.0
    samples: IntArray = np.empty(0, dtype=np.int64)
    while len(samples) < size:
        candidates = discrete_laplace(stream, laplace_scale, size)
        distances = np.abs(candidates) - scale**2 / laplace_scale
        accepted = exponential(stream, size) > distances**2 / (2.0 * scale**2)
        samples = np.append(samples, candidates[accepted])
    return samples[:size]

"""Laplace noise for differential privacy.

OpenDP (the optional extra ``dp``) calibrates the noise for a budget; this module draws
it.

The noise consists of integers, because the gaps between floating-point numbers reveal
the number to which noise was added (I. Mironov, "On significance of the least
significant bits for differential privacy", CCS 2012). The noise comes from a keyed
stream, because a repeated draw must give the same noise: two different draws for the
same numbers would be two releases.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray

_SCALES: Final = (
    0.05,
    1e14,
)  # smallest and largest scale of the noise, in units of the sensitivity


@lru_cache(maxsize=64)  # a search takes a second, and releases need few scales
def noise_scale(sensitivity: int, epsilon: float) -> float:
    """Return the smallest scale of Laplace noise that costs at most ``epsilon``.

    The scale is at least a twentieth of the sensitivity, because less noise gives
    hardly any privacy.

    sensitivity: the largest change of the released integer that is due to one person.
    """
    dp = _opendp()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")

    def measurement(scale: float) -> Any:
        return dp.m.make_laplace(*space, scale=scale)

    low, high = (factor * sensitivity for factor in _SCALES)
    if measurement(low).check(sensitivity, epsilon):
        return low
    bounds = (low, high)
    return float(
        dp.binary_search_param(measurement, sensitivity, epsilon, bounds=bounds)
    )


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
    """Draw standard exponential numbers (size,), with 52 significant bits each.

    Each is minus the logarithm of a uniform number whose exponent comes from one word
    and whose digits come from another, so that the tail, down to 2^-64, is as precise
    as the middle.
    """
    exponents = np.frexp(stream.words(size).astype(np.float64))[1]
    zeros = np.maximum(64 - exponents, 0)  # the largest words are rounded up to 2^64
    digits = (1.0 + stream.uniform(size)) / 2.0
    samples: FloatArray = zeros * np.log(2.0) - np.log(digits)
    return samples


def discrete_laplace(stream: KeyedStream, scale: float, size: int) -> IntArray:
    """Draw integers x (size,), each with a probability ∝ exp(-|x| / scale).

    The integer part of an exponential number is geometric, and the difference of two
    geometric numbers has this distribution.
    """
    geometric = np.floor(scale * exponential(stream, 2 * size)).astype(np.int64)
    return geometric[:size] - geometric[size:]

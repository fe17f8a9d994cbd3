"""Section 12, llf: degrees of fuzzy c-means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def find_fuzzifier(params: Any, n: int, F: int) -> float:
    """Section 12, llf, degrees: λ; by the numbers of rows and columns with auto."""
    if params["fuzzifier"] != "auto":
        return float(params["fuzzifier"])
    of_rows = (1418.0 / n + 22.05) / F**2
    beside = (12.33 / n + 0.243) * F ** (-0.0406 * math.log(n) - 0.1134)
    return float(min(max(1.0 + of_rows + beside, 1.1), 2.0))


def squared_distances(Z: Floats, V: Floats) -> Floats:
    """Section 12, llf, sums: of rows to centroids, added up column by column."""
    D = np.zeros((len(Z), len(V)))
    for f in range(Z.shape[1]):
        D += np.square(Z[:, f, None] - V[None, :, f])
    return D


def find_degrees(D: Floats, fuzzifier: float) -> Floats:
    """Section 12, llf, degrees: of rows, by squared distances."""
    least = D.min(axis=1, keepdims=True)
    ratios = np.divide(least, D, out=np.ones_like(D), where=least != D)
    U = np.where(least == D, 1.0, ratios ** (1.0 / (fuzzifier - 1.0)))
    total = np.zeros(len(U))
    for c in range(U.shape[1]):
        total += U[:, c]
    return np.asarray(U / total[:, None])


def raise_degrees(U: Floats, fuzzifier: float) -> Floats:
    """Section 12, llf, degrees: to the power λ."""
    return np.asarray(U * U if fuzzifier == 2.0 else U**fuzzifier)

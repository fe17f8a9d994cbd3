"""Section 12, llf: arithmetic of centroids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .degrees import squared_distances
from .derivations import Words

Floats = NDArray[np.float64]
_COINCIDE: Final = 1e-11


def round_means(means: Floats, counts: Floats, spreads: Floats) -> Floats:
    """Section 12, llf, mark: means of so many rows, in round steps of p; or as it is."""
    shares = np.maximum(1 / 20, 5 / np.maximum(counts, 1))[:, None]
    steps = np.vectorize(_round_up, otypes=[np.float64])(shares * spreads)
    divisor = np.where(steps > 0, steps, 1.0)
    return np.where(steps > 0, np.rint(means / divisor) * steps, means)


def _round_up(number: float) -> float:
    """Section 12, llf, mark: the least round number that reaches another."""
    if number == 0:
        return 0.0
    power = floor(log10(number))
    tries = (
        float(f"{f}e{p}") for p in (power - 1, power, power + 1) for f in (1, 2, 5)
    )
    return min(each for each in tries if each >= number)


def order_clusters(
    clusters: Sequence[int], sizes: NDArray[Any], centroids: Floats
) -> list[int]:
    """Section 12, llf, result: by size, the largest first; then by centroid."""
    keys = [
        (-int(size), *centroid)
        for size, centroid in zip(sizes, centroids.tolist(), strict=True)
    ]
    places = sorted(range(len(keys)), key=keys.__getitem__)
    return [clusters[place] for place in places]


def sums_and_counts(sums_of_units: Floats, labels: NDArray[Any]) -> Words:
    """Section 12, llf, sums: sums of whole units, then counts."""
    counts = np.bincount(labels, minlength=len(sums_of_units))
    words = np.append(np.rint(sums_of_units).reshape(-1), counts)
    return words.astype(np.int64).view(np.uint64)


def nearest(Z: Floats, V: Floats) -> NDArray[Any]:
    """Section 12, llf, sums: the nearest centroid."""
    return squared_distances(Z, V).argmin(axis=1)


def make_equal(V: Floats, step: Floats) -> Floats:
    """Section 12, llf, update: coordinates that coincide become equal."""
    found = V.copy()
    for f in range(V.shape[1]):
        order = np.argsort(V[:, f], kind="stable")
        run = [order[0]]
        for before, after in pairwise(order):
            if V[after, f] - V[before, f] > _COINCIDE * step[f]:
                found[run, f] = V[min(run), f]
                run = []
            run.append(after)
        found[run, f] = V[min(run), f]
    return found

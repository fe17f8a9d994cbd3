"""Section 12, llf: figures of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ALL: Final = (
    "n_clusters",
    "inertia",
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "partition_coefficient",
    "xie_beni",
    "criterion",
    "gap",
    "gap_error",
    "gap_of_one",
    "stability",
    "prediction_strength",
    "n_iter",
    "converged",
)
_COINCIDING: Final = 1e6


def describe(
    sizes: Floats,
    squares: Floats,
    distances: Floats,
    silhouettes: float,
    means: Floats,
    fuzzy: tuple[Floats, float, float] | None = None,
) -> dict[str, Any]:
    """Section 12, llf, figures: of the totals around the means.

    fuzzy: V, and the two reals of fuzzy c-means.
    """
    there = sizes > 0
    n, k, q = sizes[there], int(there.sum()), float(squares[there].sum())
    between = np.square(means[there][:, None] - means[there][None]).sum(axis=2)
    rows = float(n.sum())
    found: dict[str, Any] = {
        "n_clusters": k,
        "inertia": q,
    }
    if 2 <= k < rows:
        apart = between + np.where(np.eye(k) > 0, np.inf, 0.0)
        scatter = distances[there] / n
        found["simplified_silhouette"] = silhouettes / rows
        spread = float(n @ between @ n) / (2.0 * rows)
        if q > 0:
            found["calinski_harabasz"] = spread * (rows - k) / (q * (k - 1))
        if apart.min() > 0:
            ratios = (scatter[:, None] + scatter[None]) / np.sqrt(apart)
            found["davies_bouldin"] = float(ratios.max(axis=1).mean())
        if fuzzy is None:
            found["xie_beni"] = _find_xie_beni(q, rows, float(apart.min()))
    if fuzzy is not None:
        V, compact, squares = fuzzy
        k_all = len(V)
        D = np.square(V[:, None] - V[None]).sum(axis=2)
        nearest = float((D + np.where(np.eye(k_all) > 0, np.inf, 0.0)).min())
        found["xie_beni"] = _find_xie_beni(compact, rows, nearest)
        found["partition_coefficient"] = find_coefficient(squares, rows, k_all, k)
    return round_figures(found)


def round_figures(known: Mapping[str, Any]) -> dict[str, Any]:
    """Section 12, figures: all of them, null where nothing is known."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in (dict.fromkeys(_ALL) | dict(known)).items()
    }


def _find_xie_beni(compact: float, rows: float, nearest: float) -> float | None:
    """Section 12, llf, figures: Xie and Beni's; null where two coincide."""
    if not 0.0 < nearest < np.inf:
        return None
    found = compact / (rows * nearest)
    return found if found < _COINCIDING else None


def find_coefficient(
    squares: float, rows: float, n_clusters: int, with_rows: int
) -> float | None:
    """Section 12, figures: the partition coefficient; null where clusters coincide."""
    found = min(squares / rows, 1.0)
    alike = n_clusters > 1 and found * n_clusters < 1.001
    return None if alike or with_rows < 2 else found

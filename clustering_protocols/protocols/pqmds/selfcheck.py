"""What an analyst who knows how each feature is distributed reads off the codes.

Frequency matching: sort the codes of a subspace, and give each the value that stands at
the same rank in a public sample of the feature (Naveed, Kamara, Wright, CCS 2015). The
party runs it on its own upload, with its own rows for the sample: the best that there
could be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clustering_protocols.arrays import FloatArray

_SAMPLE: Final = 4096  # rows: enough for two digits, and no time beside the codebooks
_FEW_ROWS: Final = 20  # per centre: with fewer, a cell is a handful of people


def recovered(
    X: FloatArray, codes: FloatArray, subspaces: Sequence[slice]
) -> FloatArray:
    """Return R² of the guess at each feature that varies.

    Parameters
    ----------
    X : float64 array of shape (n, m)
    codes : float64 array of shape (n, s)
    subspaces : sequence of slice
        The features of each column of codes.
    """
    step = -(-len(X) // _SAMPLE)
    X, codes = X[::step], codes[::step]
    found = [
        max(_matched(X[:, feature], signed) for signed in (code, -code))
        for code, features in zip(codes.T, subspaces, strict=True)
        for feature in range(features.start, features.stop)
        if X[:, feature].std() > 0
    ]
    return np.array(found)


def _matched(values: FloatArray, code: FloatArray) -> float:
    """Return the share of the variance (n,) that ranks of codes (n,) tell."""
    _, which, counts = np.unique(code, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(code)
    error = values - np.quantile(values, ranks)[which]
    return float(1.0 - np.mean(error**2) / values.var())


def notes(
    found: FloatArray, largest_codebook: int, n_rows: int, *, single: bool
) -> dict[str, Any]:
    """Return the numbers in the words in which the operator reads them.

    Parameters
    ----------
    found : float64 array
        R² by feature.
    single : bool
        Whether each feature has codes of its own.
    """
    told: dict[str, Any] = {
        "self-check": "what an analyst who knows each feature's distribution recovers",
        "  features, largest R²": float(found.max(initial=0.0)),
        "  features, median R²": float(np.median(found)) if found.size else 0.0,
    }
    if single:
        told["warning"] = (
            "sub_dim is 1: the codes order the rows by each feature, and show the "
            "feature's values up to the width of a cell."
        )
    if n_rows < _FEW_ROWS * largest_codebook:
        told["small cells"] = (
            f"{n_rows} rows share {largest_codebook} centres, fewer than {_FEW_ROWS} "
            "rows each: a smaller codebook_size hides more."
        )
    return told

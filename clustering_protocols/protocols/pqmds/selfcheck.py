"""What codes tell of the features.

Of one coordinate, to an analyst who knows how each feature is distributed. Frequency
matching: sort the codes of a subspace, and give each the value that stands at the same
rank in a public sample of the feature (Naveed, Kamara, Wright, CCS 2015). The party runs
it on its own upload, with its own rows for the sample: the best that there could be.

Of several coordinates, to an analyst who knows some rows: least squares of each feature
on the codes of its subspace. The party fits it to all of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray

from .params import ProductQuantisation

_SAMPLE: Final = 4096  # rows: enough for two digits, and no time beside the codebooks
_FEW_ROWS: Final = 20  # per centre: with fewer, a cell is a handful of people
_WHO: Final = {
    False: "what an analyst who knows each feature's distribution recovers",
    True: "what an analyst who knows some of your rows recovers of all",
}


def compute_recovery(
    X: FloatArray, codes: FloatArray, cells: Sequence[tuple[slice, int]]
) -> FloatArray:
    """Return R² of the guess at each feature that varies.

    X: float64 (n, m).
    codes: float64 (n, s).
    cells: sequence of pairs; the features of each subspace, and how many columns of
        codes it has.
    """
    step = -(-len(X) // _SAMPLE)
    X, codes = X[::step], codes[::step]
    ends = np.cumsum([width for _, width in cells])[:-1]
    parts = np.split(codes, ends, axis=1)
    found = [
        r2
        for part, (features, _) in zip(parts, cells, strict=True)
        for r2 in _of_subspace(X[:, features], part)
    ]
    return np.array(found)


def _of_subspace(X: FloatArray, codes: FloatArray) -> Iterator[float]:
    """Yield R² of each feature of X (n, d) that varies, given codes (n, c)."""
    for values in X.T[X.std(axis=0) > 0]:
        if codes.shape[1] > 1:
            yield _compute_linear_r2(values, codes)
        else:
            code = codes[:, 0]
            yield max(_compute_rank_r2(values, signed) for signed in (code, -code))


def _compute_linear_r2(values: FloatArray, codes: FloatArray) -> float:
    """Return the share of the variance (n,) that is linear in codes (n, c)."""
    centred = codes - codes.mean(axis=0)
    wanted = values - values.mean()
    error = wanted - centred @ np.linalg.lstsq(centred, wanted, rcond=None)[0]
    return float(1.0 - np.mean(error**2) / values.var())


def _compute_rank_r2(values: FloatArray, code: FloatArray) -> float:
    """Return the share of the variance (n,) that ranks of codes (n,) tell."""
    _, which, counts = np.unique(code, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(code)
    error = values - np.quantile(values, ranks)[which]
    return float(1.0 - np.mean(error**2) / values.var())


def notes(
    params: ProductQuantisation, found: FloatArray, largest_codebook: int, n_rows: int
) -> dict[str, Any]:
    """Return the numbers in the words in which the operator reads them.

    found: float64 array; R² by feature.
    """
    told: dict[str, Any] = {
        "self-check": _WHO[params.coordinates > 1],
        "  features, largest R²": float(found.max(initial=0.0)),
        "  features, median R²": float(np.median(found)) if found.size else 0.0,
    }
    if params.sub_dim == 1:
        told["warning"] = (
            "sub_dim is 1: the codes order the rows by each feature, and show the "
            "feature's values up to the width of a cell."
        )
    if params.coordinates > 1:
        told["warning"] = (
            f"coordinates is {params.coordinates}: anyone who knows a few of your rows reads "
            "the features of the others off their codes, as well as R² says."
        )
    if n_rows < _FEW_ROWS * largest_codebook:
        told["small cells"] = (
            f"{n_rows} rows share {largest_codebook} centres, fewer than {_FEW_ROWS} "
            "rows each: a smaller codebook_size hides more."
        )
    return told

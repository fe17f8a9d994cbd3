"""How a curious party of `llf` finds rows: two sums that differ by one row show it."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols.records.arrays import FloatArray

Cells = list[np.ndarray[Any, np.dtype[np.int64]]]


def run_of(Z: FloatArray, V: FloatArray) -> Cells:
    found = []
    while True:
        found.append(cdist(Z, V).argmin(axis=1))
        counts = np.bincount(found[-1], minlength=len(V))
        after = np.array(
            [
                Z[found[-1] == c].mean(axis=0) if n > 9 else V[c]
                for c, n in enumerate(counts)
            ]
        )
        if np.linalg.norm(after - V) <= 1e-5:
            return [*found, cdist(Z, after).argmin(axis=1)]
        V = after


def read_off(k: int, cells: Cells) -> int:
    """Return how many rows are the difference of two sums of cells, of at most k each."""
    A = np.unique([labels == c for labels in cells for c in range(k)], axis=0)
    counts, common = A.sum(axis=1), A.astype(np.int64) @ A.T.astype(np.int64)
    one_more = (counts[:, None] - counts == 1) & (common == counts)
    return len(
        {
            int(np.argmax(A[a] & ~A[b]))
            for a, b in zip(*np.nonzero(one_more), strict=True)
        }
    )

"""The one computation of the dummy."""

from __future__ import annotations

import numpy as np

from clustering_protocols.records.arrays import IntArray


def turns(first: int, n_rows: int, n_clusters: int) -> IntArray:
    """Return (first + i) mod n_clusters for i = 0 … n_rows-1."""
    return np.arange(first, first + n_rows, dtype=np.int64) % n_clusters

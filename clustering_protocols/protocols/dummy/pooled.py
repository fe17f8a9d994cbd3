"""The dummy on pooled data."""

from __future__ import annotations

from clustering_protocols.records.arrays import FloatArray, IntArray

from . import kernels
from .params import Dummy


def labels(params: Dummy, X: FloatArray) -> IntArray:
    """Label the rows of X in turn."""
    return kernels.turns(0, len(X), params.n_clusters)

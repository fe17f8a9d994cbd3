"""Examples of `cohort`, whose sessions put no row into a cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS
from clustering_protocols.terms.terms import Layout

from .params import CohortSize


def examples() -> Sequence[Example[CohortSize]]:
    """Return an example of three parties with ids, and one of two with match keys."""
    X = np.random.default_rng(0).normal(size=(60, 6))
    by_keys = CohortSize(alignment=BY_MATCH_KEYS, step=5)
    return [
        Example(params=CohortSize(), layout=Layout.lattice(1, 3), X=X, missing=0.2),
        Example(params=by_keys, layout=Layout.lattice(1, 2), X=X, missing=0.2),
    ]


def cluster_pooled(params: CohortSize, X: FloatArray, trace: object) -> IntArray:
    """Return the label -1 for each row, because there are no clusters."""
    del params, trace
    return np.full(len(X), -1, dtype=np.int64)

"""Examples of the dummy protocol, and its labels of the pooled rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.terms import Layout

from . import analyst
from .params import Dummy


def examples() -> Sequence[Example[Dummy]]:
    """Return a plain example, and one in which a round is repeated."""
    X = np.random.default_rng(0).normal(size=(40, 6))
    return [
        Example(params=Dummy(n_clusters=3), layout=Layout.lattice(2, 2), X=X),
        Example(params=Dummy(void_attempts=1), layout=Layout.lattice(1), X=X),
    ]


def cluster_pooled(params: Dummy, X: FloatArray, trace: object) -> IntArray:
    """Return the labels that the session gives to the pooled rows."""
    del trace
    return analyst.labels_in_turn(0, len(X), params.n_clusters)

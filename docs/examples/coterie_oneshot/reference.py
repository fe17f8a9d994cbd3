"""An example, and the same method on pooled rows."""

from collections.abc import Sequence

import numpy as np

from clustering_protocols.contract import Example
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.terms import Layout

from . import maths
from .params import OneShot


def examples() -> Sequence[Example[OneShot]]:
    """Return an example with three clusters that lie far apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + 20.0 * rng.integers(3, size=(90, 1))
    return [Example(params=OneShot(), layout=Layout.lattice(3), X=X)]


def cluster_pooled(params: OneShot, X: FloatArray, trace: object) -> IntArray:
    """Return the labels of k-means on all rows."""
    del trace
    return maths.label(X, maths.cluster(X, params.n_clusters, np.random.default_rng(0)))

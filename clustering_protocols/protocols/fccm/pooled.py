"""The same co-clustering on the pooled matrix: what the fidelity of `fccm` is measured by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.algorithms.coincidence import strongest
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Trace
from clustering_protocols.randomness import generator

from . import kernels
from .params import CoClustering


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pooled:
    """How a pooled run went: U (n, C), W (m, C)."""

    objects: FloatArray = field(repr=False)
    items: FloatArray = field(repr=False)
    n_iterations: int


def labels(
    params: CoClustering, X: FloatArray, trace: Trace[CoClustering] | None
) -> IntArray:
    """Return the clusters of the objects from the same U(0)."""
    return strongest(run(params, X, trace).objects, kernels.TIE)


def run(
    params: CoClustering, X: FloatArray, trace: Trace[CoClustering] | None
) -> Pooled:
    """Return FCCM (equations 2 and 3) on X (n, m), rows as they travelled."""
    rng = trace.session.generator("fccm", "start") if trace else generator(0, "fccm")
    R = csr_array(X)
    U = kernels.first_memberships(R.shape[0], params.n_clusters, rng)
    n_iterations = 0
    while n_iterations < params.max_iter:
        W = kernels.item_memberships(kernels.item_exponents(R, U, params.lambda_w))
        before, U = (
            U,
            kernels.object_memberships(kernels.aggregation(R, W), params.lambda_u),
        )
        n_iterations += 1
        if np.abs(U - before).max() <= params.tol:
            break
    return Pooled(objects=U, items=W, n_iterations=n_iterations)

"""k-means on the pooled features: what the fidelity of `pqmds` is measured by."""

from __future__ import annotations

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.contract import Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import generator
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import kernels, messages
from .params import ProductQuantisation


def labels(
    params: ProductQuantisation, X: FloatArray, trace: Trace[ProductQuantisation] | None
) -> IntArray:
    """Return labels of k-means on X in the units of ``scaling``, from the same rows.

    Whatever ``normalise`` says: what `minmax` does to distances counts as lost.
    """
    Z = kernels.scale_rows(params, X)
    summary = trace.summary_as(messages.Summary) if trace else None
    if summary is None:
        rng = generator(0, "pqmds", "pooled")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
    else:
        starts = summary.starts
    return kmeans(Z, starts, params.max_iter).labels


def objectives(
    params: ProductQuantisation,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[ProductQuantisation],
) -> Objectives | None:
    """Return the inertia of k-means on the features."""
    del trace
    Z = kernels.scale_rows(params, X)
    return pooled_objectives.of_kmeans(Z, clustered[0], params.n_clusters)

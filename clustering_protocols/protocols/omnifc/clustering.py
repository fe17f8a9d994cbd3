"""What the analyst runs on squared distances, and what is run on pooled data beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import pdist

from clustering_protocols.algorithms.condensed_distances import n_rows, square
from clustering_protocols.algorithms.dbscan import dbscan, knee
from clustering_protocols.algorithms.density import (
    dbscan_of_rows,
    hdbscan,
    knee_of_rows,
)
from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.algorithms.hierarchical import hierarchical
from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.kmedoids import draw_medoids, kmedoids
from clustering_protocols.algorithms.neighbors import DistanceNeighbors
from clustering_protocols.algorithms.nmf import nmf
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import embed_neighbors, spectral_embedding
from clustering_protocols.common.limits import graph_rows
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import limits
from .params import OmniFC

_WITHIN = 1 + 1e-6
"""A distance that equals eps but for quantisation and rounding counts as within it."""

Generators = Callable[[str], np.random.Generator]
"""Gives the generator of ``starts``, ``embedding``, ``factor`` or ``representatives``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterLabels:
    """Labels (n,), and what else an algorithm leaves.

    starts: int64 (n_init, n_clusters); row numbers; empty where the algorithm takes
        none.
    memberships: float64 (n, n_clusters).
    n_coinciding: how many clusters of fuzzy_cmeans equal one of a lower number, else 0.
    eps: of dbscan, else 0.
    n_iter, converged: of kmeans.
    """

    labels: IntArray = field(repr=False)
    starts: IntArray = field(
        default_factory=lambda: np.empty((0, 0), dtype=np.int64), repr=False
    )
    memberships: FloatArray | None = field(default=None, repr=False)
    n_coinciding: int = 0
    eps: float = 0.0
    n_iter: int | None = None
    converged: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringInput:
    """What an algorithm sees, the same for any number of clusters: one of the two.

    rows: float64 (n, width).
    distances: float64 (n (n - 1) / 2,); condensed.
    """

    rows: FloatArray | None = field(default=None, repr=False)
    distances: FloatArray | None = field(default=None, repr=False)


def build_clustering_input(
    params: OmniFC, squared: FloatArray | None, X: FloatArray
) -> ClusteringInput:
    """Return what an algorithm sees of distances.

    squared: float64 (n (n - 1) / 2,); condensed squared distances; overwritten where
        distances are seen. Computed from the rows where they are needed and not given.
    X: float64 (n, width); rows of these distances.
    """
    of_rows = params.algorithm in {"kmeans", "fuzzy_cmeans", "hdbscan"}
    in_linear_size = of_rows or params.algorithm in {"spectral", "dbscan"}
    if params.features == "embedding" and (
        of_rows or (params.distances == "landmarks" and in_linear_size)
    ):
        return ClusteringInput(rows=X)
    if squared is None:
        squared = pdist(X, "sqeuclidean")
    distances = np.sqrt(squared, out=squared)
    if params.features == "distance_rows":
        rows = square(distances)
        if of_rows or params.algorithm == "nmf":
            return ClusteringInput(rows=rows)
        distances = pdist(rows)
    return ClusteringInput(distances=distances)


def clusters(
    params: OmniFC,
    given: ClusteringInput,
    generators: Generators,
    starts: IntArray | None = None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Return clusters of what is seen.

    starts: int64 (n_init, n_clusters); instead of drawn ones.
    engine: works on blocks of many rows.
    """
    if given.rows is not None:
        if params.algorithm in {"dbscan", "hdbscan"}:
            return _of_density(params, given.rows)
        return of_rows(params, given.rows, generators, starts, engine)
    distances = given.distances
    if distances is None:
        raise ValueError("neither rows nor distances are seen")
    if params.algorithm == "spectral":
        return _spectral(params, distances, generators, starts)
    if params.algorithm == "dbscan":
        eps = params.eps or knee(distances, params.min_samples)
        labels = dbscan(distances, eps * _WITHIN, params.min_samples)
        return ClusterLabels(labels=labels, eps=eps)
    if params.algorithm == "hierarchical":
        return ClusterLabels(labels=hierarchical(distances, params.k, params.linkage))
    return _kmedoids(params, distances, generators, starts)


def of_rows(
    params: OmniFC,
    X: FloatArray,
    generators: Generators,
    starts: IntArray | None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Return clusters by kmeans, fuzzy_cmeans, spectral or nmf of rows X (n, width).

    nmf is k-means of the rows of W, where X ≈ W H. spectral of many rows is that of some
    which stand for all.
    """
    some = None
    if params.samples_rows(len(X)):  # drawn here, among which no given start is
        given, rng = ArrayRows(X), generators("representatives")
        some = Representatives.draw(given, graph_rows(len(X)), rng, engine)
        X, starts = some.V, None
    if params.algorithm == "spectral":
        X = spectral_embedding(X, params.k, generators("embedding"))
    if params.algorithm == "nmf":
        seed = int(generators("factor").integers(2**31))
        X = nmf(X, params.k, params.max_iter, seed)
    if starts is None:
        starts = draw_starts(X, params.k, params.n_init, generators("starts"), engine)
    if params.algorithm == "fuzzy_cmeans":
        fuzzy = fuzzy_cmeans(X, starts, params.exponent, params.max_iter)
        return ClusterLabels(
            labels=fuzzy.labels,
            starts=starts,
            memberships=fuzzy.memberships,
            n_coinciding=fuzzy.n_coinciding,
        )
    found = kmeans(X, starts, params.max_iter, engine)
    return _of_kmeans(found if some is None else some.spread(found))


def _of_density(params: OmniFC, X: FloatArray) -> ClusterLabels:
    if params.algorithm == "hdbscan":
        return ClusterLabels(
            labels=hdbscan(X, params.min_cluster_size, params.min_samples)
        )
    eps = params.eps or knee_of_rows(X, params.min_samples)
    labels = dbscan_of_rows(
        X, eps * _WITHIN, params.min_samples, limits.neighbor_pairs(params, *X.shape)
    )
    return ClusterLabels(labels=labels, eps=eps)


def _of_kmeans(found: Clustering) -> ClusterLabels:
    return ClusterLabels(
        labels=found.labels,
        starts=found.starts,
        n_iter=found.n_iter,
        converged=found.converged,
    )


def _spectral(
    params: OmniFC,
    distances: FloatArray,
    generators: Generators,
    starts: IntArray | None,
) -> ClusterLabels:
    neighbors, n = DistanceNeighbors(distances), n_rows(distances)
    Z = embed_neighbors(neighbors, n, params.k, generators("embedding"))
    if starts is None:
        starts = draw_starts(Z, params.k, params.n_init, generators("starts"))
    return _of_kmeans(kmeans(Z, starts, params.max_iter))


def _kmedoids(
    params: OmniFC,
    distances: FloatArray,
    generators: Generators,
    starts: IntArray | None,
) -> ClusterLabels:
    n = n_rows(distances)
    if starts is None:
        starts = draw_medoids(n, params.k, params.n_init, generators("starts"))
    found = kmedoids(distances, starts, params.max_iter)
    return ClusterLabels(labels=found.labels, starts=starts)

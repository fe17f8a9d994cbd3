"""The same clustering on the pooled features, by which fidelity is measured."""

from __future__ import annotations

import numpy as np

from clustering_protocols.contract import Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import generator
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import clustering, feature_scale, messages
from .params import OmniFC, OmniSession


def labels(params: OmniFC, X: FloatArray, trace: Trace[OmniFC] | None) -> IntArray:
    """Return labels of the same algorithm on X, with the same scaling and starts.

    On the features themselves, whatever ``features`` says: what is lost on rows of
    distances is then seen.
    """
    Z = scale(params, X, None if trace is None else trace.session)
    params = params.settle(*X.shape).model_copy(update={"features": "embedding"})
    summary = trace.summary_as(messages.Summary) if trace else None
    starts = summary.starts if summary else None

    def generators(use: str) -> np.random.Generator:
        return generator(0, "omnifc", "pooled", use)

    if params.algorithm == "nmf":
        Z = Z - Z.min(axis=0)  # no negative numbers
        return clustering.of_rows(params, Z, generators, starts).labels
    seen = clustering.build_clustering_input(params, None, Z)
    return clustering.clusters(params, seen, generators, starts).labels


def scale(
    params: OmniFC, X: FloatArray, session: OmniSession | None = None
) -> FloatArray:
    """Return X in the units that the parties agree on.

    Without a session, declared ranges are those of X.
    """
    if params.scaling == "unit_norm":
        return feature_scale.by_length(X)
    if params.ranges == "declared" and session is not None:
        return (
            X
            * feature_scale.build_declared_scale(
                params.scaling, session.bounds(session.slots[0])
            ).factor
        )
    ranges = X.max(axis=0) - X.min(axis=0)
    spread = np.where(ranges > 0, X.std(axis=0), 0.0)
    return X * feature_scale.factors(params.scaling, spread, ranges)


def objectives(
    params: OmniFC,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[OmniFC],
) -> Objectives | None:
    """Return the objective of k-means, fuzzy c-means or k-medoids; else None."""
    Z, (labels, U) = scale(params, X, trace.session), clustered
    if params.algorithm == "kmeans":
        return pooled_objectives.of_kmeans(Z, labels, params.k)
    if params.algorithm == "kmedoids":
        return pooled_objectives.of_medoids(Z, labels, params.k)
    if params.algorithm == "fuzzy_cmeans" and U is not None:
        return pooled_objectives.of_fuzzy(Z, U, params.exponent)
    return None

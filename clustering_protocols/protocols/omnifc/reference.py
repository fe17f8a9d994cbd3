"""Pooled clustering with which sessions of `omnifc` are compared, and examples.

The examples use synthetic data with three groups of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import seeded_generator
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout

from . import analyst, messages, units
from .params import OmniFC, OmniSession


def cluster_pooled(
    params: OmniFC, X: FloatArray, trace: Trace[OmniFC] | None
) -> IntArray:
    """Cluster X with the session's algorithm, scaling and starts; return labels.

    Rows are clustered by their features even if ``features`` is 'distance_rows', so
    that the comparison shows what this option costs.
    """
    Z = scale(params, X, None if trace is None else trace.session)
    params = params.resolve_sizes(*X.shape).model_copy(update={"features": "embedding"})
    summary = trace.summary_as(messages.Summary) if trace else None
    starts = summary.starts if summary else None

    generators = partial(seeded_generator, 0, "omnifc", "pooled")
    if params.algorithm == "nmf":
        Z = Z - Z.min(axis=0)  # nmf requires non-negative numbers
        return analyst.clusters_of_rows(params, Z, generators, starts).labels
    clustering_input = analyst.build_clustering_input(params, None, Z)
    return analyst.compute_clusters(params, clustering_input, generators, starts).labels


def scale(
    params: OmniFC, X: FloatArray, session: OmniSession | None = None
) -> FloatArray:
    """Return X in the units that the parties agree on.

    Without a session, the ranges of X replace the declared ones.
    """
    if params.scaling == "unit_norm":
        return units.normalise_rows(X)
    if params.ranges == "declared" and session is not None:
        bounds = session.bounds(session.slots[0])
        return X * units.build_declared_scale(params.scaling, bounds).factor
    ranges = X.max(axis=0) - X.min(axis=0)
    spread = np.where(ranges > 0, X.std(axis=0), 0.0)
    return X * units.factors(params.scaling, spread, ranges)


def objectives(
    params: OmniFC,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[OmniFC],
) -> Objectives | None:
    """Compare the session's objective with that of pooled runs.

    Returns None if the method has no objective; k-means, fuzzy c-means and k-medoids do.
    """
    Z, (labels, U) = scale(params, X, trace.session), clustered
    if params.algorithm == "kmeans":
        return pooled_objectives.compare_kmeans(Z, labels, params.k)
    if params.algorithm == "kmedoids":
        return pooled_objectives.compare_kmedoids(Z, labels, params.k)
    if params.algorithm == "fuzzy_cmeans" and U is not None:
        return pooled_objectives.compare_fuzzy_cmeans(Z, U, params.exponent)
    return None


_WIDTH = 5


def examples() -> Sequence[Example[OmniFC]]:
    """Return the defaults, the paper's l = t = 2, and each alternative at least once."""
    return [
        _example(3, n_clusters=3),
        _example(7, n_clusters=3, segments=2, noise=2, algorithm="spectral"),
        _example(6, n_clusters=3, segments=2, algorithm="hierarchical"),
        _example(
            4,
            n_clusters=3,
            hide_segments=False,
            algorithm="fuzzy_cmeans",
            scaling="none",
            ranges="declared",
        ),
        _example(
            3,
            n_clusters=3,
            algorithm="nmf",
            features="distance_rows",
            scaling="minmax",
        ),
        _example(5, noise=2, algorithm="dbscan", scaling="none", eps=4.0),
        _example(3, n_clusters=3, algorithm="kmedoids", scaling="unit_norm", bits=20),
        _example(3, n_clusters=3, distances="landmarks"),
        _example(
            6,
            algorithm="hdbscan",
            distances="landmarks",
            segments=2,
            hide_segments=False,
            min_cluster_size=8,
        ),
    ]


def _example(n_parties: int, **values: Any) -> Example[OmniFC]:
    params, X = OmniFC(**values), _draw_rows(np.random.default_rng(0))
    schema = numeric_schema([f"x{index}" for index in range(_WIDTH)], -40.0, 40.0)
    return Example(
        params=params,
        layout=Layout.lattice(n_parties),
        X=X,
        sections={"dictionary": [schema]} if params.ranges == "declared" else {},
    )


def _draw_rows(rng: np.random.Generator) -> FloatArray:
    centres = 5.0 * rng.normal(size=(3, _WIDTH))
    return centres[rng.integers(3, size=84)] + rng.normal(size=(84, _WIDTH))

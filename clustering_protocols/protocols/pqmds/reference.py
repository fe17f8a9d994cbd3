"""K-means of pooled rows with which sessions of `pqmds` are compared, and examples.

The examples use synthetic data with two or three groups of rows and features in different
units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import seeded_generator
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema, numeric_schema
from clustering_protocols.terms.terms import Layout

from . import maths, messages
from .params import Privacy, ProductQuantisation


def cluster_pooled(
    params: ProductQuantisation, X: FloatArray, trace: Trace[ProductQuantisation] | None
) -> IntArray:
    """Run k-means on X, in units of ``scaling``, from the session's starts.

    ``normalise`` is ignored, so that changes of distances by `minmax` count as a loss.
    """
    Z = maths.scale_rows(params, X)
    summary = trace.summary_as(messages.Summary) if trace else None
    if summary is None:
        rng = seeded_generator(0, "pqmds", "pooled")
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
    """Compare the session's inertia on the features with that of pooled k-means."""
    del trace
    Z = maths.scale_rows(params, X)
    return pooled_objectives.compare_kmeans(Z, clustered[0], params.n_clusters)


_WIDTH = 13
_FARTHEST = 40.0


def examples() -> Sequence[Example[ProductQuantisation]]:
    """Return the defaults, the paper's setting, and each alternative at least once."""
    X = _draw_rows(np.random.default_rng(0))
    pair = _draw_rows(np.random.default_rng(0), 2)
    return [
        _example(X, 2, codebook_size=16),
        _example(
            X, 3, sub_dim=1, codebook_size=10, normalise="minmax", weights="centres"
        ),
        # of two groups: two clusters of three groups can be chosen almost equally well
        _example(pair, 4, n_clusters=2, sub_dim=8, coordinates=1, codebook_size=4),
        _example(X, 5, coordinates=1, codebook_size=200, scaling="none"),
        _example(X, 6, privacy=Privacy(mechanism="laplace", epsilon=300.0)),
        _example(X, 2, coordinates=2, codebook_size=16, normalise="minmax"),
        # all coordinates, also of a fifth feature; more than three centres can span
        _example(
            X,
            3,
            sub_dim=4,
            coordinates=4,
            codebook_size=3,
            privacy=Privacy(mechanism="laplace", epsilon=400.0),
        ),
        _example(
            X, 3, missing=0.1, codebook_size=8, alignment=Alignment(method="ecdh")
        ),
        _prepared_example(X),
        _example(X[:60], 3, missing=0.1, codebook_size=8, alignment=BY_MATCH_KEYS),
    ]


def _example(
    X: FloatArray, parties: int, *, missing: float = 0.0, **values: Any
) -> Example[ProductQuantisation]:
    """Return an example, with a dictionary if it has noise."""
    params = ProductQuantisation(**{"n_clusters": 3} | values)
    names = np.array_split([f"x{index}" for index in range(_WIDTH)], parties)
    schemas = [numeric_schema(group.tolist(), -_FARTHEST, _FARTHEST) for group in names]
    noisy = params.privacy.mechanism != "none"
    return Example(
        params=params,
        layout=Layout.lattice(1, parties),
        X=X,
        missing=missing,
        sections={"dictionary": schemas} if noisy else {},
    )


def _prepared_example(X: FloatArray) -> Example[ProductQuantisation]:
    """Return an example with noise on columns made from levels, logarithms and weights."""
    fields = X[:, :3].copy()
    fields[:, 0] = np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])
    fields[:, 1] = np.abs(X[:, 1])
    schema = Schema(
        fields=(
            Field(name="ward", type="string", categories=("a", "b", "c")),
            Field(name="dose", constraints=Constraints(minimum=0, maximum=_FARTHEST)),
            *numeric_schema(["crp"], -_FARTHEST, _FARTHEST).fields,
        )
    )
    treatments = (Treatment(name="dose", log1p=True), Treatment(name="crp", weight=2.0))
    return Example(
        params=ProductQuantisation(
            n_clusters=3,
            codebook_size=8,
            privacy=Privacy(mechanism="laplace", epsilon=300.0),
        ),
        layout=Layout.lattice(1, 1),
        X=fields,
        sections={
            "dictionary": [schema],
            "preparation": [Preparation(fields=treatments)],
        },
    )


def _draw_rows(rng: np.random.Generator, n_groups: int = 3) -> FloatArray:
    centres = 4.0 * rng.normal(size=(n_groups, _WIDTH))
    rows: FloatArray = centres[rng.integers(n_groups, size=120)] + rng.normal(
        size=(120, _WIDTH)
    )
    return rows * (1.0 + np.arange(_WIDTH) / 4)

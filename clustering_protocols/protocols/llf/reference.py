"""Examples of `llf`, and the same clustering of the pooled rows as a reference.

The examples are synthetic: three groups of rows, and features in different units. The
pooled run is plain numpy in float64 on a single matrix. It shares the initial
centroids, the perturbations of empty clusters and the rule for coinciding centroids
with sessions, but not their kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import KeyedStream, seeded_generator
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.shared_stages.scaling import build_scaler
from clustering_protocols.shared_stages.secrets import RowSecret, key_for
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema, numeric_schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout

from . import messages
from .maths import (
    draw_perturbation,
    move_centroids,
    perturbation_label,
    public_perturbation,
)
from .params import LlfSession, LosslessFederated as Llf

_Trace = Trace[Llf]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledRun:
    """The result of a run on the pooled rows; its centroids are in scaled units."""

    labels: IntArray = field(repr=False)
    centroids: FloatArray = field(repr=False)
    memberships: FloatArray = field(repr=False)
    n_updates: int


def cluster_pooled(params: Llf, X: FloatArray, trace: _Trace | None) -> IntArray:
    """Return the labels that the session's algorithm gives X from the session's start."""
    return run_pooled(params, X, trace).labels


def run_pooled(params: Llf, X: FloatArray, trace: _Trace | None) -> PooledRun:
    """Run the session's algorithm on X (n, m), with columns ordered by column group."""
    params = params.resolve_sizes(*X.shape)
    if trace is None:
        Z = _scale_features(params, X, None)
        seed = int(seeded_generator(0, "llf", "pooled").integers(2**31))
        V = kmeans_plusplus(Z, params.n_clusters, random_state=seed)[0]
        return _run_updates(params, Z, V, None)
    Z = _scale_features(params, X, trace.session)
    return _run_updates(params, Z, _session_centroids(trace, StartCentroids), trace)


def _session_centroids(
    trace: _Trace,
    kind: type[StartCentroids | messages.Centroids | messages.OwnCentroids],
) -> FloatArray:
    blocks = []
    for group in trace.session.layout.column_groups:
        block = trace.memories[group[0]].get(kind)
        if block is None:
            raise ValueError(f"the trace holds no {kind.kind!r}")
        blocks.append(block.centroids)
    return np.hstack(blocks)


def _splits_rows(trace: _Trace | None) -> bool:
    return trace is None or trace.session.layout.n_column_groups == 1


def _scale_features(
    params: Llf, X: FloatArray, session: LlfSession | None
) -> FloatArray:
    if params.scaling == "none":
        return X
    if params.scaling == "standard":
        spread = X.std(axis=0)
        constant = X.max(axis=0) == X.min(axis=0)
        scaled: FloatArray = (X - X.mean(axis=0)) / np.where(constant, 1.0, spread)
        return scaled
    low, high = X.min(axis=0), X.max(axis=0)
    if session is not None:
        ranges = [session.bounds(group[0]) for group in session.layout.column_groups]
        low, high = (np.concatenate(ends) for ends in zip(*ranges, strict=True))
    minmax: FloatArray = (X - low) / np.where(high > low, high - low, 1.0)
    return minmax


def _run_updates(
    params: Llf,
    Z: FloatArray,
    V: FloatArray,
    trace: _Trace | None,
) -> PooledRun:
    unit = np.ones(V.shape[1])
    if trace is not None:
        columns = range(trace.session.layout.n_column_groups)
        scalers = [build_scaler(trace.session, column, None) for column in columns]
        unit = np.concatenate([scale.step for scale in scalers])
    V = equalise_coordinates(V, unit)
    rows_split = _splits_rows(trace)
    minimum = params.min_rows_to_move_centroid if rows_split else 1
    before = None
    n_updates = 0
    while n_updates < params.max_iter:
        D = cdist(Z, V, "sqeuclidean")
        if not rows_split and before is not None and _has_converged(params, D, before):
            break
        before = D
        n_updates += 1
        degrees = _memberships(params, D) ** (params.exponent if params.fuzzy else 1)
        step = _perturbation(trace, n_updates, V.shape)
        sums, weights = degrees.T @ Z, degrees.sum(axis=0)
        V, moved = move_centroids(V, sums, weights, step, unit, minimum)
        if rows_split and moved <= params.tol:
            break
    D = cdist(Z, V, "sqeuclidean")
    return PooledRun(
        labels=np.argmin(D, axis=1).astype(np.int64),
        centroids=V,
        memberships=_memberships(params, D),
        n_updates=n_updates,
    )


def _has_converged(params: Llf, D: FloatArray, before: FloatArray) -> bool:
    if params.fuzzy:
        return bool(np.linalg.norm(np.sqrt(D) - np.sqrt(before)) <= params.tol)
    return bool((D.argmin(axis=1) == before.argmin(axis=1)).all())


def _memberships(params: Llf, D: FloatArray) -> FloatArray:
    """Return memberships (n, k) by equation 6; they are 0 or 1 for hard c-means."""
    if not params.fuzzy:
        hard: FloatArray = np.eye(D.shape[1])[D.argmin(axis=1)]
        return hard
    smallest = D.min(axis=1, keepdims=True)
    is_near = smallest == D
    ratios = np.where(is_near, 1.0, smallest / np.where(is_near, 1.0, D))
    ratios **= 1.0 / (params.exponent - 1.0)
    degrees: FloatArray = ratios / ratios.sum(axis=1, keepdims=True)
    return degrees


def _perturbation(
    trace: _Trace | None, number: int, shape: tuple[int, ...]
) -> FloatArray:
    if trace is None:
        rng = seeded_generator(0, "llf", "pooled", "nudge", number)
        return 1e-3 * rng.normal(size=shape)
    session = trace.session
    if _splits_rows(trace):
        return public_perturbation(session, number, build_scaler(session, 0, None))
    secret = trace.memories[session.slots[0]].get(RowSecret)
    if secret is None:
        raise ValueError("the trace holds no secret of the row group")
    steps = []
    for column in range(session.layout.n_column_groups):
        key = key_for(session, secret.secret, perturbation_label(column, number))
        scale = build_scaler(session, column, None)
        steps.append(draw_perturbation(KeyedStream(key), scale, shape[0]))
    return np.hstack(steps)


def objectives(
    params: Llf,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: _Trace,
) -> Objectives:
    """Compare the inertia of a session, or Σ μ^λ d² if fuzzy, with that of pooled runs.

    If a cluster is so small that sessions do not move it, ten pooled runs by the
    session's rules are compared too.
    """
    labels = clustered[0]
    Z = _scale_features(params, X, trace.session)
    if params.fuzzy:
        kind = messages.Centroids if _splits_rows(trace) else messages.OwnCentroids
        U = _memberships(
            params, cdist(Z, _session_centroids(trace, kind), "sqeuclidean")
        )
        return pooled_objectives.compare_fuzzy_cmeans(Z, U, params.exponent)
    k = params.n_clusters
    plain = pooled_objectives.pooled_kmeans(Z, k)
    own = pooled_objectives.inertia(Z, labels)
    agreement = adjusted_rand(plain.labels, labels)
    minimum = params.min_rows_to_move_centroid if _splits_rows(trace) else 1
    if (
        min(np.bincount(y, minlength=k).min() for y in (plain.labels, labels))
        >= minimum
    ):
        return Objectives(own, plain.inertia, agreement)
    inertias = []
    for number in range(pooled_objectives.N_INIT):
        # the start that a single party with all rows would choose by 'careful'
        stream = KeyedStream(number.to_bytes(32, "big"))
        party = clusters.local_centroids(Z, k, stream)
        V = clusters.merge_centroids(
            party.centroids, party.sizes.astype(np.float64), k, stream
        )
        pooled = _run_updates(params, Z, V, trace)
        inertias.append(pooled_objectives.inertia(Z, pooled.labels))
    return Objectives(own, plain.inertia, agreement, min(inertias))


_WIDTH = 6


def examples() -> Sequence[Example[Llf]]:
    """Return examples of both algorithms, both splits and each option."""
    X, centres = _draw_rows(np.random.default_rng(0))
    fuzzy: dict[str, Any] = {"algorithm": "fuzzy_cmeans", "output": "memberships"}
    bounds: dict[str, Any] = {"scaling": "minmax", "init": "bounds"}
    return [
        _example(X, (3, 1)),
        _example(X[:60], (4, 1), **fuzzy, small_cohorts="allow"),
        _example(X, (5, 1), init="random_party", quorum=3, max_iter=12),
        _example(
            X, (3, 1), **bounds, algorithm="fuzzy_cmeans", fuzzifier=1.7, max_iter=12
        ),
        _example(
            X,
            (2, 1),
            scaling="none",
            init="given",
            initial_centroids=tuple(tuple(map(float, row)) for row in centres),
            allow_two_parties=True,
        ),
        _example(X, (1, 3)),
        _example(X, (1, 3), **fuzzy, tol=1e-3),
        _example(X, (1, 2), **bounds, allow_two_parties=True, publish="nothing"),
        _example(
            X,
            (2, 1),
            sections={"evaluation": Evaluation(n_clusters=(2, 3))},
            allow_two_parties=True,
            publish="sizes",
        ),
        _example(X, (1, 3), missing=0.1, alignment=Alignment(method="ecdh")),
        _prepared_example(X),
        _example(X[:60], (1, 3), missing=0.1, alignment=BY_MATCH_KEYS),
    ]


def _example(
    X: FloatArray,
    cells: tuple[int, int],
    *,
    missing: float = 0.0,
    sections: Mapping[str, Any] | None = None,
    **values: Any,
) -> Example[Llf]:
    params, layout = Llf(n_clusters=3, **values), Layout.lattice(*cells)
    sections = dict(sections or {})
    if params.scaling != "standard" or params.init == "bounds":
        columns = [f"x{index}" for index in range(_WIDTH)]
        names = np.array_split(columns, layout.n_column_groups)
        schemas = [numeric_schema(group.tolist(), -60.0, 60.0) for group in names]
        sections["dictionary"] = schemas
    return Example(
        params=params, layout=layout, X=X, missing=missing, sections=sections
    )


def _prepared_example(X: FloatArray) -> Example[Llf]:
    fields = X[:, :4].copy()
    fields[:, 1] = np.round(fields[:, 1])
    fields[:, 2] = np.searchsorted(np.quantile(X[:, 2], [1 / 3, 2 / 3]), X[:, 2])
    fields[np.random.default_rng(1).random(fields.shape) < 0.1] = np.nan
    bounds = Constraints(minimum=-100, maximum=100)
    schema = Schema(
        fields=(
            Field(name="dose"),
            Field(name="score", type="integer", constraints=bounds),
            Field(name="ward", type="string", categories=("c", "a", "b")),
            Field(name="crp"),
        )
    )
    preparation = Preparation(
        fields=(
            Treatment(name="dose", missing="mean", indicator=True),
            Treatment(name="score", missing="median", weight=0.5),
            Treatment(name="ward", missing="most_frequent"),
            Treatment(name="crp", missing="drop"),
        )
    )
    return Example(
        params=Llf(n_clusters=3),
        layout=Layout.lattice(3),
        X=fields,
        sections={
            "dictionary": [schema],
            "preparation": [preparation],
            "release": Release(profiles="everybody"),
        },
    )


def _draw_rows(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    units = np.array([1.0, 3.0, 0.1, 1.0, 2.0, 0.5])
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    rows = centres[rng.integers(3, size=150)] + rng.normal(size=(150, _WIDTH))
    return rows * units, centres * units

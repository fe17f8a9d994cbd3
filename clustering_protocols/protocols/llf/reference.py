"""What `llf` is shown on and measured by: examples, and the same clustering of pooled rows.

Examples are made data: three groups of rows, features of different units. The pooled
run is plain numpy in float64, one matrix, no parties: it shares nothing with the compiled
passes but the start, the nudges of empty clusters and what counts as coinciding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import KeyedStream, generator
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.params import BY_MATCH_KEYS, Alignment
from clustering_protocols.shared_stages.scaling import scaler
from clustering_protocols.shared_stages.secrets import RowSecret, key_from
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema, numbers
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout

from . import messages
from .maths import drawn_nudge, move, nudge, nudge_purpose
from .params import LlfSession, LosslessFederated as Llf

_Trace = Trace[Llf]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledRun:
    """How a pooled run went; centroids in scaled units."""

    labels: IntArray = field(repr=False)
    centroids: FloatArray = field(repr=False)
    memberships: FloatArray = field(repr=False)
    n_updates: int


def cluster_pooled(params: Llf, X: FloatArray, trace: _Trace | None) -> IntArray:
    """Return the labels of the same algorithm on X, from the same start."""
    return run(params, X, trace).labels


def run(params: Llf, X: FloatArray, trace: _Trace | None) -> PooledRun:
    """Return the same clustering of X (n, m), columns by column group."""
    params = params.settle(*X.shape)
    if trace is None:
        Z = _scale_features(params, X, None)
        seed = int(generator(0, "llf", "pooled").integers(2**31))
        V = kmeans_plusplus(Z, params.n_clusters, random_state=seed)[0]
        return _updates(params, Z, V, None)
    session = trace.session
    Z = _scale_features(params, X, session)
    V = np.hstack([_start(trace, g[0]) for g in session.layout.column_groups])
    return _updates(params, Z, V, trace)


def _start(trace: _Trace, slot: str) -> FloatArray:
    start = trace.memories[slot].get(messages.StartCentroids)
    if start is None:
        raise ValueError("the trace holds no start")
    return start.centroids


def _n_columns(session: LlfSession) -> int:
    return session.layout.n_column_groups


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


def _updates(
    params: Llf,
    Z: FloatArray,
    V: FloatArray,
    trace: _Trace | None,
) -> PooledRun:
    unit = _unit(trace, V.shape[1])
    V = equalise_coordinates(V, unit)
    rows_split = trace is None or _n_columns(trace.session) == 1
    least = params.least_rows_moved if rows_split else 1
    before = None
    n_updates = 0
    while n_updates < params.max_iter:
        D = cdist(Z, V, "sqeuclidean")
        if not rows_split and before is not None and _rests(params, D, before):
            break
        before = D
        n_updates += 1
        degrees = _memberships(params, D) ** (params.exponent if params.fuzzy else 1)
        step = _nudge(trace, n_updates, V.shape)
        sums, weights = degrees.T @ Z, degrees.sum(axis=0)
        V, moved = move(V, sums, weights, step, unit, least)
        if rows_split and moved <= params.tol:
            break
    D = cdist(Z, V, "sqeuclidean")
    return PooledRun(
        labels=np.argmin(D, axis=1).astype(np.int64),
        centroids=V,
        memberships=_memberships(params, D),
        n_updates=n_updates,
    )


def _rests(params: Llf, D: FloatArray, before: FloatArray) -> bool:
    if params.fuzzy:
        return bool(np.linalg.norm(np.sqrt(D) - np.sqrt(before)) <= params.tol)
    return bool((D.argmin(axis=1) == before.argmin(axis=1)).all())


def _memberships(params: Llf, D: FloatArray) -> FloatArray:
    """Return degrees (n, k), equation 6; 0 and 1 for c-means."""
    if not params.fuzzy:
        hard: FloatArray = np.eye(D.shape[1])[D.argmin(axis=1)]
        return hard
    smallest = D.min(axis=1, keepdims=True)
    near = smallest == D
    ratios = np.where(near, 1.0, smallest / np.where(near, 1.0, D))
    ratios **= 1.0 / (params.exponent - 1.0)
    degrees: FloatArray = ratios / ratios.sum(axis=1, keepdims=True)
    return degrees


def _nudge(trace: _Trace | None, number: int, shape: tuple[int, ...]) -> FloatArray:
    if trace is None:
        rng = generator(0, "llf", "pooled", "nudge", number)
        return 1e-3 * rng.normal(size=shape)
    session = trace.session
    if _n_columns(session) == 1:
        return nudge(session, 0, number, scaler(session, 0, None))
    secret = trace.memories[session.slots[0]].get(RowSecret)
    if secret is None:
        raise ValueError("the trace holds no secret of the row group")
    steps = []
    for column in range(_n_columns(session)):
        key = key_from(session, secret.secret, nudge_purpose(column, number))
        scale = scaler(session, column, None)
        steps.append(drawn_nudge(KeyedStream(key), scale, shape[0]))
    return np.hstack(steps)


def _unit(trace: _Trace | None, width: int) -> FloatArray:
    if trace is None:
        return np.ones(width)
    session = trace.session
    columns = range(_n_columns(session))
    return np.concatenate([scaler(session, column, None).step for column in columns])


def objectives(
    params: Llf,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: _Trace,
) -> Objectives:
    """Return the inertia, or Σ μ^λ d²; the rule keeps c-means clusters of few rows."""
    labels = clustered[0]
    Z = _scale_features(params, X, trace.session)
    if params.fuzzy:
        ended = _memberships(params, cdist(Z, _end(trace), "sqeuclidean"))
        return pooled_objectives.of_fuzzy(Z, ended, params.exponent)
    k = params.n_clusters
    plain = pooled_objectives.cluster(Z, k)
    own = pooled_objectives.inertia(Z, labels)
    agreement = adjusted_rand(plain.labels, labels)
    rows_split = _n_columns(trace.session) == 1
    least = params.least_rows_moved if rows_split else 1
    smallest = min(
        np.bincount(each, minlength=k).min() for each in (plain.labels, labels)
    )
    if smallest >= least:
        return Objectives(own, plain.inertia, agreement)
    runs = [
        _updates(params, Z, _start_by_rules(Z, k, lane), trace).labels
        for lane in range(pooled_objectives.N_INIT)
    ]
    best = min(pooled_objectives.inertia(Z, found) for found in runs)
    return Objectives(own, plain.inertia, agreement, best)


def _start_by_rules(Z: FloatArray, k: int, lane: int) -> FloatArray:
    """Return the start `careful` (k, m) of one party that holds all rows."""
    stream = KeyedStream(lane.to_bytes(32, "big"))
    own = clusters.local_centroids(Z, k, stream)
    return clusters.merge(own.centroids, own.sizes.astype(np.float64), k, stream)


def _end(trace: _Trace) -> FloatArray:
    """Return the final centroids of a session, in scaled units."""
    groups, found = trace.session.layout.column_groups, []
    kind: type[messages.Centroids | messages.OwnCentroids]
    kind = messages.Centroids if len(groups) == 1 else messages.OwnCentroids
    for group in groups:
        ended = trace.memories[group[0]].get(kind)
        if ended is None:
            raise ValueError("the trace holds no centroids")
        found.append(ended.centroids)
    return np.hstack(found)


_WIDTH = 6


def examples() -> Sequence[Example[Llf]]:
    """Return both algorithms on split rows and columns, each alternative once."""
    X, centres = _draw_rows(np.random.default_rng(0))
    start = tuple(tuple(map(float, row)) for row in centres)
    variants = (
        ((3, 1), Llf(n_clusters=3)),
        (
            (4, 1),
            Llf(
                n_clusters=3,
                algorithm="fuzzy_cmeans",
                output="memberships",
                small_cohorts="allow",
            ),
        ),
        (
            (5, 1),
            Llf(
                n_clusters=3,
                init="random_party",
                participation=0.6,
                quorum=3,
                max_iter=12,
            ),
        ),
        (
            (3, 1),
            Llf(
                n_clusters=3,
                algorithm="fuzzy_cmeans",
                fuzzifier=1.7,
                scaling="minmax",
                init="bounds",
                max_iter=12,
            ),
        ),
        (
            (2, 1),
            Llf(
                n_clusters=3,
                scaling="none",
                init="given",
                initial_centroids=start,
                allow_two_parties=True,
            ),
        ),
        ((1, 3), Llf(n_clusters=3)),
        (
            (1, 3),
            Llf(n_clusters=3, algorithm="fuzzy_cmeans", output="memberships", tol=1e-3),
        ),
        (
            (1, 2),
            Llf(
                n_clusters=3,
                scaling="minmax",
                init="bounds",
                allow_two_parties=True,
                publish="nothing",
            ),
        ),
    )
    given = [
        _example(
            params,
            Layout.lattice(*cells),
            X[:60] if params.small_cohorts == "allow" else X,
        )
        for cells, params in variants
    ]
    racing = Llf(n_clusters=3, n_init=2, allow_two_parties=True, publish="sizes")
    aligned = Llf(n_clusters=3, alignment=Alignment(method="ecdh"))
    linked = Llf(n_clusters=3, alignment=BY_MATCH_KEYS)
    return [
        *given,
        Example(
            params=racing,
            layout=Layout.lattice(2),
            X=X,
            sections={"evaluation": Evaluation(n_clusters=(2, 3))},
        ),
        Example(params=aligned, layout=Layout.lattice(1, 3), X=X, missing=0.1),
        _build_prepared(X),
        Example(params=linked, layout=Layout.lattice(1, 3), X=X[:60], missing=0.1),
    ]


def _example(params: Llf, layout: Layout, X: FloatArray) -> Example[Llf]:
    """Return an example, with a dictionary where its parameters need one."""
    bounded = params.scaling != "standard" or params.init == "bounds"
    names = np.array_split(
        [f"x{index}" for index in range(_WIDTH)], layout.n_column_groups
    )
    schemas = [numbers(group.tolist(), -60.0, 60.0) for group in names]
    return Example(
        params=params,
        layout=layout,
        X=X,
        sections={"dictionary": schemas} if bounded else {},
    )


def _build_prepared(X: FloatArray) -> Example[Llf]:
    """Return an example with gaps that are filled, levels and a weight."""
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
    """Return rows and the centres that they were drawn around."""
    units = np.array([1.0, 3.0, 0.1, 1.0, 2.0, 0.5])
    centres = 4.0 * rng.normal(size=(3, _WIDTH))
    rows = centres[rng.integers(3, size=150)] + rng.normal(size=(150, _WIDTH))
    return rows * units, centres * units

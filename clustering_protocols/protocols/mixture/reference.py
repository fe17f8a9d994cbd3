"""Examples of `mixture`, and the same updates of the pooled rows as a reference.

The pooled run is plain numpy on a single matrix. It shares the initial centroids with
the session, but none of the code for sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from clustering_protocols.contract import Example, Trace
from clustering_protocols.numerics.randomness import seeded_generator
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Constraints, Field, Level, Schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout

from . import bound
from .model import Columns
from .params import Mixture

_Trace = Trace[Mixture]


def cluster_pooled(params: Mixture, X: FloatArray, trace: _Trace | None) -> IntArray:
    """Return the labels of X after the session's updates, from the same start."""
    k, start = params.n_clusters, None
    columns, n_updates = Columns(X.shape[1], ()), params.max_iter
    high = np.full(X.shape[1], np.inf)
    if trace is not None:
        slot = trace.session.slots[0]
        columns = bound.session_columns(trace.session)
        n_updates = bound.limit_updates(trace.session)
        high = trace.session.bounds(slot).high
        start = trace.memories[slot].get(StartCentroids)
    numbers, spread, centre = columns.numbers, X.std(axis=0), X.mean(axis=0)
    units = np.where(spread > 0, spread, 1.0)
    Z = (X[:, numbers] - centre[numbers]) / units[numbers]
    H = columns.to_levels((X > 0).astype(np.float64))
    if params.initial_centroids is not None:
        V = np.array(params.initial_centroids)
    elif start is None:
        V = X[seeded_generator(0, "mixture", "pooled").choice(len(X), k)]
    else:
        V = start.centroids.copy()
        V[:, numbers] *= units[numbers]
        V += centre
    means = (V[:, numbers] - centre[numbers]) / units[numbers]
    variances = np.maximum(1.0 - means.var(axis=0), 0.1)
    if params.covariance_type == "spherical":
        variances = np.full(len(numbers), variances.mean() if len(numbers) else 1.0)
    V = V / np.where(np.isfinite(high), high, 1.0)
    shares = columns.to_levels(np.clip(V, 0.0, 1.0))
    for levels, size in zip(columns.level_slices, columns.level_counts, strict=True):
        shares[:, levels] /= shares[:, levels].sum(axis=1, keepdims=True)
        shares[:, levels] = 0.9 * shares[:, levels] + 0.1 / size
    spreads = [np.diag(variances)] * k
    logs = _log_densities((Z, H), np.full(k, 1.0 / k), means, spreads, shares)
    before = None
    for _ in range(n_updates):
        density = logsumexp(logs, axis=1)
        R = np.exp(logs - density[:, None])
        logs = _log_densities_after_update(params, Z, H, R)
        lower = float(density.mean())
        if before is not None and abs(lower - before) < params.tol:
            break
        before = lower
    labels: IntArray = logs.argmax(axis=1).astype(np.int64)
    return labels


def _log_densities(
    rows: tuple[FloatArray, FloatArray],
    weights: FloatArray,
    means: FloatArray,
    spreads: Sequence[FloatArray],
    shares: FloatArray,
) -> FloatArray:
    Z, H = rows
    logs = np.log(weights) + H @ np.log(np.maximum(shares, 1e-15)).T
    if Z.shape[1]:
        for c, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
            logs[:, c] += multivariate_normal.logpdf(Z, mean, spread)
    return logs


def _log_densities_after_update(
    params: Mixture, Z: FloatArray, H: FloatArray, R: FloatArray
) -> FloatArray:
    N = R.sum(axis=0)
    means = R.T @ Z / N[:, None]
    spreads = [
        (r[:, None] * (Z - mean)).T @ (Z - mean) / r.sum()
        for r, mean in zip(R.T, means, strict=True)
    ]
    kind, width = params.covariance_type, Z.shape[1]
    if kind == "tied":
        total = sum(n * s for n, s in zip(N, spreads, strict=True))
        spreads = [total / N.sum()] * len(N)
    elif kind == "diag":
        spreads = [np.diag(np.diag(spread)) for spread in spreads]
    elif kind == "spherical":
        spreads = [np.trace(s) / max(width, 1) * np.eye(width) for s in spreads]
    spreads = [spread + params.reg_covar * np.eye(width) for spread in spreads]
    return _log_densities((Z, H), N / len(Z), means, spreads, R.T @ H / N[:, None])


_PEOPLE = Schema(
    fields=(
        Field(name="age", constraints=Constraints(minimum=0, maximum=120)),
        Field(name="smoker", type="boolean"),
        Field(
            name="ward",
            type="string",
            categories=(Level(value="a"), Level(value="b"), Level(value="c")),
        ),
        Field(name="crp"),
    )
)
_ITEMS = Schema(
    fields=tuple(
        Field(name=f"q{number}", type="string", categories=tuple("abcd"))
        for number in range(8)
    )
)


def examples() -> Sequence[Example[Mixture]]:
    """Return examples of each covariance type, of several runs and of categories."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 2.0, -3.0], [1.0, 7.0, 3.0]])
    shapes = rng.normal(size=(3, 3, 3))
    X = centres[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(600, 3)))
    start = tuple(map(tuple, centres.tolist()))
    mixed = np.column_stack(
        [
            60 + 12 * X[:, 0] / 3,
            rng.random(600) < 0.2 + 0.3 * y,
            (y + (rng.random(600) < 0.2)) % 3,
            np.exp(X[:, 1] / 4),
        ]
    )
    answers = np.where(
        rng.random((600, 8)) < 0.6, (y[:, None] + np.arange(8)) % 4, rng.integers(4)
    ).astype(float)
    answers[:, 7] = 1 + answers[:, 7] % 3  # so that no row is all zeros
    prepared = {"preparation": [Preparation()]}
    people = prepared | {
        "dictionary": [_PEOPLE],
        "release": Release(profiles="members"),
    }
    runs = {"evaluation": Evaluation(n_clusters=(2, 3), choose="bic")}
    return [
        _example(X, max_iter=8),
        _example(
            X,
            n_parties=4,
            covariance_type="tied",
            init="given",
            initial_centroids=start,
            publish="sizes",
        ),
        _example(X, runs, covariance_type="diag", max_iter=5),
        _example(X, covariance_type="spherical"),
        _example(mixed, people, covariance_type="diag"),
        _example(
            np.tile(answers, (4, 1)),
            prepared | {"dictionary": [_ITEMS]},
            n_clusters=2,
            max_iter=6,
        ),
    ]


def _example(
    X: FloatArray,
    sections: Mapping[str, Any] | None = None,
    n_parties: int = 3,
    **values: Any,
) -> Example[Mixture]:
    return Example(
        params=Mixture(**{"n_clusters": 3} | values),
        layout=Layout.lattice(n_parties),
        X=X,
        sections=sections or {},
    )

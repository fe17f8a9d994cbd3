"""Figures of a session beside scikit-learn's of pooled rows, and which k they pick.

    python -m benchmarks.quality [--part equal] [--part picks] [--seeds N]

*equal*: the largest relative difference of each figure from scikit-learn's on pooled,
standardised rows (of `omnifc` on these rows as the parties round them), for k 3 and 7.
*picks*: of runs with k from 2 on, which one the simplified silhouette picks: in a session,
and among clusterings of pooled rows by scikit-learn, seed by seed. Ends with 1 where a
difference is above 1e-9, or a pick is another one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)

from benchmarks.datasets import MissingDataError, load
from clustering_protocols import simulation
from clustering_protocols.contract import Params, Trace
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from clustering_protocols.shared_stages.statistics.moments import PartialMoments
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.terms import Layout

GOAL = 1e-9
EQUAL = ("iris", "wine", "pendigits")
PICKED = {"iris": 10, "wine": 10, "xclara": 10, "s1_deric": 20}
ROWS = 2000


def ways(k: int, n_columns: int) -> Iterator[tuple[str, Params, Layout]]:
    """Yield what a figure is computed by, and over which parties."""
    racing = LosslessFederated(n_clusters=k, n_init=5)
    yield "llf, rows", racing, Layout.lattice(3)
    if n_columns > 2:
        yield "llf, columns", LosslessFederated(n_clusters=k), Layout.lattice(1, 3)
    all_of = DataCollaboration(n_clusters=k, dimensions="all")
    yield "dc, all dimensions", all_of, Layout.lattice(3)
    yield "omnifc", OmniFC(n_clusters=k), Layout.lattice(3)


def standardised(X: Any) -> Any:
    """Return rows in the units in which sessions compare them."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def rounded(X: Any, trace: Trace[Any]) -> Any:
    """Return standardised rows as the parties of `omnifc` round them."""
    memory = next(iter(trace.memories.values()))
    moments, own = memory.get(PooledMoments), memory.get(PartialMoments)
    if moments is None or own is None or trace.summary is None:
        raise ValueError("the trace does not say how rows were rounded")
    lowest = moments.mean - 2.0 ** own.deviation_powers.astype(np.float64)
    spread = np.where(moments.spread > 0, moments.spread, 1.0)
    unit = 2.0 ** trace.summary.values["bits"]
    return np.rint((X - lowest) / spread * unit) / unit


def simplified_silhouette(Z: Any, labels: Any) -> float:
    """Return the mean of (b - a) / max(a, b), a and b the distances to means."""
    clusters, labels = np.unique(labels, return_inverse=True)
    means = np.array([Z[labels == c].mean(axis=0) for c in range(len(clusters))])
    D = np.linalg.norm(Z[:, None] - means[None], axis=2)
    rows = np.arange(len(Z))
    a = D[rows, labels]
    D[rows, labels] = np.inf
    b = D.min(axis=1)
    alone = np.bincount(labels)[labels] == 1
    return float(np.where(alone, 0.0, (b - a) / np.maximum(a, b)).mean())


def expected(Z: Any, labels: Any) -> dict[str, float]:
    """Return the figures of labels on pooled rows."""
    means = [Z[labels == c].mean(axis=0) for c in np.unique(labels)]
    within = [
        ((Z[labels == c] - m) ** 2).sum()
        for c, m in zip(np.unique(labels), means, strict=True)
    ]
    return {
        "inertia": float(sum(within)),
        "simplified_silhouette": simplified_silhouette(Z, labels),
        "silhouette": float(silhouette_score(Z, labels)),
        "calinski_harabasz": float(calinski_harabasz_score(Z, labels)),
        "davies_bouldin": float(davies_bouldin_score(Z, labels)),
    }


def differences(params: Params, layout: Layout, X: Any) -> dict[str, float]:
    """Return how far each figure of a session is from that of its labels, relatively."""
    parts = simulation.split(X, layout, 0)
    found = simulation.evaluate(params, X, parts, 0)
    Z = standardised(X)
    if isinstance(params, OmniFC):
        Z = rounded(X[:, parts.columns[0]], found.simulated.trace)
    # what parties know has all digits, what their leader tells has six
    outcome = next(iter(found.simulated.outcomes.values()))
    (figures,) = outcome.figures or found.simulated.figures
    return {
        name: abs(getattr(figures, name) / value - 1.0)
        for name, value in expected(Z, found.labels).items()
        if getattr(figures, name) is not None
    }


def sample(name: str) -> Any:
    """Return at most 2,000 rows of a set that is to be compared, all that is picked."""
    X, _ = load(name)
    if name in PICKED:
        return X
    return X[np.random.default_rng(0).permutation(len(X))[:ROWS]]


def show_equal() -> bool:
    """Print the largest differences; return whether they reach the goal."""
    print("set         k  way                 figure                 difference")
    reached = True
    for name in EQUAL:
        X = sample(name)
        for k in (3, 7):
            for way, params, layout in ways(k, X.shape[1]):
                for figure, away in differences(params, layout, X).items():
                    print(f"{name:10} {k:2}  {way:18}  {figure:21}  {away:.1e}")
                    reached &= away <= GOAL
    return reached


def pooled_pick(Z: Any, ks: tuple[int, ...], seed: int) -> int:
    """Return the k of the best simplified silhouette on pooled rows."""
    scores = [
        simplified_silhouette(
            Z, KMeans(k, n_init=10, random_state=seed, tol=0).fit_predict(Z)
        )
        for k in ks
    ]
    return ks[int(np.argmax(scores))]


def pick(params: Params, layout: Layout, X: Any, ks: tuple[int, ...], seed: int) -> int:
    """Return the k that a session picks."""
    parts = simulation.split(X, layout, seed)
    runs = Evaluation(n_clusters=ks)
    found = simulation.run(params, layout, parts.data, seed, evaluation=runs)
    return ks[found.chosen]


def show_picks(seeds: int) -> bool:
    """Print which k is picked; return whether it is that of pooled rows each time."""
    print("set         from  to  way                 seed  session  pooled")
    same = True
    for name, largest in PICKED.items():
        X = sample(name)
        Z, ks = standardised(X), tuple(range(2, largest + 1))
        pooled = [pooled_pick(Z, ks, seed) for seed in range(seeds)]
        for way, params, layout in ways(largest, X.shape[1]):
            if way == "llf, columns":
                continue  # it has no silhouette
            for seed in range(seeds):
                k = pick(params, layout, X, ks, seed)
                print(
                    f"{name:10}  {2:4}  {largest:2}  {way:18}  {seed:4}  {k:7}  "
                    f"{pooled[seed]:6}",
                    flush=True,
                )
                same &= k == pooled[seed]
    return same


def main() -> int:
    """Print the parts that are asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=("equal", "picks"))
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    parts = given.part or ["equal", "picks"]
    try:
        reached = [show_equal()] if "equal" in parts else []
        reached += [show_picks(given.seeds)] if "picks" in parts else []
    except MissingDataError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())

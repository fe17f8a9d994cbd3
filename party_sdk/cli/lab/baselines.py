"""Baselines without a session: pooled rows, each party alone, and federated averaging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols import simulation
from clustering_protocols.numerics import scores
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.cli.lab.cases import Case, Document
from party_sdk.lab.parties import regular_layout

_ROUNDS: Final = 20
_LOCAL_STEPS: Final = 5


def compute_baselines(
    cases: Sequence[Case], results: Sequence[Document], seed: int
) -> list[Document]:
    """Return results of k-means without a session, for each table, layout and chosen k.

    ``fidelity`` is the adjusted Rand index to the pooled labels (the mean over parties
    if each clusters alone), ``objective_ratio`` the inertia divided by the pooled
    inertia (None for parties alone, whose clusters differ), and ``truth`` the adjusted
    Rand index to the true classes, or None if they are unknown.
    """
    by_layout = {}
    for case, result in zip(cases, results, strict=True):
        k = result.get("chosen")
        key = (case.file, case.layout, k)
        if k is not None and key not in by_layout and np.isfinite(case.table.X).all():
            by_layout[key] = list(_run_baselines(case, k, seed))
    return [baseline for group in by_layout.values() for baseline in group]


def _run_baselines(case: Case, k: int, seed: int) -> Iterator[Document]:
    X, classes = case.table.X, case.table.classes
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    parts = simulation.split(X, regular_layout(case.lattice), seed)
    best = pooled_objectives.pooled_kmeans(Z, k)

    def score(
        name: str, labellings: Sequence[Labelling], ratio: float | None
    ) -> Document:
        pooled_scores = [
            scores.adjusted_rand(best.labels[r], labels) for r, labels in labellings
        ]
        truth_scores = [
            scores.adjusted_rand(classes[r], labels)
            for r, labels in labellings
            if classes is not None
        ]
        return {
            "file": case.file,
            "layout": case.layout,
            "n_clusters": k,
            "name": name,
            "fidelity": float(np.mean(pooled_scores)),
            "objective_ratio": ratio,
            "truth": float(np.mean(truth_scores)) if truth_scores else None,
        }

    all_rows = np.arange(len(Z))
    yield score("pooled k-means", [(all_rows, best.labels)], 1.0)
    cells = [(parts.rows[s.row], parts.columns[s.column]) for s in parts.layout.slots]
    if min(len(rows) for rows, _ in cells) < k:
        return
    alone = [
        (rows, pooled_objectives.pooled_kmeans(Z[np.ix_(rows, columns)], k).labels)
        for rows, columns in cells
    ]
    yield score("each party alone", alone, None)
    if parts.layout.n_column_groups == 1:
        V = federated_average(
            [Z[rows] for rows, _ in cells], k, np.random.default_rng(seed)
        )
        labels = cdist(Z, V).argmin(axis=1)
        ratio = pooled_objectives.inertia(Z, labels) / max(best.inertia, 1e-300)
        yield score("federated average", [(all_rows, labels)], ratio)


Labelling = tuple[IntArray, IntArray]
"""Indices of rows, and their labels."""


def federated_average(
    parts: Sequence[FloatArray], k: int, rng: np.random.Generator
) -> FloatArray:
    """Compute centroids (k, m) by federated averaging, without masks.

    B. McMahan et al., "Communication-efficient learning of deep networks from
    decentralized data", 2017, with Lloyd's algorithm as the local update: in each of 20
    rounds every party makes five iterations from the common centroids, and the results
    are averaged, weighted by rows. The first centroids are k rows of the first party.
    """
    V = parts[0][rng.permutation(len(parts[0]))[:k]]
    for _ in range(_ROUNDS):
        sums, sizes = np.zeros_like(V), np.zeros(k)
        for X in parts:
            centroids = V.copy()
            for _ in range(_LOCAL_STEPS):
                labels = cdist(X, centroids).argmin(axis=1)
                counts = np.bincount(labels, minlength=k)
                for c in np.flatnonzero(counts):
                    centroids[c] = X[labels == c].mean(axis=0)
            counts = np.bincount(cdist(X, centroids).argmin(axis=1), minlength=k)
            sums += counts[:, None] * centroids
            sizes += counts
        V = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], V)
    return V


def baseline_lines(baselines: Sequence[Document]) -> Iterator[str]:
    """Yield a heading, and a line for each baseline; nothing if there is none."""
    if baselines:
        yield "without a session, k-means of standardised rows with ten starts:"
    for baseline in baselines:
        figures = [
            f"{title} {baseline[name]:.4f}"
            for title, name in (
                ("fidelity", "fidelity"),
                ("objective ratio", "objective_ratio"),
                ("ARI", "truth"),
            )
            if baseline[name] is not None
        ]
        name = f"{baseline['layout']}, k {baseline['n_clusters']}, {baseline['name']}"
        yield f"  {name:36}{', '.join(figures)}"

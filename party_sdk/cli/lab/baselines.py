"""Baselines without a session: the pooled rows, and each party alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.numerics import scores
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import IntArray
from party_sdk.cli.lab.cases import Case, Document
from party_sdk.lab.parties import regular_layout


def compute_baselines(
    cases: Sequence[Case], results: Sequence[Document], seed: int
) -> list[Document]:
    """Return results of k-means without a session, for each table, layout and chosen k.

    ``fidelity`` is the adjusted Rand index to the labels of the pooled rows; if each
    party clusters alone, it is the mean over parties. ``objective_ratio`` is the
    inertia divided by the pooled inertia; it is None if each party clusters alone.
    ``truth`` is the adjusted Rand index to the true classes; it is None if the classes
    are unknown.
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


Labelling = tuple[IntArray, IntArray]
"""Indices of rows, and their labels."""


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

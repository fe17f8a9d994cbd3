"""What parties would have without a session: pooled rows, each alone, an average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols import simulation
from clustering_protocols.numerics import scores
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.cli.lab.cases import CaseFailure, CaseResult
from party_sdk.lab import regular

POOLED, ALONE, AVERAGE = "pooled k-means", "each party alone", "federated average"
_ROUNDS: Final = 20
_LOCAL_STEPS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """k-means that needs no session, over a table dealt out as a case deals it.

    fidelity: adjusted Rand index to the pooled labels; of parties alone their mean.
    objective_ratio: inertia over the pooled one; None of parties alone, whose clusters
        are not each other's.
    truth: adjusted Rand index to the true classes, where they are known.
    """

    file: str
    layout: str
    n_clusters: int
    name: str
    fidelity: float
    objective_ratio: float | None
    truth: float | None


def baselines(
    results: Sequence[CaseResult | CaseFailure], seed: int
) -> Iterator[Baseline]:
    """Yield those of each table, layout and number of clusters that counts."""
    seen = set()
    for result in results:
        if not isinstance(result, CaseResult):
            continue
        case, k = result.case, result.session.n_clusters
        key = (case.file, case.layout, k)
        if k is None or key in seen or not np.isfinite(case.table.X).all():
            continue
        seen.add(key)
        yield from _of_case(result, k, seed)


def _of_case(result: CaseResult, k: int, seed: int) -> Iterator[Baseline]:
    case = result.case
    X, classes = case.table.X, case.table.classes
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    parts = simulation.split(X, regular(case.lattice), seed)
    best = pooled_objectives.cluster(Z, k)

    def measure(name: str, found: Sequence[Found], ratio: float | None) -> Baseline:
        of_pooled = [scores.adjusted_rand(best.labels[r], own) for r, own in found]
        of_truth = [
            scores.adjusted_rand(classes[r], own)
            for r, own in found
            if classes is not None
        ]
        return Baseline(
            file=case.file,
            layout=case.layout,
            n_clusters=k,
            name=name,
            fidelity=float(np.mean(of_pooled)),
            objective_ratio=ratio,
            truth=float(np.mean(of_truth)) if of_truth else None,
        )

    everybody = np.arange(len(Z))
    yield measure(POOLED, [(everybody, best.labels)], 1.0)
    cells = [(parts.rows[s.row], parts.columns[s.column]) for s in parts.layout.slots]
    if min(len(rows) for rows, _ in cells) < k:
        return
    alone = [
        (rows, pooled_objectives.cluster(Z[np.ix_(rows, columns)], k).labels)
        for rows, columns in cells
    ]
    yield measure(ALONE, alone, None)
    if parts.layout.n_column_groups == 1:
        V = average([Z[rows] for rows, _ in cells], k, np.random.default_rng(seed))
        labels = cdist(Z, V).argmin(axis=1)
        ratio = pooled_objectives.inertia(Z, labels) / max(best.inertia, 1e-300)
        yield measure(AVERAGE, [(everybody, labels)], ratio)


Found = tuple[IntArray, IntArray]
"""Numbers of rows, and their labels."""


def average(
    parts: Sequence[FloatArray], k: int, rng: np.random.Generator
) -> FloatArray:
    """Return centroids (k, m) by federated averaging, without masks.

    B. McMahan et al., "Communication-efficient learning of deep networks from
    decentralized data", 2017, with Lloyd's iteration as the local steps: in each of 20
    rounds every party makes five from the common centroids, and these are averaged by
    their rows. They start from k rows of the first party.
    """
    V = parts[0][rng.permutation(len(parts[0]))[:k]]
    for _ in range(_ROUNDS):
        sums, sizes = np.zeros_like(V), np.zeros(k)
        for X in parts:
            own = V.copy()
            for _ in range(_LOCAL_STEPS):
                labels = cdist(X, own).argmin(axis=1)
                counts = np.bincount(labels, minlength=k)
                for c in np.flatnonzero(counts):
                    own[c] = X[labels == c].mean(axis=0)
            counts = np.bincount(cdist(X, own).argmin(axis=1), minlength=k)
            sums += counts[:, None] * own
            sizes += counts
        V = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], V)
    return V


def lines(found: Sequence[Baseline]) -> Iterator[str]:
    """Yield a line for each baseline, beneath one that says what they are."""
    if found:
        yield "without a session, k-means of standardised rows with ten starts:"
    for each in found:
        told = [f"fidelity {each.fidelity:.4f}"]
        if each.objective_ratio is not None:
            told.append(f"objective ratio {each.objective_ratio:.4f}")
        if each.truth is not None:
            told.append(f"ARI {each.truth:.4f}")
        name = f"{each.layout}, k {each.n_clusters}, {each.name}"
        yield f"  {name:36}{', '.join(told)}"


def documents(found: Sequence[Baseline]) -> list[dict[str, Any]]:
    """Return baselines as JSON values."""
    return [asdict(each) for each in found]

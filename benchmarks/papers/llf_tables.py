"""`llf` beside its paper: fuzzy c-means, Tables III to V and the split of Figure 6.

Corcuera Bárcena et al., "Federated c-means and fuzzy c-means clustering algorithms for
horizontally and vertically partitioned data": λ = 2, T = 30, 20 clients, min-max
features. All clients take part in each round (γ = 1): sessions do not draw a share of
them, so the paper's cells of a smaller γ are not repeated. Of a session: ARI of the
labels with those of the same algorithm on the pooled rows from the same start
("pooled"), and with the classes ("truth"); the distance ‖V_fed - V_sum‖ of the centroids
("displacement"); the index of Xie and Beni ("XB").

Table III  rows dealt out at random; the start is uniform in the unit cube (`bounds`), as
           in the authors' code, which also never stops before T.
Table IV   the same with rows dealt out by a Dirichlet distribution of the classes
           (β = 0.5), all clients.
Table V    the start `careful`. (The paper compares with a pooled run from another start;
           our pooled run has the session's.)
Figure 6   3,000 rows of pendigits, columns dealt out to 4, 8, 16 and five unequal parties.

Causes are shown by pooled runs of this algorithm, which sessions equal: runs from rows
of one client, as the paper's text says, or from means of five neighbours of each such
row ("start: …"), and pairs of runs from different starts ("two starts, …").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from benchmarks.datasets import load, sample
from benchmarks.papers.baselines import LLF_SETS, fuzzy_cmeans, memberships, nearest
from benchmarks.papers.cells import (
    Cause,
    Cell,
    Labels,
    Matrix,
    at_hand,
    printed,
    split_columns,
)
from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.llf import LosslessFederated, messages, reference
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout
from coterie.datasets import deal_classes

N_CLIENTS, N_ROUNDS, LAMBDA = 20, 30, 2.0
N_POOLED = 10  # draws of pooled runs, which take little time
FIGURES = ("displacement", "ARI pooled", "ARI truth", "XB")
Deal = Callable[[Labels, np.random.Generator], Sequence[Labels]]

cell = printed("llf")
FIGURE_6: dict[str, Sequence[int]] = {
    "16 × 1": (1,) * 16,
    "8 × 2": (2,) * 8,
    "4 × 4": (4,) * 4,
    "1, 2, 3, 4, 6": (1, 2, 3, 4, 6),
}
DEPENDS_ON_START = (
    "Pendigits depends on the start: we reproduce the paper's figure from rows of one "
    "client, not from the unit cube of its authors' code."
)
OTHER_START = (
    "The paper's pooled run has its own start; ours has the session's, which removes "
    "the difference between two starts."
)


def iid(y: Labels, rng: np.random.Generator) -> Sequence[Labels]:
    """Deal rows out at random and evenly."""
    return np.array_split(rng.permutation(len(y)), N_CLIENTS)


def deal_by_dirichlet(y: Labels, rng: np.random.Generator) -> Sequence[Labels]:
    """Deal each class out in proportions of a Dirichlet distribution, β = 0.5."""
    return deal_classes(y, N_CLIENTS, 0.5, rng, fewest=40)


def parameters(k: int, **options: Any) -> LosslessFederated:
    """Return the paper's setting."""
    return LosslessFederated(
        n_clusters=k,
        algorithm="fuzzy_cmeans",
        fuzzifier=LAMBDA,
        scaling="minmax",
        max_iter=N_ROUNDS,
        tol=0,
        small_cohorts="allow",  # the paper's sets are small
        **options,
    )


def scale_to_unit_cube(X: Matrix) -> Matrix:
    """Return min-max features."""
    scaled: Matrix = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return scaled


def xie_beni(Z: Matrix, V: Matrix) -> float:
    """Return Σ μ^λ d² over n times the least squared distance of two centroids."""
    D, U = cdist(Z, V, "sqeuclidean"), memberships(Z, V)
    apart = cdist(V, V, "sqeuclidean")[np.triu_indices(len(V), 1)].min()
    return float((U**LAMBDA * D).sum() / (len(Z) * apart))


def session_figures(
    name: str, deal: Deal, seed: int, **options: Any
) -> tuple[float, float, float, float]:
    """Return the four figures of a session."""
    X, y = load(name)
    params = parameters(len(np.unique(y)), **options)
    rows = deal(y, np.random.default_rng(seed))
    layout = Layout.lattice(len(rows), 1)
    data = {n: MatrixSource(X[r]) for n, r in zip(layout.names, rows, strict=True)}
    names = data[layout.names[0]].columns
    dictionary = [numeric_schema(names, X.min(axis=0), X.max(axis=0))]
    run = simulation.run(params, layout, data, seed, dictionary=dictionary)
    order = np.concatenate(rows)
    labels = np.concatenate([run.outcomes[name].labels for name in layout.names])
    trace: Any = run.trace
    pooled = reference.run_pooled(params, X[order], trace)
    ended = trace.memories[layout.names[0]].get(messages.Centroids)
    if ended is None:
        raise ValueError("the session left no centroids")
    return (
        float(np.linalg.norm(ended.centroids - pooled.centroids)),
        adjusted_rand(pooled.labels, labels),
        adjusted_rand(y[order], labels),
        xie_beni(scale_to_unit_cube(X), ended.centroids),
    )


def sessions(table: str, start: str, draws: int, deal: Deal = iid) -> Iterator[Cell]:
    """Yield the cells of a table."""
    for name in at_hand(LLF_SETS):
        found = [session_figures(name, deal, seed, init=start) for seed in range(draws)]
        for figure, values in zip(FIGURES, np.transpose(found), strict=True):
            if table == "Table IV" and figure != "ARI truth":
                continue  # the paper prints nothing else there
            quantity = f"{table}, γ 1.0, {figure}"
            cause = _cause(table, name, figure)
            yield cell(table, name, quantity, values, cause=cause)


def _cause(table: str, name: str, figure: str) -> Cause | None:
    if table == "Table V":
        if figure in {"displacement", "ARI pooled"}:
            return Cause(OTHER_START, f"two starts, {figure}")
        return None
    if name == "pendigits" and figure in {"ARI truth", "XB"}:
        return Cause(DEPENDS_ON_START, f"start: rows of a client, {figure}")
    return None


def start_cells(draws: int = N_POOLED) -> Iterator[Cell]:
    """Yield the cells of pooled runs from other starts, beside Tables III and V."""
    for name in at_hand(["pendigits"]):
        X, y = load(name)
        Z, k = scale_to_unit_cube(X), len(np.unique(y))
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            own = Z[iid(y, rng)[0]]
            drawn = own[rng.choice(len(own), k, replace=False)]
            near = np.argsort(cdist(drawn, own), axis=1)[:, :5]
            for start, V in {
                "rows of a client": drawn,
                "means of five neighbours": own[near].mean(axis=1),
                "unit cube": rng.random(drawn.shape),
            }.items():
                ended = fuzzy_cmeans(Z, V, N_ROUNDS)
                figures = (adjusted_rand(y, nearest(Z, ended)), xie_beni(Z, ended))
                found.setdefault(start, []).append(figures)
        for start, runs in found.items():
            for figure, values in zip(FIGURES[2:], np.transpose(runs), strict=True):
                yield cell("Table III", name, f"start: {start}, {figure}", values)
    for name in at_hand(LLF_SETS):
        Z = scale_to_unit_cube(load(name)[0])
        k = len(np.unique(load(name)[1]))
        runs = [_two_starts(Z, k, seed) for seed in range(draws)]
        for figure, values in zip(FIGURES[:2], np.transpose(runs), strict=True):
            yield cell("Table V", name, f"two starts, {figure}", values)


def _two_starts(Z: Matrix, k: int, seed: int) -> tuple[float, float]:
    """Compare pooled runs from k-means++ of all rows, and of a client's (Table V)."""
    ended = [
        fuzzy_cmeans(Z, kmeans_plusplus(rows, k, random_state=seed)[0], N_ROUNDS)
        for rows in (Z, Z[seed::N_CLIENTS])
    ]
    distances = cdist(*ended, "sqeuclidean")
    matched = distances[linear_sum_assignment(distances)].sum()
    labels = [nearest(Z, V) for V in ended]
    return float(np.sqrt(matched)), adjusted_rand(*labels)


def column_cells() -> Iterator[Cell]:
    """Yield agreement of sessions over split columns with the pooled run: Figure 6."""
    for name in at_hand(["pendigits"]):
        X, y = sample(name, 3000)
        for title, widths in FIGURE_6.items():
            groups = np.split(np.arange(X.shape[1]), np.cumsum(widths)[:-1])
            layout, data = split_columns(X, groups)
            ranges = [
                numeric_schema(
                    data[slot].columns, X[:, own].min(axis=0), X[:, own].max(axis=0)
                )
                for slot, own in zip(layout.names, groups, strict=True)
            ]
            params = parameters(len(np.unique(y)), init="bounds")
            run = simulation.run(params, layout, data, 0, dictionary=ranges)
            slot = layout.names[0]
            order = run.orders[slot]
            trace: Any = run.trace
            pooled = reference.run_pooled(params, X[order], trace).labels
            alike = adjusted_rand(pooled, run.outcomes[slot].labels[order])
            yield cell("Figure 6", name, f"columns {title}, ARI pooled", [alike])


def measure(draws: int) -> Iterator[Cell]:
    """Yield all cells."""
    yield from sessions("Table III", "bounds", draws)
    yield from sessions("Table IV", "bounds", draws, deal_by_dirichlet)
    yield from sessions("Table V", "careful", draws)
    yield from start_cells()
    yield from column_cells()

"""The papers' baselines on the papers' tables, written anew from the baselines' papers.

Kumar    S. Kumar and others, 2020: rounds of each party's k-means from the global
         centroids, and the mean over parties.
DSC      E. Hernández-Pereira and others, 2021: distributed spectral clustering; one row
         that everybody appends fixes the signs of the eigenvectors.
GDF-FCM  W. Pedrycz, 2022: gradients of fuzzy c-means, ten local steps, α = .005. (He
         divides by the variance of each feature; with that this α diverges here.)
C2F-FCM  M. Stallmann and A. Wilbik, 2022: local fuzzy c-means, k-means over all local
         centroids. FFCM with average 2 is the same; average 1 is their weighted mean.
k-FED    D. Dennis, T. Li, V. Smith, 2021: one shot of k' = ⌈√k⌉ centroids of each party,
         found after projection; then farthest first over all of them.
MUFC     C. Pan and others, 2023: counts of local centroids on a grid of 1/√n, added
         securely; k-means of points drawn in the cells.
FedSC    D. Qiao, C. Ding, J. Fan, 2023: spectral clustering of a factorised kernel.

All run in one process, without secrecy: only the figures matter here, on rows dealt out
as each paper says. FedMAvg (Wang and Chang, 2022) and DP-VFC (Li, Wang, Li, 2022) are not
here: no code and no complete description of either is public. `SERVER_READS` says what
each baseline's server learns; `rebuild_rows` is the attack on FedSC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from benchmarks.datasets import load, sample
from benchmarks.papers.cells import Cause, Cell, Labels, Matrix, at_hand, printed
from clustering_protocols.numerics.scores import agreement_scores, kappa
from coterie.datasets import deal_classes

Parts = Sequence[Matrix]

SERVER_READS: Final = {
    "Kumar": "every party's centroids in every round; the centroid of one row is that row",
    "DSC": "one raw row, and every party's centroids of eigenvectors",
    "GDF-FCM": "every party's gradient in every round, a sum over its rows",
    "C2F-FCM": "every party's centroids in every round",
    "FFCM": "every party's centroids and weights in every round",
    "k-FED": "every party's centroids",
    "MUFC": "all parties' centroids rounded to a grid, with counts, but unattributed",
    "FedSC": "every row of every party, up to rounding",
}
SETTING_NOT_SAID: Final = {
    "Kumar": "The starts of Kumar's k-means are not said; its figure spreads by .1.",
    "DSC": (
        "DSC's kernel is not said; the paper's figures are those of signs that do not match."
    ),
    "GDF-FCM": "GDF-FCM ends before it rests; its figure is that of its start.",
    "C2F-FCM": "C2F-FCM's k-means++ draws are not said.",
    "FFCM": "The paper does not say which of FFCM's two averages it takes.",
    "k-FED": "The paper does not say k'; another k' moves k-FED's figure by .4.",
    "MUFC": "The paper does not say MUFC's grid.",
    "FedSC": "FedSC's λ, step and number of rounds are not said.",
}


# Functions that several baselines share


def nearest(X: Matrix, V: Matrix) -> Labels:
    """Return the number of each row's nearest centroid."""
    labels: Labels = cdist(X, V, "sqeuclidean").argmin(axis=1)
    return labels


def centroids(X: Matrix, k: int, seed: int, n_init: int = 1) -> Matrix:
    """Return centroids of k-means from k-means++."""
    fitted: Matrix = KMeans(k, n_init=n_init, random_state=seed).fit(X).cluster_centers_
    return fitted


def centroids_from(X: Matrix, V: Matrix, rounds: int = 300) -> Matrix:
    """Return centroids of k-means from a start."""
    model = KMeans(len(V), init=V, n_init=1, max_iter=rounds)
    fitted: Matrix = model.fit(X).cluster_centers_
    return fitted


def memberships(X: Matrix, V: Matrix) -> Matrix:
    """Return degrees (n, k) of fuzzy c-means with λ = 2."""
    closeness = 1 / np.maximum(cdist(X, V, "sqeuclidean"), 1e-16)
    degrees: Matrix = closeness / closeness.sum(axis=1, keepdims=True)
    return degrees


def fuzzy_cmeans(X: Matrix, V: Matrix, rounds: int, tol: float = 0.0) -> Matrix:
    """Return centroids of fuzzy c-means (λ = 2) after so many updates from V."""
    for _ in range(rounds):
        weights = memberships(X, V) ** 2
        before, V = V, weights.T @ X / weights.sum(axis=0)[:, None]
        if np.linalg.norm(V - before) < tol:
            break
    return V


# k-means


def kumar(parts: Parts, k: int, seed: int, rounds: int = 10) -> Matrix:
    """Return centroids: the mean of those that each party's k-means ends in."""
    V = centroids(parts[0], k, seed)
    for _ in range(rounds):
        V = np.mean([centroids_from(X, V) for X in parts], axis=0)
    return V


def k_fed(parts: Parts, k: int, seed: int) -> Matrix:
    """Return centroids after one shot of ⌈√k⌉ centroids of each party."""
    per_party = math.ceil(math.sqrt(k))
    points = np.vstack([_local_centroids(X, per_party, seed) for X in parts])
    chosen = list(range(min(per_party, len(points))))
    while len(chosen) < k:
        chosen.append(int(cdist(points, points[chosen]).min(axis=1).argmax()))
    return centroids_from(points, points[chosen], rounds=1)


def _local_centroids(X: Matrix, k: int, seed: int) -> Matrix:
    """Return k local centroids, from means of the rows clearly nearest to a seed."""
    if len(X) <= k:
        return X
    axes = np.linalg.svd(X, full_matrices=False)[2][:k]
    projected = X @ axes.T
    seeds = KMeans(k, n_init=1, max_iter=1, random_state=seed).fit(projected)
    away = cdist(projected, seeds.cluster_centers_)
    order = np.sort(away, axis=1)
    clear = 3 * order[:, 0] < order[:, 1] if k > 1 else np.ones(len(X), dtype=bool)
    near = away.argmin(axis=1)
    start = [
        X[own].mean(axis=0) if (own := clear & (near == c)).any() else centre @ axes
        for c, centre in enumerate(seeds.cluster_centers_)
    ]
    return centroids_from(X, np.array(start))


def mufc(parts: Parts, k: int, seed: int) -> Matrix:
    """Return centroids of points drawn in the cells of local centroids."""
    rng = np.random.default_rng(seed)
    width = 1 / math.sqrt(sum(map(len, parts)))
    points = []
    for X in parts:
        V = centroids(X, min(k, len(X)), seed)
        cells = np.round(V / width) * width
        drawn = rng.uniform(-width / 2, width / 2, X.shape)
        points.append(cells[nearest(X, V)] + drawn)
    return centroids(np.vstack(points), k, seed, n_init=10)


# Fuzzy c-means


def gdf_fcm(parts: Parts, V: Matrix, rounds: int = 30, alpha: float = 0.005) -> Matrix:
    """Return centroids after steps along the sum of the parties' gradients."""
    n = sum(map(len, parts))
    for _ in range(rounds):
        gradient = np.zeros_like(V)
        for X in parts:
            weights = memberships(X, fuzzy_cmeans(X, V, 10)) ** 2
            own = weights.T @ X - weights.sum(axis=0)[:, None] * V
            gradient -= 2 * len(X) / n * own
        V = V - alpha * gradient
    return V


def ffcm(parts: Parts, V: Matrix, average: int, seed: int, rounds: int = 30) -> Matrix:
    """Return centroids after rounds of local fuzzy c-means.

    average: 1 for the mean weighted by memberships, 2 for k-means over all centroids.
    """
    for number in range(rounds):
        local = [fuzzy_cmeans(X, V, 1000, tol=1e-4) for X in parts]
        before = V
        if average == 1:
            weights = [
                memberships(X, own).sum(axis=0)[:, None]
                for X, own in zip(parts, local, strict=True)
            ]
            sums = sum(w * own for w, own in zip(weights, local, strict=True))
            V = np.asarray(sums / sum(weights))
        elif number == 0:
            V = centroids(np.vstack(local), len(V), seed, n_init=10)
        else:
            V = centroids_from(np.vstack(local), V)
        if np.linalg.norm(V - before) < 1e-4:
            break
    return V


def c2f_fcm(parts: Parts, k: int, seed: int) -> Matrix:
    """Return centroids of FFCM with average 2, started from all parties' k-means++."""
    drawn = [
        KMeans(k, n_init=1, max_iter=1, random_state=seed).fit(X).cluster_centers_
        for X in parts
    ]
    return ffcm(parts, centroids(np.vstack(drawn), k, seed), 2, seed, rounds=15)


# Spectral clustering


def dsc(parts: Parts, k: int, seed: int) -> Labels:
    """Return labels of k-means over local centroids of eigenvectors."""
    shared = parts[0][:1]
    spread = np.sqrt(np.mean(cdist(parts[0], parts[0], "sqeuclidean")))
    points: list[Matrix] = []
    near: list[Labels] = []
    reference: Matrix | None = None
    for X in parts:
        rows = np.vstack([shared, X])
        affinity = np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * spread**2))
        roots = np.sqrt(affinity.sum(axis=1))
        values, vectors = np.linalg.eigh(affinity / np.outer(roots, roots))
        vectors = vectors[:, np.argsort(-values)[:k]] / roots[:, None]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        reference = vectors[0] if reference is None else reference
        vectors *= np.where(vectors[0] * reference < 0, -1, 1)
        local = centroids(vectors[1:], min(k, len(X)), seed)
        near.append(nearest(vectors[1:], local) + sum(len(other) for other in points))
        points.append(local)
    of_points = KMeans(k, n_init=10, random_state=seed).fit_predict(np.vstack(points))
    labels: Labels = of_points[np.concatenate(near)]
    return labels


class Factors(NamedTuple):
    """What FedSC's server has: dictionary (F, d), coefficients (d, n), the kernel's σ²."""

    Z: Matrix
    C: Matrix
    variance: float


LAMBDA: Final = 1e-3


def kernel(A: Matrix, B: Matrix, variance: float) -> Matrix:
    """Return exp(-|a - b|² / 2σ²) of columns."""
    values: Matrix = np.exp(-cdist(A.T, B.T, "sqeuclidean") / (2 * variance))
    return values


def factorise(parts: Parts, seed: int, rounds: int = 20) -> Factors:
    """Return FedSC's factors: local coefficients, and the mean of local dictionaries."""
    X = np.vstack(parts).T
    variance = float(np.mean(cdist(X.T, X.T))) ** 2
    values = np.linalg.svd(kernel(X, X, variance), compute_uv=False)
    d = int(np.argmax(np.cumsum(values) / values.sum() > 0.99)) + 1
    rng = np.random.default_rng(seed)
    local = [rng.standard_normal((len(X), d)) for _ in parts]
    for _ in range(rounds):
        Z = np.mean(local, axis=0)
        K = kernel(Z, Z, variance)
        coefficients = []
        for own, place in zip(parts, range(len(parts)), strict=True):
            cross_kernel = kernel(Z, own.T, variance)
            C = np.asarray(np.linalg.solve(K + LAMBDA * np.eye(d), cross_kernel), float)
            coefficients.append(C)
            local[place] = _newton_step(Z, own.T, C, K, cross_kernel, variance)
    return Factors(Z, np.hstack(coefficients), variance)


def _newton_step(
    Z: Matrix, X: Matrix, C: Matrix, K: Matrix, cross_kernel: Matrix, variance: float
) -> Matrix:
    """Return the dictionary after one step of Newton's method with a diagonal bound."""
    cross = -C.T * cross_kernel.T
    own = 0.5 * (C @ C.T) * K
    down, across = cross.sum(axis=0), own.sum(axis=0)
    gradient = (X @ cross - Z * down) + 2 * (Z @ own - Z * across)
    curvature = 2 * own - np.diag(down + 2 * across)
    stepped: Matrix = Z - gradient / variance @ np.linalg.pinv(curvature / variance)
    return stepped


def fedsc(parts: Parts, k: int, seed: int) -> Labels:
    """Return labels of spectral clustering of the factorised kernel."""
    Z, C, variance = factorise(parts, seed)
    K = C.T @ kernel(Z, Z, variance) @ C
    K = (K - K.min()) / np.ptp(K)
    n_neighbours = math.ceil(math.log(len(K)))
    kept = np.argsort(-K, axis=1)[:, :n_neighbours]
    graph = np.zeros_like(K)
    np.put_along_axis(graph, kept, np.take_along_axis(K, kept, axis=1), axis=1)
    graph = np.maximum(graph, graph.T)
    roots = 1 / np.sqrt(np.maximum(graph.sum(axis=1), 1e-12))
    vectors = np.linalg.eigh(roots[:, None] * graph * roots)[1][:, -k:]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    labels: Labels = KMeans(k, n_init=5, random_state=seed).fit_predict(vectors)
    return labels


def rebuild_rows(factors: Factors) -> Matrix:
    """Return every party's rows (n, F), from nothing but what FedSC's server has.

    C = (K + λI)⁻¹ K(Z, X), so the server can compute K(Z, X), hence each row's squared
    distances to d known points, and if d > F by least squares the row itself.
    """
    Z, C, variance = factors
    beside = (kernel(Z, Z, variance) + LAMBDA * np.eye(Z.shape[1])) @ C
    squared = -2 * variance * np.log(beside)
    lengths = np.square(Z).sum(axis=0)
    right = (lengths[1:] - lengths[0])[:, None] - (squared[1:] - squared[0])
    rows: Matrix = np.linalg.lstsq(2 * (Z[:, 1:] - Z[:, :1]).T, right, rcond=None)[0].T
    return rows


# On the papers' tables

METRICS: Final = ("ARI", "NMI", "ACC")
DC_SETS: Final = ("iris", "rice", "pendigits", "heart", "banknote", "phoneme")
LLF_SETS: Final = (
    *("xclara", "s1_deric", "s2_deric", "pendigits"),
    *("waveform", "phoneme", "rice", "statlog"),
)
SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The share of a client's rows that are dealt out to it from one class."""
N_CLIENTS: Final = 20
OURS: Final[Mapping[str, tuple[str, str]]] = {
    "Kumar": ("dc", "kmeans, proposed, {metric}"),
    "DSC": ("dc", "spectral, proposed, {metric}"),
    "GDF-FCM": ("llf", "{table}, γ 1.0, ARI truth"),
    "C2F-FCM": ("llf", "{table}, γ 1.0, ARI truth"),
    "FFCM": ("omnifc", "FCM, ours, kappa"),
    "k-FED": ("omnifc", "KM, ours, kappa"),
    "MUFC": ("omnifc", "KM, ours, kappa"),
    "FedSC": ("omnifc", "SC, ours, kappa"),
}
"""By baseline, the file and the quantity of our cell in the same table."""


beside_paper = printed("baselines")


def _cell(
    table: str, name: str, baseline: str, metric: str, draws: Sequence[float]
) -> Cell:
    cause = Cause(SETTING_NOT_SAID[baseline.partition(",")[0]])
    return beside_paper(table, name, f"{baseline}, {metric}", draws, cause=cause)


def dc_baselines(trials: int) -> Iterator[Cell]:
    """Yield Kumar and DSC on half of the columns, rows dealt out to ten parties."""
    for table, baseline in (("Table 4", "Kumar"), ("Table 6", "DSC")):
        for name in at_hand(DC_SETS):
            X, y = load(name)
            k = len(np.unique(y))
            found = []
            for seed in range(trials):
                rng = np.random.default_rng(seed)
                columns = rng.permutation(X.shape[1])[: X.shape[1] // 2]
                order = rng.permutation(len(X))
                half = X[order][:, columns]
                parts = np.array_split(half, 10)
                if baseline == "Kumar":
                    labels = nearest(half, kumar(parts, k, seed))
                else:
                    labels = dsc(parts, k, seed)
                agreement = agreement_scores(y[order], labels)
                found.append([agreement[metric] for metric in METRICS])
            for metric, draws in zip(METRICS, np.transpose(found), strict=True):
                yield _cell(table, name, baseline, metric, draws)


def llf_baselines(draws: int) -> Iterator[Cell]:
    """Yield GDF-FCM and C2F-FCM on rows dealt out to twenty clients."""
    for table, baseline, sets in (
        ("Table III", "GDF-FCM", LLF_SETS),
        ("Table IV", "GDF-FCM", ("pendigits",)),
        ("Table V", "C2F-FCM", LLF_SETS),
    ):
        for name in at_hand(sets):
            X, y = load(name)
            Z, k = (X - X.min(axis=0)) / np.ptp(X, axis=0), len(np.unique(y))
            found = []
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                if table == "Table IV":
                    rows = deal_classes(y, N_CLIENTS, 0.5, rng, fewest=40)
                else:
                    rows = np.array_split(rng.permutation(len(Z)), N_CLIENTS)
                parts = [Z[own] for own in rows]
                if baseline == "GDF-FCM":
                    V = gdf_fcm(parts, rng.random((k, Z.shape[1])))
                else:
                    V = c2f_fcm(parts, k, seed)
                found.append(agreement_scores(y, nearest(Z, V))["ARI"])
            yield _cell(table, name, baseline, "ARI", found)


def deal_skewed(y: Labels, share: float, seed: int) -> list[Labels]:
    """Deal rows out to one client per class, which gets a share of the class alone."""
    rng = np.random.default_rng(seed)
    pools = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    counts = [round(share * len(pool)) for pool in pools]
    rest = np.concatenate([p[count:] for p, count in zip(pools, counts, strict=True)])
    dealt = np.array_split(rng.permutation(rest), len(pools))
    return [
        np.concatenate([pool[:count], more])
        for pool, count, more in zip(pools, counts, dealt, strict=True)
    ]


def omnifc_baselines(draws: int) -> Iterator[Cell]:
    """Yield k-FED, MUFC, FFCM and FedSC on clients of uneven classes."""

    def fuzzy(parts: Parts, k: int, seed: int, average: int) -> Labels:
        start = np.random.default_rng(seed).random((k, parts[0].shape[1]))
        return nearest(np.vstack(parts), ffcm(parts, start, average, seed))

    clusterings: dict[str, Callable[[Parts, int, int], Labels]] = {
        "k-FED": lambda parts, *how: nearest(np.vstack(parts), k_fed(parts, *how)),
        "MUFC": lambda parts, *how: nearest(np.vstack(parts), mufc(parts, *how)),
        "FFCM, average 1": partial(fuzzy, average=1),
        "FFCM, average 2": partial(fuzzy, average=2),
        "FedSC": fedsc,
    }
    for name in at_hand(("iris", "pendigits")):
        for share in SHARES:
            found: dict[str, list[float]] = {each: [] for each in clusterings}
            for seed in range(draws):
                X, y = sample(name, 1000, seed)
                Z = X / np.linalg.norm(X, axis=1, keepdims=True)
                rows = deal_skewed(y, share, seed)
                parts, classes = [Z[own] for own in rows], y[np.concatenate(rows)]
                for each, cluster in clusterings.items():
                    labels = cluster(parts, len(np.unique(y)), seed)
                    found[each].append(kappa(classes, labels))
            for each, kappas in found.items():
                yield _cell("Table 1", name, each, f"p {share}, kappa", kappas)


def measure(draws: int) -> Iterator[Cell]:
    """Yield all cells; Kumar and DSC, which spread more, have four times the draws."""
    yield from dc_baselines(4 * draws)
    yield from llf_baselines(draws)
    yield from omnifc_baselines(draws)

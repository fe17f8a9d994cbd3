"""`dc` beside the tables of its paper: Tables 2, 4, 5 and 6.

Kawamata et al., "A new type of federated clustering". Settings of the paper: ten row
groups × two column groups (Table 2: two × two), uniform anchors, as many as there are
rows, PCA to one dimension less, affine maps; ARI, NMI (geometric) and ACC with the true
classes, over trials. Central clustering is scikit-learn's on the pooled, raw features.
"proposed" is centred features and the isometric target, from which the paper's printed
numbers come; "all dimensions" is the same without the dimension that each party leaves
out. Context: "text" is what the paper's text says, "defaults" are ours (one trial).

Table 5 averages differences to central clustering in per cent of the central figure, over
all sets and metrics; its spread is that of a bootstrap over trials. If a central figure
is near 0, a small difference is a large share: .025 instead of .008 counts for over 200 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles

from benchmarks.datasets import load
from benchmarks.papers.baselines import DC_SETS, METRICS
from benchmarks.papers.cells import (
    Cause,
    Cell,
    Labels,
    Matrix,
    at_hand,
    labels_of,
    printed,
)
from clustering_protocols import simulation
from clustering_protocols.numerics import scores
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.terms.terms import Layout

TABLES = {"kmeans": "Table 4", "spectral": "Table 6"}
CONTEXT_TRIALS = 1
cell = printed("dc")

VARIANTS: dict[str, dict[str, Any]] = {
    "proposed": {"scaling": "center"},
    "all dimensions": {"scaling": "center", "dimensions": "all"},
    "text": {"scaling": "local", "target": "orthonormal"},
    "defaults": {},
}
NOTHING_LEFT_OUT = (
    "We reproduce the paper's spectral row for phoneme with all dimensions, not with "
    "one less."
)

ONLY_SCIKIT_LEARN = (
    "This cell uses scikit-learn alone; the paper names neither its version nor its "
    "copy of phoneme."
)


def params(variant: str, algorithm: str, k: int, n_rows: int) -> DataCollaboration:
    """Return the parameters of a variant; only the defaults have their own anchors."""
    anchor = Anchor(kind="uniform", n_rows=n_rows)
    return DataCollaboration(
        n_clusters=k,
        algorithm=algorithm,
        **({"anchor": anchor} if variant != "defaults" else {}),
        **VARIANTS[variant],
    )


def cluster_pooled(algorithm: str, X: Matrix, k: int, seed: int) -> Labels:
    """Return scikit-learn's labels of the pooled rows."""
    if algorithm == "kmeans":
        return KMeans(k, n_init=10, random_state=seed).fit_predict(X)
    return SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    ).fit_predict(X)


def agreement(y: Labels, labels: Labels) -> list[float]:
    """Return ARI, NMI and ACC."""
    found = scores.agreement_scores(y, labels)
    return [found[name] for name in METRICS]


def score_session(
    variant: str,
    algorithm: str,
    X: Matrix,
    y: Labels,
    parts: simulation.Split,
    seed: int,
) -> list[float]:
    """Return the agreement of a simulated session with the classes."""
    given = params(variant, algorithm, len(np.unique(y)), len(X))
    run = simulation.run(given, parts.layout, parts.data, seed)
    return agreement(y, labels_of(run, parts, len(X)))


# Table 2: made data


def with_noise(major: Matrix, rng: np.random.Generator) -> Matrix:
    """Return two major features and four minor ones, as section 5.2.1 says."""
    covariance = np.full((4, 4), 0.01) + np.diag(np.full(4, 0.09))
    minor = rng.multivariate_normal(np.zeros(4), covariance, size=len(major))
    return np.hstack([major, minor])


def blobs(rng: np.random.Generator) -> tuple[Matrix, Labels]:
    """Return three groups of 500 points in the plane."""
    centers = np.array([[0.0, 0.0], [6.0, 6.0], [-6.0, 6.0]])
    X, y = make_blobs(1500, centers=centers, random_state=int(rng.integers(2**31)))
    return with_noise(X, rng), y


def circles(rng: np.random.Generator) -> tuple[Matrix, Labels]:
    """Return three rings of 500 points around one centre."""
    rings = [
        make_circles((0, 500), factor=0.5, random_state=int(rng.integers(2**31)))[0]
        for _ in range(3)
    ]
    radii = (1.0, 5.0, 9.0)
    X = np.vstack(
        [2 * radius * ring for radius, ring in zip(radii, rings, strict=True)]
    )
    return with_noise(X, rng), np.repeat(np.arange(3), 500)


def split_two_by_two(X: Matrix, y: Labels, *, iid: bool, seed: int) -> simulation.Split:
    """Split over two × two: one major and two minor features in each column group.

    Not IID: the first row group has the first class and half of the second.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(X))
    order = shuffled if iid else shuffled[np.argsort(y[shuffled], kind="stable")]
    rows = np.array_split(order, 2)
    columns = [np.array([0, 2, 3]), np.array([1, 4, 5])]
    layout: Layout = Layout.lattice(2, 2)
    data = {
        slot.name: MatrixSource(
            X[np.ix_(rows[slot.row], columns[slot.column])],
            ids=simulation.number_rows(len(rows[slot.row])),
        )
        for slot in layout.slots
    }
    held = {slot.name: rows[slot.row] for slot in layout.slots}
    return simulation.Split(
        layout=layout, rows=rows, columns=columns, held=held, data=data
    )


def cells_of_table_2(trials: int) -> Iterator[Cell]:
    """Yield the cells of Table 2, where the paper prints 1.000 everywhere."""
    sets: dict[str, tuple[Callable[..., Any], str]] = {
        "blobs": (blobs, "kmeans"),
        "circles": (circles, "spectral"),
    }
    for name, (make, algorithm) in sets.items():
        for iid in (True, False):
            found = []
            for seed in range(trials):
                X, y = make(np.random.default_rng(seed))
                parts = split_two_by_two(X, y, iid=iid, seed=seed)
                found.append(score_session("proposed", algorithm, X, y, parts, seed))
            kind = "IID" if iid else "not IID"
            for metric, draws in zip(METRICS, np.transpose(found), strict=True):
                quantity = f"{algorithm}, {kind}, {metric}"
                yield cell("Table 2", name, quantity, draws)


def agreements_on(algorithm: str, name: str, trials: int) -> dict[str, Matrix]:
    """Return ARI, NMI and ACC (trials, 3) of central clustering and of the variants."""
    X, y = load(name)
    k = len(np.unique(y))
    pooled = [cluster_pooled(algorithm, X, k, seed) for seed in range(trials)]
    found = {"central": np.array([agreement(y, labels) for labels in pooled])}
    for variant in VARIANTS:
        context = variant in {"text", "defaults"}
        seeds = range(min(trials, CONTEXT_TRIALS) if context else trials)
        splits = [simulation.split(X, Layout.lattice(10, 2), seed) for seed in seeds]
        runs = [
            score_session(variant, algorithm, X, y, parts, seed)
            for seed, parts in zip(seeds, splits, strict=True)
        ]
        found[variant] = np.array(runs)
    return found


def measure(trials: int) -> Iterator[Cell]:
    """Yield all cells."""
    yield from cells_of_table_2(trials)
    for algorithm in TABLES:
        measured: dict[str, dict[str, Matrix]] = {}
        for name in at_hand(DC_SETS):
            measured[name] = agreements_on(algorithm, name, trials)
            yield from _cells_of(algorithm, name, measured[name])
        if len(measured) == len(DC_SETS):
            yield from _averages(algorithm, measured)


def _cells_of(algorithm: str, name: str, measured: dict[str, Matrix]) -> Iterator[Cell]:
    for way, found in measured.items():
        for place, metric in enumerate(METRICS):
            measured_cell = cell(
                TABLES[algorithm],
                name,
                f"{algorithm}, {way}, {metric}",
                found[:, place],
                cause=_cause(algorithm, name, way, metric),
            )
            if measured_cell.paper is not None or metric == "ARI":
                yield measured_cell  # of context only ARI


def _cause(algorithm: str, name: str, way: str, metric: str) -> Cause | None:
    if (algorithm, name, way) == ("spectral", "phoneme", "proposed"):
        return Cause(NOTHING_LEFT_OUT, f"{algorithm}, all dimensions, {metric}")
    if way == "central":
        return Cause(ONLY_SCIKIT_LEARN)
    return None


def _averages(algorithm: str, measured: dict[str, dict[str, Matrix]]) -> Iterator[Cell]:
    """Yield Table 5, as measured and with all dimensions where the paper had all."""
    rng = np.random.default_rng(0)
    ways = {"proposed": "proposed", "phoneme with all dimensions": "all dimensions"}
    for title, of_phoneme in (
        ways.items() if algorithm == "spectral" else [("proposed",) * 2]
    ):

        def average(
            resample: Callable[[Matrix], Matrix], phoneme_way: str = of_phoneme
        ) -> float:
            shares = []
            for name, found in measured.items():
                way = phoneme_way if name == "phoneme" else "proposed"
                base = found["central"].mean(axis=0)
                away = resample(found[way]).mean(axis=0) - base
                shares.append(100 * np.abs(away) / np.abs(base))
            return float(np.mean(shares))

        resampled = [
            average(lambda runs: runs[rng.integers(len(runs), size=len(runs))])
            for _ in range(200)
        ]
        yield cell(
            "Table 5",
            "all",
            f"{algorithm}, {title}, % from central",
            [average(lambda runs: runs)],
            fixed_spread=float(np.std(resampled)),
            cause=Cause(
                NOTHING_LEFT_OUT,
                "spectral, phoneme with all dimensions, % from central",
            )
            if algorithm == "spectral"
            else None,
        )

"""The start of `llf` over columns: where it leads, and what it shows to whom.

    python -m benchmarks.column_start [--seeds N]

Ratios: the inertia where Lloyd's iteration ends, over that of scikit-learn's k-means on
the pooled rows with ten starts; median and worst over seeds. `careful` starts from what
the analyst sees of means of groups, `random_rows` from k joint rows. Sets come from
scikit-learn and from the folder that COTERIE_DATA names; the others are drawn here.

Analyst: correlation of all rows' distances with those that it computes, round by round
(Nyström, from labels and differences of distances), by either start. Parties: how much
of the variance of the columns of others the labels of all rounds foretell (R², ten-fold).
Ends with 1 if a median of `careful` is above 1.005.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import MissingDataError, load
from benchmarks.start_quality import MOST_ROWS, SETS
from clustering_protocols.protocols.llf import column_geometry
from clustering_protocols.protocols.llf.column_sample import sample_of
from clustering_protocols.records.arrays import FloatArray, IntArray

GOAL: Final = 1.005
_ROUNDING: Final = 1e-12
_OWN_COLUMNS: Final = 3  # a third of the columns are a party's own


class Update(NamedTuple):
    """Rows of which an update tells labels, and what is read against their means."""

    labels: IntArray
    differences: FloatArray


def drawn_sets() -> Iterator[tuple[str, FloatArray, int]]:
    """Yield sets whose clusters are far apart, which random rows hardly ever all meet."""
    rng = np.random.default_rng(5)
    axes = np.vstack([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    yield "7 far, 3 columns", np.repeat(30 * axes, 30, axis=0) + _noise(rng, 210, 3), 7
    for k, m, n in ((31, 2, 60), (15, 10, 40), (8, 40, 30)):
        centres = np.repeat(rng.uniform(-50, 50, (k, m)), n, axis=0)
        yield f"{k} far, {m} columns", centres + _noise(rng, k * n, m), k
    yield "no clusters, 12", _noise(rng, 1000, 12), 8


def _noise(rng: np.random.Generator, n: int, m: int) -> FloatArray:
    return rng.normal(size=(n, m))


def sets() -> Iterator[tuple[str, FloatArray, int]]:
    """Yield all sets, standardised; one that is not there is named and left out."""
    for name, k in SETS.items():
        try:
            X, _ = load(name)
        except MissingDataError as missing:
            print(f"left out: {missing}")
            continue
        kept = np.random.default_rng(7).permutation(len(X))[:MOST_ROWS]
        yield name, StandardScaler().fit_transform(X[kept]), k
    for name, X, k in drawn_sets():
        yield name, StandardScaler().fit_transform(X), k


def measure_groups(Z: FloatArray) -> Update:
    """Return what the analyst reads of the groups of rows that travel in this order."""
    sample = sample_of(*Z.shape)
    rows, groups = Z[: sample.n_rows], sample.groups
    return Update(groups, _differences(rows, _means(rows, groups, sample.n_groups)))


def _means(Z: FloatArray, labels: IntArray, k: int) -> FloatArray:
    return np.array([Z[labels == c].mean(axis=0) for c in range(k)])


def _differences(Z: FloatArray, V: FloatArray) -> FloatArray:
    D: FloatArray = cdist(Z, V, "sqeuclidean")
    return D - D[:, :1]


def careful(Z: FloatArray, k: int, seed: int) -> FloatArray:
    """Return V(0) (k, m) of the default start; rows stand in the order of travel."""
    seen = measure_groups(Z)
    Y = column_geometry.rows_from_differences(seen.differences, seen.labels, _ROUNDING)
    labels = column_geometry.partition(Y, k, np.random.default_rng(seed))
    return _means(Z[: len(Y)], labels, k)


def ratios(Z: FloatArray, k: int, seeds: int) -> tuple[list[float], list[float]]:
    """Return the ratios of `careful` and of `random_rows`, seed by seed."""
    best = KMeans(k, n_init=10, random_state=0).fit(Z).inertia_
    found: tuple[list[float], list[float]] = ([], [])
    for seed in range(seeds):
        rows = Z[np.random.default_rng(seed).permutation(len(Z))]
        for place, V in enumerate((careful(rows, k, seed), rows[:k])):
            ended = KMeans(k, init=V, n_init=1, tol=0).fit(rows).inertia_
            found[place].append(float(ended / best))
    return found


def updates(Z: FloatArray, V: FloatArray) -> Iterator[Update]:
    """Yield labels of each update of Lloyd's iteration and what is read after it."""
    labels = cdist(Z, V).argmin(axis=1)
    while True:
        present = np.unique(labels)
        labels = np.searchsorted(present, labels)
        D = _differences(Z, _means(Z, labels, len(present)))
        yield Update(labels, D)
        if np.array_equal(D.argmin(axis=1), labels):
            return
        labels = D.argmin(axis=1)


def seen_by_the_analyst(Z: FloatArray, read: Sequence[Update]) -> float:
    """Return the correlation of true distances with those that updates give together."""
    B, F = [], []
    for each in read:
        k = each.differences.shape[1]
        of = np.eye(k)[each.labels] / np.bincount(each.labels, minlength=k)
        B.append(of[:, 1:] - of[:, :1])
        F.append((each.differences - each.differences.mean(axis=0))[:, 1:] / -2)
    left, right = np.hstack(B), np.hstack(F)
    values, axes = np.linalg.eigh(left.T @ right)
    kept = values > 1e-9 * values.max()
    Y = right @ (axes[:, kept] / np.sqrt(values[kept]))
    return float(np.corrcoef(pdist(Y), pdist(Z))[0, 1])


def foretold(Z: FloatArray, labels: Sequence[IntArray]) -> float:
    """Return how much of two thirds of the columns labels and the others foretell."""
    own = Z.shape[1] // _OWN_COLUMNS
    told = [np.eye(each.max() + 1)[each] for each in labels]
    guess = cross_val_predict(
        LinearRegression(), np.hstack([Z[:, :own], *told]), Z[:, own:], cv=10
    )
    others = Z[:, own:]
    return float(1 - np.square(others - guess).sum() / np.square(others).sum())


def shown(name: str, Z: FloatArray, k: int) -> None:
    """Print what one set's rounds show."""
    rows = Z[np.random.default_rng(0).permutation(len(Z))]
    for start, V in (("random_rows", rows[:k]), ("careful", careful(rows, k, 0))):
        read = list(updates(rows, V))
        first = [measure_groups(rows)] if start == "careful" else []
        seen = [*first, *read]
        known = [seen_by_the_analyst(rows, seen[: n + 1]) for n in range(len(seen))]
        party = foretold(rows, [each.labels for each in read])
        told = " ".join(f"{each:.4f}" for each in known[:6])
        print(f"  {name:14}{start:12} analyst {told}   parties R² {party:.3f}")


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")  # of scikit-learn, about rows that coincide
    met = True
    print(f"{'set':22}{'careful':>18}{'random_rows':>20}")
    for name, Z, k in sets():
        ours, random = ratios(Z, k, seeds)
        met &= bool(np.median(ours) <= GOAL)
        told = (f"{np.median(r):8.3f} ({max(r):.3f})" for r in (ours, random))
        print(f"{name:22}{'   '.join(told)}", flush=True)
    print("\nWhat rounds show, one after the other")
    for name in ("iris", "wine", "breast_cancer"):
        X, y = load(name)
        shown(name, StandardScaler().fit_transform(X), len(set(y.tolist())))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

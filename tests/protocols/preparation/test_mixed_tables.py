"""Mixed tables are clustered about as well as by k-prototypes."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.terms import Layout

SCHEMA = Schema(
    fields=(
        Field(name="age"),
        Field(name="crp"),
        Field(name="smokes", type="boolean"),
        Field(name="fever", type="boolean"),
        Field(name="ward", type="string", categories=("a", "b", "c", "d")),
    )
)
LAYOUT = Layout.lattice(3)


def patients(seed: int, n: int = 300) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    columns = [
        rng.normal(40 + 14 * group, 5),
        rng.normal(8 + 12 * (group == 1), 4),
        rng.random(n) < np.array([0.1, 0.5, 0.9])[group],
        rng.random(n) < np.array([0.9, 0.1, 0.5])[group],
        np.where(rng.random(n) < 0.8, group, rng.integers(0, 4, n)),
    ]
    return np.column_stack(columns).astype(np.float64), group


def ours(X: FloatArray) -> IntArray:
    parts = simulation.split(X, LAYOUT, 0, dictionary=[SCHEMA])
    given = {"dictionary": [SCHEMA], "preparation": [Preparation()]}
    params = LosslessFederated(n_clusters=3)
    return simulation.evaluate(params, X, parts, seed=0, **given).labels


def k_prototypes(X: FloatArray) -> IntArray:
    """Return the labels of the best of ten starts, with half the deviation for a level.

    Huang, "Extensions to the k-means algorithm for clustering large data sets with
    categorical values", Data Mining and Knowledge Discovery 2, 1998.
    """
    numbers, levels = X[:, :2], X[:, 2:].astype(np.int64)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    rng, best, found = np.random.default_rng(0), np.inf, levels[:, 0]
    for _ in range(10):
        start = rng.choice(len(X), 3, replace=False)
        means, modes = numbers[start], levels[start]
        for _ in range(30):
            apart = np.square(numbers[:, None] - means).sum(axis=2)
            apart += 0.5 * (levels[:, None] != modes).sum(axis=2)
            labels = apart.argmin(axis=1)
            own = [labels == cluster for cluster in range(3)]
            means = np.array([numbers[rows].mean(axis=0) for rows in own])
            modes = np.array(
                [
                    [np.bincount(each).argmax() for each in levels[rows].T]
                    for rows in own
                ]
            )
        if (cost := apart.min(axis=1).sum()) < best:
            best, found = cost, labels
    return found


def test_a_mixed_table_is_clustered_as_well_as_by_k_prototypes() -> None:
    """The figures of docs/choosing.md: with the planted groups, over five tables."""
    tables = [patients(seed) for seed in range(5)]
    mine, theirs = (
        np.mean([adjusted_rand_score(group, cluster(X)) for X, group in tables])
        for cluster in (ours, k_prototypes)
    )
    assert (round(float(mine), 2), round(float(theirs), 2)) == (0.97, 0.95)

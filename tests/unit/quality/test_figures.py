"""Figures of partitions are scikit-learn's, and plain numpy's."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import datasets, metrics as sk
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.rows import figures_of_rows
from clustering_protocols.records.arrays import FloatArray, IntArray

SETS = {
    "iris": datasets.load_iris().data,
    "wine": StandardScaler().fit_transform(datasets.load_wine().data),
    "digits": datasets.load_digits().data,
}


def figures(X: FloatArray, labels: IntArray, **more: FloatArray) -> Figures:
    return figures_of_rows(X, labels, silhouette=True, **more)


def partitions(X: FloatArray) -> dict[str, IntArray]:
    rng = np.random.default_rng(0)
    found = KMeans(7, n_init=1, random_state=0).fit(X).labels_.astype(np.int64)
    lonely = found.copy()
    lonely[[3, 70]] = 7, 8
    return {
        "found": found,
        "random": rng.integers(3, size=len(X)),
        "empty clusters": found * 3 + 2,
        "one-row clusters": lonely,
    }


def expected(Z: FloatArray, labels: IntArray) -> dict[str, float]:
    names, own = np.unique(labels, return_inverse=True)
    D = cdist(Z, [Z[labels == name].mean(axis=0) for name in names])
    a = D[np.arange(len(Z)), own]
    others = D.copy()
    others[np.arange(len(Z)), own] = np.inf
    b = others.min(axis=1)
    many = np.bincount(own)[own] > 1
    return {
        "inertia": float((a**2).sum()),
        "simplified_silhouette": float(np.mean(many * (b - a) / np.maximum(a, b))),
        "calinski_harabasz": sk.calinski_harabasz_score(Z, labels),
        "davies_bouldin": sk.davies_bouldin_score(Z, labels),
    }


@pytest.mark.parametrize("name", SETS)
def test_figures_are_those_of_scikit_learn(name: str) -> None:
    X = SETS[name]
    for labels in partitions(X).values():
        found = figures(X, labels)
        wanted = expected(X, labels) | {"silhouette": sk.silhouette_score(X, labels)}
        told = {of: getattr(found, of) for of in wanted}
        assert told == pytest.approx(wanted, rel=1e-9)
        assert found.n_clusters == len(np.unique(labels))


def test_rows_of_no_cluster_are_left_out() -> None:
    X, labels = SETS["iris"], partitions(SETS["iris"])["found"].copy()
    U = np.random.default_rng(1).dirichlet(np.ones(7), len(X))
    labels[::4] = -1
    kept = labels >= 0
    some = figures(X, labels, memberships=U)
    alone = figures(X[kept], labels[kept], memberships=U[kept])
    for name, value in dict(alone).items():
        told = getattr(some, name)
        assert told == (value if value is None else pytest.approx(value, rel=1e-12))


def test_fuzzy_figures_are_those_of_plain_numpy() -> None:
    X = SETS["wine"]
    U = np.random.default_rng(2).dirichlet(np.full(4, 0.3), len(X))
    V = (U**2).T @ X / (U**2).sum(axis=0)[:, None]
    apart = cdist(V, V, "sqeuclidean") + np.diag(np.full(4, np.inf))
    found = figures(X, U.argmax(axis=1), memberships=U)
    assert found.partition_coefficient == pytest.approx((U**2).sum() / len(X))
    expected = (U**2 * cdist(X, V, "sqeuclidean")).sum() / (len(X) * apart.min())
    assert found.xie_beni == pytest.approx(expected, rel=1e-9)


def test_what_is_not_defined_is_not_said() -> None:
    X = SETS["iris"][:20]
    comparing = ("simplified_silhouette", "silhouette", "davies_bouldin")
    for labels in (np.zeros(20, dtype=np.int64), np.arange(20)):
        found = figures(X, labels)
        assert found.calinski_harabasz is None
        assert [getattr(found, name) for name in comparing] == [None] * 3
    assert found.inertia == 0.0  # of clusters of one row
    with pytest.raises(ValueError, match="no row"):
        figures(X, np.full(20, -1))


def test_means_that_coincide_and_rows_on_their_means() -> None:
    cross = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [5.0, 5.0]])
    found = figures(cross, np.array([0, 0, 1, 1, 2]))
    assert found.davies_bouldin is None
    twice = np.repeat([[0.0, 0.0], [3.0, 4.0]], 2, axis=0)
    found = figures(twice, np.array([0, 0, 1, 1]))
    assert (found.inertia, found.calinski_harabasz) == (0.0, None)
    assert (found.davies_bouldin, found.silhouette) == (0.0, 1.0)

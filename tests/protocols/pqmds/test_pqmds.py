"""`pqmds`: codebooks beside brute force and scikit-learn, codes, labels, refusals."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation, maths, party
from clustering_protocols.protocols.pqmds.params import subspaces_of
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.terms import Layout

WINE = load_wine().data
PARAMS = ProductQuantisation(n_clusters=3, coordinates=1)
RNG = np.random.default_rng(0)


def stream() -> KeyedStream:
    return KeyedStream(bytes(32))


def simulate(params: ProductQuantisation, X: FloatArray, d: int) -> Any:
    parts = simulation.split(X, Layout.lattice(1, d), seed=1)
    return simulation.evaluate(params, X, parts, seed=1)


def inertia(values: FloatArray, weights: FloatArray, begins: IntArray) -> float:
    return sum(
        float(
            weights[a:b]
            @ (values[a:b] - np.average(values[a:b], weights=weights[a:b])) ** 2
        )
        for a, b in pairwise(begins)
    )


def least_inertia(values: FloatArray, weights: FloatArray, size: int) -> float:
    m = len(values)
    return min(
        inertia(values, weights, np.array([0, *inner, m]))
        for inner in combinations(range(1, m), size - 1)
    )


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=9, unique=True), st.data())
def test_intervals_are_the_best_of_all(drawn: list[int], data: st.DataObject) -> None:
    """On a lattice, where several penalties give the same cost, as elsewhere."""
    values = np.sort(np.array(drawn, dtype=np.float64))
    weight = st.integers(1, 4).map(float)
    n = len(values)
    weights = np.array(data.draw(st.lists(weight, min_size=n, max_size=n)))
    for size in range(1, n + 3):
        begins = maths.optimal_intervals(values, weights, size)
        assert len(begins) == min(size, n) + 1
        assert (np.diff(begins) > 0).all()
        found = inertia(values, weights, begins)
        least = least_inertia(values, weights, min(size, n))
        assert found == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("n", [10, 11, 12])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7])
def test_even_steps_where_one_penalty_gives_many_sizes(n: int, size: int) -> None:
    """No penalty gives this number of links: two paths are joined, at any place."""
    values, weights = np.arange(float(n)), np.ones(n)
    begins = maths.optimal_intervals(values, weights, size)
    assert len(begins) == size + 1
    assert inertia(values, weights, begins) == pytest.approx(
        least_inertia(values, weights, size)
    )


def test_a_feature_is_quantised_better_than_by_scikit_learn() -> None:
    x = np.random.default_rng(1).lognormal(size=(3000, 1))
    found = maths.quantise(x, 16, stream())
    ours = float(((x - found.centres[found.codes]) ** 2).sum())
    theirs = KMeans(16, n_init=10, random_state=0).fit(x).inertia_
    assert ours <= theirs * (1 + 1e-9)
    nearest = np.abs(x - found.centres.T).argmin(axis=1)
    assert np.array_equal(found.codes, nearest)


def test_a_mean_far_from_zero_costs_no_digits() -> None:
    x = np.random.default_rng(2).normal(size=400)
    ones = np.ones(400)
    near = maths.optimal_intervals(np.sort(x), ones, 9)
    far = maths.optimal_intervals(np.sort(x) + 1e8, ones, 9)
    assert np.array_equal(near, far)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
def test_a_codebook_is_as_good_as_scikit_learn_s(d: int) -> None:
    X = np.random.default_rng(d).normal(size=(1500, d))
    found = maths.quantise_points(X, 32, stream().uniform(32))
    ours = float(((X - found.centres[found.codes]) ** 2).sum())
    theirs = KMeans(32, n_init=1, random_state=0).fit(X).inertia_
    assert ours <= 1.05 * theirs
    away = ((X[:, np.newaxis] - found.centres) ** 2).sum(axis=2)
    chosen = away[np.arange(len(X)), found.codes]
    assert np.median(chosen / away.min(axis=1)) == 1.0


def test_codes_of_converged_centres_are_their_means() -> None:
    X = np.repeat(RNG.normal(size=(40, 3)), 5, axis=0) + 0.0
    found = maths.quantise_points(X, 4, stream().uniform(4))
    for number, centre in enumerate(found.centres):
        assert centre == pytest.approx(X[found.codes == number].mean(axis=0))


def test_fewer_different_rows_than_centres_are_the_centres() -> None:
    X = RNG.normal(size=(5, 3))[np.arange(60) % 5]
    found = maths.quantise_points(X, 16, stream().uniform(16))
    assert len(found.centres) == 5
    assert np.array_equal(found.centres[found.codes], X)


def test_equal_rows_get_equal_codes() -> None:
    X = RNG.integers(0, 3, size=(500, 4)).astype(np.float64)
    found = maths.quantise_points(X, 8, stream().uniform(8))
    _, which = np.unique(X, axis=0, return_inverse=True)
    for row in range(which.max() + 1):
        assert len(np.unique(found.codes[which == row])) == 1


def test_a_weight_counts_as_so_many_points() -> None:
    centres = RNG.normal(size=(12, 3))
    often = RNG.integers(1, 9, size=12)
    points = np.repeat(centres, often, axis=0)
    found = maths.coordinates(centres, often.astype(np.float64), 3)
    expected = maths.coordinates(points, np.ones(len(points)), 3)
    assert np.repeat(found, often, axis=0) == pytest.approx(expected)


def test_scaled_features_have_one_spread_and_a_constant_one_none() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1e-3, 1e3] + 7
    X = np.column_stack([X, np.full(50, 5.0)])
    params = ProductQuantisation(n_clusters=2, scaling="standard")
    scaled = maths.scale_rows(params, X)
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert scaled.std(axis=0) == pytest.approx([1, 1, 0])


def test_centres_count_by_their_rows_or_alike_as_the_terms_say() -> None:
    rng = np.random.default_rng(0)
    line = np.column_stack([np.linspace(0, 1, 180), np.zeros(180)])
    tail = np.column_stack([np.zeros(20), np.linspace(0, 2, 20)])
    X = np.concatenate([line, tail]) + 1e-3 * rng.normal(size=(200, 2))
    params = ProductQuantisation(
        n_clusters=2, scaling="none", sub_dim=2, codebook_size=40, normalise="scale"
    )
    codes = {
        weights: maths.encode(
            params.model_copy(update={"weights": weights}), X, KeyedStream(bytes(32))
        ).codes[:, 0]
        for weights in ("rows", "centres")
    }
    along = {name: abs(np.corrcoef(c, X[:, 0])[0, 1]) for name, c in codes.items()}
    assert along["rows"] > along["centres"] + 0.1


def test_more_clusters_than_rows_are_refused() -> None:
    with pytest.raises(ProtocolFailed, match="there are 178 rows"):
        simulate(ProductQuantisation(n_clusters=179), WINE, 2)


@pytest.mark.threat(96, 146)
def test_a_party_with_one_feature_is_refused() -> None:
    parts = simulation.split(WINE, Layout.lattice(1, 2), seed=1)
    first, second = parts.data.values()
    data = {"r1c1": first, "r1c2": MatrixSource(matrix(second)[:, :1], ids=second.ids)}
    with pytest.raises(GuardRefused, match="one feature"):
        simulation.run(PARAMS, parts.layout, data, seed=1)
    alone = ProductQuantisation(n_clusters=3, sub_dim=1)
    assert len(simulation.run(alone, parts.layout, data, seed=1).outcomes) == 2


@pytest.mark.threat(96)
def test_subspaces_of_one_feature_are_recovered_and_bring_a_warning() -> None:
    single = ProductQuantisation(
        n_clusters=3, sub_dim=1, coordinates=1, codebook_size=16
    )
    found = {}
    for params in (single, single.model_copy(update={"sub_dim": 4})):
        codes = maths.encode(params, WINE, stream()).codes
        cells = subspaces_of(params, WINE.shape[1])
        found[params.sub_dim] = party.compute_recovery(WINE, codes, cells)
    assert np.median(found[1]) > 0.9
    assert np.median(found[4]) < 0.5
    told = party.notes(single, found[1], 16, len(WINE))
    assert "sub_dim is 1" in told["warning"]
    assert told["small cells"].startswith("178 rows share 16 centres")
    assert "warning" not in party.notes(PARAMS, found[4], 4, len(WINE))

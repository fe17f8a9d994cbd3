"""`pqmds`: codebooks beside scikit-learn, codes, labels, refusals."""

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from clustering_protocols import simulation
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation, maths, party
from clustering_protocols.protocols.pqmds.params import subspaces_of
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

WINE = load_wine().data
PARAMS = ProductQuantisation(n_clusters=3, coordinates=1)
RNG = np.random.default_rng(0)


def stream() -> KeyedStream:
    return KeyedStream(bytes(32))


def simulate(params: ProductQuantisation, X: FloatArray, d: int) -> Any:
    parts = simulation.split(X, Layout.lattice(1, d), seed=1)
    return simulation.evaluate(params, X, parts, seed=1)


def inertia(X: FloatArray, centres: maths.Centres) -> float:
    return float(np.square(X - restored(X, centres)).sum())


def restored(X: FloatArray, centres: maths.Centres) -> FloatArray:
    """Return the centre of each row."""
    return (centres.V + centres.units.offset)[centres.nearest(X)]


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_a_codebook_is_as_good_as_scikit_learn_s(d: int) -> None:
    X = np.random.default_rng(d).normal(size=(1500, d))
    theirs = KMeans(32, n_init=1, random_state=0).fit(X).inertia_
    assert inertia(X, maths.quantise(X, 32, stream())) <= 1.1 * theirs


def test_a_mean_far_from_zero_costs_no_digits() -> None:
    x = np.random.default_rng(2).normal(size=(400, 1))
    near, far = (maths.quantise(x + mean, 9, stream()) for mean in (0.0, 1e8))
    assert np.array_equal(near.nearest(x), far.nearest(x + 1e8))


def test_centres_are_means_of_their_rows() -> None:
    X = np.repeat(RNG.normal(size=(40, 3)), 5, axis=0)
    found = maths.quantise(X, 4, stream())
    codes = found.nearest(X)
    assert np.array_equal(np.bincount(codes), found.counts)
    for number, centre in enumerate(found.V + found.units.offset):
        assert centre == pytest.approx(X[codes == number].mean(axis=0))


@pytest.mark.parametrize("size", [5, 16])
def test_few_distinct_rows_are_the_centres(size: int) -> None:
    X = RNG.normal(size=(5, 3))[np.arange(60) % 5]
    found = maths.quantise(X, size, stream())
    assert found.counts.tolist() == [12] * 5
    np.testing.assert_allclose(restored(X, found), X, rtol=0, atol=1e-12)


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
            params.model_copy(update={"weights": weights}), X, X, stream()
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
    with pytest.raises(ProtocolFailed, match="only column of r1c2 would"):
        Session(PARAMS, parts.layout, data, seed=1)
    alone = ProductQuantisation(n_clusters=3, sub_dim=1)
    assert len(simulation.run(alone, parts.layout, data, seed=1).outcomes) == 2


@pytest.mark.threat(96)
def test_subspaces_of_one_feature_are_recovered_and_bring_a_warning() -> None:
    single = ProductQuantisation(
        n_clusters=3, sub_dim=1, coordinates=1, codebook_size=16
    )
    found = {}
    for params in (single, single.model_copy(update={"sub_dim": 4})):
        Z = maths.scale_rows(params, WINE)
        codes = maths.encode(params, Z, Z, stream()).codes
        cells = subspaces_of(params, WINE.shape[1])
        found[params.sub_dim] = party.compute_recovery(WINE, codes, cells)
    assert np.median(found[1]) > 0.9
    assert np.median(found[4]) < 0.5
    told = party.notes(single, found[1], 16, len(WINE))
    assert "sub_dim is 1" in told["warning"]
    assert told["small cells"].startswith("178 rows share 16 centres")
    assert "warning" not in party.notes(PARAMS, found[4], 4, len(WINE))

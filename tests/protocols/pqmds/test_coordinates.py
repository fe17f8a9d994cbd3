"""The dial `coordinates` of `pqmds`: distances kept, one factor, budget, what it shows."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.manifold import ClassicalMDS
from support.tables import cut_columns

from clustering_protocols import simulation
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation, maths, messages
from clustering_protocols.protocols.pqmds.params import subspaces_of
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

SETS = {"wine": load_wine().data, "breast cancer": load_breast_cancer().data}
every_set = pytest.mark.parametrize("name", SETS)
RNG = np.random.default_rng(0)


def stream() -> KeyedStream:
    return KeyedStream(bytes(32))


def several(coordinates: int, sub_dim: int, **more: Any) -> ProductQuantisation:
    given = {"n_clusters": 3, "sub_dim": sub_dim, "coordinates": coordinates}
    return ProductQuantisation.model_validate(given | more)


@pytest.mark.parametrize("weights", ["rows", "centres"])
@pytest.mark.parametrize("size", [2, 3, 8, 64])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_all_coordinates_keep_the_distances_between_centres(
    d: int, size: int, weights: str
) -> None:
    rows = RNG.normal(size=(300, d)) * np.arange(1, d + 1) + 10
    params = several(d, d, codebook_size=size, weights=weights)
    book = maths.build_codebook(params, rows, stream(), d)
    assert book.coordinates.shape == (size, d)
    np.testing.assert_allclose(
        pdist(book.coordinates), pdist(book.centres.V), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("width", [1, 2, 3])
def test_coordinates_are_those_of_classical_scaling(width: int) -> None:
    centres = RNG.normal(size=(40, 4)) * [4.0, 3.0, 2.0, 1.0]
    expected = ClassicalMDS(n_components=width).fit_transform(centres)
    found = maths.coordinates(centres, np.ones(40), width)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_what_centres_do_not_span_is_zero(far: float) -> None:
    line = far + np.outer(RNG.normal(size=20), [1.0, 2.0, -1.0])
    found = maths.coordinates(line, np.ones(20), 3)
    assert found[:, 0].any()
    assert not found[:, 1:].any()
    np.testing.assert_allclose(pdist(found), pdist(line), atol=1e-8)


def test_minmax_scales_a_subspace_by_one_factor() -> None:
    rows = RNG.normal(size=(400, 2)) * [1.0, 7.0]
    kept = several(2, 2, codebook_size=32, scaling="none")
    given = maths.build_codebook(kept, rows, stream(), 2)
    minmax = kept.model_copy(update={"normalise": "minmax"})
    found = maths.build_codebook(minmax, rows, stream(), 2).coordinates
    assert found.min(axis=0).tolist() == [0.0, 0.0]
    assert found.max() == 1.0
    ratios = pdist(found) / pdist(given.centres.V)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("n_features", "sub_dim", "coordinates", "sizes", "widths"),
    [
        (8, 4, 1, [4, 4], [1, 1]),
        (8, 4, 3, [4, 4], [3, 3]),
        (7, 4, 3, [4, 3], [3, 3]),
        (6, 4, 3, [4, 2], [3, 2]),
        (9, 4, 3, [4, 5], [3, 3]),
        (9, 4, 4, [4, 5], [4, 5]),
        (5, 8, 2, [5], [2]),
        (3, 2, 2, [3], [3]),
        (3, 1, 1, [1, 1, 1], [1, 1, 1]),
        (1, 2, 1, [1], [1]),
        (2, 8, 5, [2], [2]),
    ],
)
def test_subspaces_and_their_coordinates_follow_from_terms_and_features(
    n_features: int, sub_dim: int, coordinates: int, sizes: list[int], widths: list[int]
) -> None:
    """No feature is left over alone."""
    cells = list(subspaces_of(several(coordinates, sub_dim), n_features))
    assert [features.stop - features.start for features, _ in cells] == sizes
    assert [width for _, width in cells] == widths
    assert (cells[0][0].start, cells[-1][0].stop) == (0, n_features)


@pytest.mark.parametrize("rows", ["as they are", "all equal", "on a line"])
def test_an_upload_has_the_same_shape_whatever_the_rows(rows: str) -> None:
    X = SETS["wine"][:, :7].copy()
    if rows != "as they are":
        X[:] = np.outer(X[:, 0] if rows == "on a line" else np.ones(len(X)), np.ones(7))
    params, layout = several(3, 3, n_clusters=1), Layout.lattice(1, 2)
    data = cut_columns(np.hstack([X, X[:, :2]]), layout, [7, 2])
    run = simulation.run(params, layout, data, 1)
    sent = [packets.parse(m.payload) for m in run.sent]
    codes = [p.arrays["codes"] for p in sent if p.header.record["kind"] == "codes"]
    assert [each.shape for each in codes] == [(178, 7), (178, 2)]
    assert run.outcomes["r1c1"].report["codes per row"] == 7
    assert run.outcomes["r1c1"].centroids is not None
    assert run.outcomes["r1c1"].centroids.shape == (1, 7)


@pytest.mark.threat(105)
@every_set
def test_the_self_check_says_what_least_squares_recovers(name: str) -> None:
    X = SETS[name]
    parts = simulation.split(X, Layout.lattice(1, 2), 1)
    running = Session(several(2, 2), parts.layout, parts.data, 1)
    running.play_until(messages.Encode)
    answer = running.answer("r1c1")
    notes = answer.notes
    assert notes["self-check"].startswith("what an analyst who knows some of your rows")
    assert "coordinates is 2" in notes["warning"]
    codes = packets.parse(answer.contribution).arrays["codes"]
    rows = matrix(running.data["r1c1"])[running.recall("r1c1", RowOrder).order]
    expected, begin = [], 0
    for features, width in subspaces_of(several(2, 2), rows.shape[1]):
        own, begin = codes[:, begin : begin + width], begin + width
        model = LinearRegression().fit(own, rows[:, features])
        guess = model.predict(own)
        left = ((rows[:, features] - guess) ** 2).mean(axis=0)
        expected += list(1 - left / rows[:, features].var(axis=0))
    assert notes["  features, median R²"] == pytest.approx(np.median(expected))
    assert notes["  features, largest R²"] == pytest.approx(max(expected))

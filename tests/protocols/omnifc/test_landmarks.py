"""Distances to landmarks: exact, of linear size, masked; the same algorithms on them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import kstest
from sklearn.datasets import load_digits, load_iris, load_wine, make_circles
from support.repeats import thorough

from clustering_protocols import simulation
from clustering_protocols.common import limits as general_limits
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.omnifc import (
    OmniFC,
    limits,
    maths,
    messages,
    party,
    units,
)
from clustering_protocols.secrecy.prime import P
from clustering_protocols.terms.terms import Layout
from tests.protocols.omnifc.shares import (
    assert_step_fits_memory,
    integer_distances,
    stream,
    words_sent,
)

SETS = {
    "iris": (load_iris().data, 3),
    "wine": (load_wine().data, 3),
    "digits": (load_digits().data[:400], 10),
}
ALGORITHMS = (
    "kmeans",
    "fuzzy_cmeans",
    "spectral",
    "dbscan",
    "hdbscan",
    "hierarchical",
    "kmedoids",
)
COUNTED = set(ALGORITHMS) - {"dbscan", "hdbscan"}


def params_of(algorithm: Any, k: int = 3, **more: Any) -> OmniFC:
    return OmniFC(
        algorithm=algorithm,
        n_clusters=k if algorithm in COUNTED else None,
        distances="landmarks",
        fuzziness=1.1,
        **more,
    )


def steps(points: Any) -> Any:
    whole = points.astype(np.int64)
    return np.where(whole > P // 2, whole - P, whole)


def measured(marks: Any, rows: Any) -> list[int]:
    """Return what the analyst decodes: by plain integers, not reduced."""
    both = np.concatenate([steps(marks), rows.astype(np.int64)])
    pairs = integer_distances(both)
    return pairs[: len(pairs) - limits.n_pairs(len(rows))]


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Any, int, int]:
    width = st.one_of(st.just(0.0), st.floats(1e-9, 1e8))
    ranges = np.array(draw(st.lists(width, min_size=1, max_size=9)))
    bits = draw(st.integers(0, units.largest_bits(ranges)))
    return ranges, bits, draw(st.integers(0, 255))


@given(boxes())
@settings(max_examples=thorough(ci=60, nightly=1000))
def test_landmark_distances_do_not_wrap_and_determine_the_rows(
    box: tuple[Any, int, int],
) -> None:
    ranges, bits, seed = box
    corners = np.array([np.zeros_like(ranges), ranges])
    inside = np.random.default_rng(seed).random((6, len(ranges))) * ranges
    rows = maths.quantise(np.concatenate([corners, inside]), bits)
    marks = maths.draw_landmarks(ranges, bits, stream(seed))
    assert marks.shape == (len(ranges) + 1, len(ranges))
    assert marks.max() < P
    squared = measured(marks, rows)
    assert max(squared) < P
    X = maths.rows_from_landmarks(
        np.array(squared, float).__getitem__, len(rows), len(ranges)
    )
    found, real = pdist(X), np.sqrt(np.array(integer_distances(rows), float))
    np.testing.assert_allclose(found, real, rtol=1e-9, atol=1e-13 * max(squared) ** 0.5)


def test_equal_rows_get_equal_coordinates_wherever_they_stand() -> None:
    rows = np.tile(maths.quantise(SETS["iris"][0][:5], 20), (1000, 1))
    marks = maths.draw_landmarks(np.full(4, 8.0), 20, stream(1))
    squared = np.array([np.square(steps(m) - rows.astype(float)).sum(1) for m in marks])
    between = in_order(steps(marks), squared)
    X = maths.rows_from_landmarks(between.__getitem__, len(rows), 4).reshape(1000, 5, 4)
    assert (X[0] == X).all()


def in_order(marks: Any, from_rows: Any) -> Any:
    parts = []
    for place, mark in enumerate(marks):
        parts += [np.square(marks[place + 1 :] - mark).sum(1), from_rows[place]]
    return np.concatenate(parts).astype(float)


def test_landmarks_are_a_regular_simplex_of_secret_orientation() -> None:
    first, second = (
        steps(maths.draw_landmarks(np.array([1.0, 50.0, 3.0]), 20, stream(seed)))
        for seed in (1, 2)
    )
    for marks in (first, second):
        np.testing.assert_allclose(pdist(marks), pdist(marks)[0], rtol=1e-6)
    assert np.abs(first - second).max() > 2**20


def test_every_direction_is_as_likely() -> None:
    """A point that is uniform on a sphere has a uniform height (Archimedes)."""
    source, simplex = stream(4), maths._simplex(3)
    turned = np.array([maths._map_orthogonally(simplex, source) for _ in range(3000)])
    for corner in range(4):
        for axis in range(3):
            heights = turned[:, corner, axis]
            assert kstest(heights, "uniform", args=(-1, 2)).pvalue > 1e-5


@pytest.mark.parametrize("n", [500, 501])
def test_spectral_of_many_rows_uses_representatives(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(general_limits, "MANY_IN_A_GRAPH", 500)
    monkeypatch.setattr(general_limits, "N_REPRESENTATIVES", 200)
    X, y = make_circles(n, factor=0.4, noise=0.04, random_state=0)
    params = params_of("spectral", k=2)
    parts = simulation.split(X, Layout.lattice(3), 1)
    found = simulation.evaluate(params, X, parts, 1)
    assert found.fidelity == 1.0
    assert adjusted_rand(y, found.labels) == 1.0
    reports = [each.report for each in found.simulated.outcomes.values()]
    said = general_limits.build_grouping_note(n)
    assert all((said.items() <= each.items()) == (n > 500) for each in reports)
    summary = messages.Summary.narrow(found.simulated.summary)
    assert summary.starts.max() >= 200  # numbers of rows, not of groups
    assert params.samples_rows(n) == (n > 500)
    assert not params.model_copy(update={"distances": "all"}).samples_rows(n)


def test_the_analyst_sees_no_landmark_and_no_share_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    share, draw = party.landmark_shares, maths.draw_landmarks

    def recording(call: Any) -> Any:
        def recorded(*given: Any) -> Any:
            made.append(call(*given))
            return made[-1]

        return recorded

    monkeypatch.setattr(party, "landmark_shares", recording(share))
    monkeypatch.setattr(maths, "draw_landmarks", recording(draw))
    X = np.random.default_rng(1).normal(size=(36, 3))
    parts = simulation.split(X, Layout.lattice(5), seed=0)
    params = params_of("kmeans", 2, noise=2)
    simulation.run(params, parts.layout, parts.data, 1)
    other, made[:] = made[0], []
    run = simulation.run(params, parts.layout, parts.data, 0)
    assert len(made) == 10
    drawn, shared = made[::2], made[1::2]
    assert all(np.array_equal(each, drawn[0]) for each in drawn)  # all parties alike
    assert not (other == drawn[0]).any(), "each session has its own"
    inside = {int(value) for each in (*drawn, *shared) for value in each.ravel()}
    assert not inside & (words_sent(run) - {0})


@pytest.mark.threat(84)
def test_a_corrupt_answer_that_breaks_the_simplex_is_found() -> None:
    """Masked answers of all rows cannot be checked; landmarks are known to be regular."""
    rows = maths.quantise(np.random.default_rng(0).random((9, 3)), 20)
    squared = np.array(
        measured(maths.draw_landmarks(np.ones(3), 20, stream(6)), rows), float
    )
    assert maths.rows_from_landmarks(squared.__getitem__, 9, 3).shape == (9, 3)
    squared[0] = 12345.0
    with pytest.raises(ProtocolFailed, match="at least one answer is corrupt"):
        maths.rows_from_landmarks(squared.__getitem__, 9, 3)


def squared_of(X: Any) -> Any:
    marks = maths._simplex(X.shape[1])
    return in_order(marks, np.array([np.square(X - mark).sum(1) for mark in marks]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_step_takes_no_more_memory_than_stated(algorithm: str) -> None:
    params = params_of(algorithm, n_init=2, max_iter=5)

    def read(X: Any) -> tuple[None, Any]:
        read_pairs = squared_of(X).__getitem__
        return None, maths.rows_from_landmarks(read_pairs, len(X), 4)

    assert_step_fits_memory(params, read, blocks=1 << 20)  # of figures, of fixed size

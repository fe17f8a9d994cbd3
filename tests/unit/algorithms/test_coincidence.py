"""Values that differ only by rounding count as equal."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_iris

from clustering_protocols.algorithms.coincidence import (
    COINCIDENCE,
    count_coinciding_centroids,
    count_coinciding_clusters,
    equalise_coordinates,
    strongest_clusters,
)
from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.records.arrays import FloatArray

NEAR = COINCIDENCE / 4


def plainly(V: FloatArray, unit: FloatArray) -> FloatArray:
    """Apply the definition to one coordinate after the other."""
    found = V.copy()
    for f in range(V.shape[1]):
        run: list[int] = []
        for c in sorted(range(len(V)), key=lambda at: (V[at, f], at)):
            if run and V[c, f] - V[run[-1], f] > COINCIDENCE * unit[f]:
                run = []
            run.append(c)
            for member in run:
                found[member, f] = V[min(run), f]
    return found


steps = st.integers(-8, 8).map(lambda n: n * NEAR)
coordinates = st.builds(lambda whole, step: whole + step, st.integers(-2, 2), steps)


@given(st.integers(1, 7), st.integers(1, 3), st.data())
def test_near_centroids_become_the_first_of_their_chain(
    k: int, m: int, data: st.DataObject
) -> None:
    rows = st.lists(coordinates, min_size=m, max_size=m)
    V = np.array(data.draw(st.lists(rows, min_size=k, max_size=k)), dtype=float)
    unit = np.array(
        data.draw(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=m, max_size=m))
    )
    found = equalise_coordinates(V, unit)
    assert np.array_equal(found, plainly(V, unit))
    assert np.array_equal(equalise_coordinates(found, unit), found)


def test_near_is_measured_in_the_unit_of_each_feature() -> None:
    V = np.array([[0.0, 0.0], [NEAR, NEAR]])
    found = equalise_coordinates(V, np.array([1.0, 1e-3]))
    assert found.tolist() == [[0.0, 0.0], [0.0, NEAR]]
    assert count_coinciding_centroids(found) == 0
    assert count_coinciding_centroids(equalise_coordinates(V, np.ones(2))) == 1


def test_of_equal_degrees_the_lowest_number_gets_the_row() -> None:
    degrees = np.array([[0.5, 0.5], [0.1, 0.9], [0.5, 0.5 + 1e-12], [0.0, 1.0]])
    assert strongest_clusters(degrees, 1e-9).tolist() == [0, 1, 0, 1]


def test_clusters_with_the_same_degrees_everywhere_are_alike() -> None:
    degrees = np.array([[0.2, 0.2 + 1e-12, 0.6], [0.3, 0.3, 0.4]])
    assert count_coinciding_clusters(degrees, 1e-9) == 1
    assert count_coinciding_clusters(np.full((4, 3), 1 / 3), 1e-9) == 2
    assert (
        count_coinciding_clusters(np.array([[0.2, 0.2, 0.6], [0.3, 0.4, 0.3]]), 1e-9)
        == 0
    )


def test_how_near_counts_as_equal_is_a_share_of_the_larger() -> None:
    degrees = np.array([[0.5, 0.5 * (1 + 1e-7)], [2e-8, 2e-8]])
    assert strongest_clusters(degrees, 1e-6).tolist() == [0, 0]
    assert strongest_clusters(degrees, 1e-8).tolist() == [1, 0]
    assert (
        count_coinciding_clusters(degrees, 1e-6),
        count_coinciding_clusters(degrees, 1e-8),
    ) == (1, 0)
    assert count_coinciding_clusters(np.array([[2e-8, 3e-8]]), 1e-6) == 0


@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
def test_coinciding_starts_number_clusters_as_the_first(order: tuple[int, ...]) -> None:
    """Their objectives differ by rounding, so the choice would depend on the machine."""
    X = load_iris().data
    first = np.array([0, 60, 120])
    both = fuzzy_cmeans(X, np.array([first, first[list(order)]]), 2.0, 300)
    alone = fuzzy_cmeans(X, first[None], 2.0, 300)
    np.testing.assert_array_equal(both.labels, alone.labels)

"""The difference of published means of two sessions must not reveal a single row."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine

from clustering_protocols import simulation
from clustering_protocols.common.limits import LEAST_OWN_ROWS
from clustering_protocols.numerics import round_numbers
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout

X = load_wine().data + np.random.default_rng(0).uniform(-1e-4, 1e-4, (178, 13))
ORDER = np.argsort(X[:, 0])
TARGETS = (20, 60, 100, 140)
LAYOUT = Layout.lattice(3)


def start(rank: int, shift: int) -> np.ndarray[Any, Any]:
    """Return centroids on a line: the slab of 14 rows begins below the target, or above."""
    values = np.sort(X[:, 0])
    low = values[rank - 1 + shift : rank + 1 + shift].mean()
    high = values[rank + 13 : rank + 15].mean()
    found = np.tile(X.mean(axis=0), (3, 1))
    half = (high - low) / 2
    found[:, 0] = low - half, low + half, high + half
    return found


def session(rank: int, shift: int) -> tuple[Any, Any]:
    params = LosslessFederated(
        n_clusters=3,
        init="given",
        initial_centroids=tuple(map(tuple, start(rank, shift).tolist())),
        max_iter=1,
    )
    names = [f"x{number}" for number in range(X.shape[1])]
    dictionary = [numeric_schema(names, X.min(axis=0) - 1, X.max(axis=0) + 1)]
    parts = simulation.split(X, LAYOUT, 0, names, dictionary=dictionary)
    run = simulation.run(params, LAYOUT, parts.data, 0, dictionary=dictionary)
    return run.summary, run.outcomes["r1c1"]


def near(guess: np.ndarray[Any, Any], row: np.ndarray[Any, Any]) -> float:
    """Return the share of cells within 5 % of their range."""
    return float(np.mean(np.abs(guess - row) <= 0.05 * np.ptp(X, axis=0)))


def best(
    before: Sequence[np.ndarray[Any, Any]],
    after: Sequence[np.ndarray[Any, Any]],
    row: np.ndarray[Any, Any],
) -> float:
    """Return how near the best difference of a mean of 14 rows and one of 13 comes."""
    pairs = product(before, after)
    return max((near(14 * one - 13 * other, row) for one, other in pairs), default=0.0)


@pytest.mark.threat(156)
def test_two_sessions_with_given_starts_reveal_no_row() -> None:
    told, exactly, guessed = [], [], []
    for rank in TARGETS:
        (before, party), (after, party_after) = session(rank, 0), session(rank, 1)
        row = X[ORDER[rank]]
        assert (before.sizes % 5 == 0).all()
        guessed.append(max(near(one, row) for one in before.centroids))
        exactly.append(best(party.centroids, party_after.centroids, row))
        told.append(best(before.centroids, after.centroids, row))
    assert np.mean(exactly) == 1.0, "who reads the exact centroids has the row"
    assert np.mean(told) <= np.mean(guessed), "one session alone says as much"


DIGITS = 1


@pytest.mark.threat(156)
def test_candidates_of_a_party_reveal_no_exact_size() -> None:
    """The leader knows sizes in fives, and that values are whole numbers of tenths."""
    found = np.mean([size_read_off(rows) for rows in own_clusters()])
    with pytest.MonkeyPatch.context() as patch:  # the control: steps with all digits
        patch.setattr(round_numbers, "round_up", lambda steps: steps)
        exactly = np.mean([size_read_off(rows) for rows in own_clusters()])
    assert exactly > 0.5
    assert found <= 0.2


def own_clusters() -> Iterator[np.ndarray[Any, Any]]:
    rows = load_iris().data
    for seed in range(5):
        own = rows[np.random.default_rng(seed).permutation(len(rows))[:50]]
        labels = KMeans(6, n_init=1, random_state=seed).fit_predict(own)
        for label in range(6):
            if np.count_nonzero(labels == label) >= LEAST_OWN_ROWS:
                yield own[labels == label]


def size_read_off(rows: np.ndarray[Any, Any]) -> bool:
    """Return whether only the true size makes n²·variance a whole number of squares."""
    pooled = load_iris().data.std(axis=0)
    told = clusters.round_mean((rows - load_iris().data.mean(axis=0)) / pooled)
    fewest = len(rows) // 5 * 5
    fits = {
        n
        for n in range(fewest, fewest + 5)
        if all(
            _is_whole_somewhere(abs(value) * scale, n)
            for value, scale in zip(told, pooled, strict=True)
            if value
        )
    }
    return fits == {len(rows)}


def _is_whole_somewhere(told: float, n: int) -> bool:
    """Return whether a mean of n rows is so many steps of a possible deviation."""
    steps = max(1 / 20, 5 / n) * np.arange(1, 60)
    squares = np.square(n * told / steps * 10**DIGITS)
    near = squares[(squares > 0.5) & (squares < (n * 20) ** 2)]
    return bool((np.abs(near - np.rint(near)) < 1e-7 * np.sqrt(near)).any())

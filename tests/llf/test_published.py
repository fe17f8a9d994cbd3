"""Published means of two sessions, from which a coordinator would take a single row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from clustering_protocols import simulation
from clustering_protocols.catalogue import risks_of
from clustering_protocols.protocols.llf import LosslessFederated, closing_sums, messages
from clustering_protocols.protocols.llf.features import Scaler
from clustering_protocols.terms.preparation import Ranges
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Identities, Layout

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
    """Return the summary of an honest session, and what a party gets."""
    params = LosslessFederated(
        n_clusters=3,
        init="given",
        initial_centroids=tuple(map(tuple, start(rank, shift).tolist())),
        max_iter=1,
    )
    names = [f"x{number}" for number in range(X.shape[1])]
    dictionary = [numbers(names, X.min(axis=0) - 1, X.max(axis=0) + 1)]
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
    """Return how near the best difference of two means comes: 14 rows, one less."""
    pairs = product(before, after)
    return max((near(14 * one - 13 * other, row) for one, other in pairs), default=0.0)


@pytest.mark.threat(156)
def test_two_sessions_with_given_starts_reveal_no_row() -> None:
    told, exactly, guessed = [], [], []
    for rank in TARGETS:
        (before, party), (after, party_after) = session(rank, 0), session(rank, 1)
        row = X[ORDER[rank]]
        assert (before.sizes % 5 == 0).all()
        guessed.append(near(X.mean(axis=0), row))
        exactly.append(best(party.centroids, party_after.centroids, row))
        told.append(best(before.centroids, after.centroids, row))
    assert np.mean(exactly) == 1.0, "who reads the exact centroids has the row"
    assert np.mean(told) <= np.mean(guessed)


@pytest.mark.threat(156)
def test_published_means_are_too_coarse_to_reveal_a_row() -> None:
    told, guessed = [], []
    for rank in range(10, 150):
        slab = X[ORDER[rank : rank + 14]]
        means = [_published(rows) for rows in (slab, slab[1:])]
        told.append(near(14 * means[0] - 13 * means[1], slab[0]))
        guessed.append(near(X.mean(axis=0), slab[0]))
    assert np.mean(told) <= np.mean(guessed)


def _published(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the mean of rows as it is told outside."""
    params = LosslessFederated(n_clusters=1)
    spread = X.std(axis=0)
    scale = Scaler(
        offset=X.mean(axis=0),
        inverse=1 / spread,
        limit=spread,
        sum_limit=spread,
        square_limit=spread,
        step=np.ones(X.shape[1]),
        ranges=Ranges.unknown(X.shape[1]),
    )
    means = scale(rows.mean(axis=0)[None])
    counts = np.array([len(rows)])
    context: Any = SimpleNamespace(
        params=params, layout=LAYOUT, weights=lambda _, width: np.ones(width)
    )
    figures: Any = None
    found = closing_sums.build_publication(
        context,
        scale,
        messages.Centroids(number=1, centroids=means, moved=0.0, sums=means[:0]),
        messages.FinalMeans(counts=counts, means=means),
        closing_sums.ClosingTotals(sizes=counts, figures=figures),
    )
    return np.asarray(found.centroids[0])


@pytest.mark.parametrize(("publish", "named"), [("centroids", True), ("sizes", False)])
def test_given_starts_with_published_centroids_are_named(
    publish: Any, *, named: bool
) -> None:
    params = LosslessFederated(
        n_clusters=1, init="given", initial_centroids=((0.0,),), publish=publish
    )
    codes = risks_of(params, LAYOUT, Identities())
    assert ("llf.given-start-and-means-show-rows" in codes) == named

"""Rows, layouts and sessions that the tests of `llf` share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus
from support.tables import cut, cut_columns, within

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.protocols.llf import LosslessFederated as Llf, messages
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.session_risks import SUMS_LIMIT
from clustering_protocols.terms.terms import Layout

SEED = 6


def blobs(n: int = 120, width: int = 3, k: int = 3, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    centres = 6.0 * rng.normal(size=(k, width))
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, width))


def start_of(X: FloatArray, k: int) -> tuple[tuple[float, ...], ...]:
    rows = kmeans_plusplus(X, k, random_state=SEED)[0]
    return tuple(tuple(map(float, row)) for row in rows)


START = ((-3.0, 2.0), (0.0, 0.0), (4.0, -3.0))


def rows(n: int = 200) -> FloatArray:
    """Return one cloud without groups: the centroids move for many updates."""
    return np.random.default_rng(2).normal(0.0, 3.0, size=(n, 2)).clip(-19, 19)


def dealt(
    X: FloatArray, *, columns: bool = False, sizes: Sequence[int] | int = 3
) -> tuple[Mapping[str, DataSource], Layout]:
    """Deal rows or columns to parties of these sizes, or evenly to so many."""
    if isinstance(sizes, int):
        sizes = [len(piece) for piece in np.array_split(X.T if columns else X, sizes)]
    if columns:
        layout = Layout.lattice(1, len(sizes))
        return cut_columns(X, layout, sizes), layout
    layout = Layout.lattice(len(sizes))
    return cut(X, layout, sizes), layout


def start_session(
    X: FloatArray,
    *,
    columns: bool = False,
    sizes: Sequence[int] | int = 3,
    widest: float | None = None,
    seed: int = SEED,
    evaluation: Evaluation | None = None,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
    **params: Any,
) -> Session:
    """Return a session over X; with ``widest``, a dictionary bounds all values by it."""
    data, layout = dealt(X, columns=columns, sizes=sizes)
    said = None if widest is None else within(-widest, widest, data, layout)
    return Session(
        Llf(**params),
        layout,
        data,
        seed,
        dictionary=said,
        evaluation=evaluation,
        choices=choices,
    )


def session(n_parties: int = 5, **more: Any) -> Session:
    given: dict[str, Any] = {
        "n_clusters": 3,
        "scaling": "none",
        "init": "given",
        "initial_centroids": START,
        "quorum": 3,
        "max_iter": 40,
        **more,
    }
    return start_session(rows(), sizes=n_parties, widest=20.0, seed=5, **given)


def three_parties(X: FloatArray | None = None, **more: Any) -> Session:
    """Return a session of three parties of 80 rows, whose values lie within ±90."""
    given = {"n_clusters": 4, "scaling": "none", "tol": 1e-3, "widest": 90.0, **more}
    return start_session(rows(240) if X is None else X, **given)


def plus(words: WordArray, *changes: tuple[int, int]) -> WordArray:
    steps = np.zeros(words.size, dtype=np.uint64)
    for place, step in changes:
        steps[place] = step % 2**64
    return words + steps.reshape(words.shape)


def columns_session(
    algorithm: Any, update: int = 3, bound: float | None = None, **more: Any
) -> Session:
    """Return a session of split columns; a dictionary of values up to ``bound``, if any."""
    # random rows: the default start comes to rest before any update can be lied about
    given = {"init": "random_rows", "n_clusters": 3, "algorithm": algorithm, **more}
    X = np.random.default_rng(0).normal(size=(60, 6))
    s = start_session(X, columns=True, widest=bound, seed=5, **given)
    s.play_until(messages.MeasureDistances, update)
    return s


def unaudited(layout: Layout) -> Mapping[str, Mapping[str, Any]]:
    """Return choices of parties that let all of their rows follow from sums."""
    return {slot: {SUMS_LIMIT: 1.0} for slot in layout.names}


def numbers_of(labels: IntArray, reference: IntArray, n_clusters: int) -> IntArray:
    """Return the reference's number of each cluster (k,), for two equal partitions.

    Fails if the partitions differ. Clusters without rows get the numbers that are left.
    """
    assert labels.shape == reference.shape
    assert np.array_equal(labels < 0, reference < 0)
    pairs = {(int(a), int(b)) for a, b in zip(labels, reference, strict=True) if a >= 0}
    numbers = dict(pairs)
    assert len(numbers) == len(pairs) == len(set(numbers.values())), "other clusters"
    left = iter(sorted(set(range(n_clusters)) - set(numbers.values())))
    return np.array(
        [numbers[c] if c in numbers else next(left) for c in range(n_clusters)]
    )

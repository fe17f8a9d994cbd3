"""Federated k-means as others have it, written here after their rules, without masks.

averaged      federated averaging, as `coterie compare` has it
mini-batch    centroids from k-means++ of k rows of each party, then mini-batch updates
              with counts, added up in rounds (the rule of NVFlare's example)
one shot      each party's own k-means, k of all its centroids by farthest first, and one
              step of Lloyd's iteration over them (D. Dennis, T. Li, V. Smith, 2021)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, kmeans_plusplus

from clustering_protocols.records.arrays import FloatArray
from party_sdk.cli.lab.baselines import average

Parts = Sequence[FloatArray]
Other = Callable[[Parts, int, np.random.Generator], FloatArray]

_ROUNDS: Final = 20


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def mini_batch(parts: Parts, k: int, rng: np.random.Generator) -> FloatArray:
    """Return centroids (k, m) after rounds of mini-batch updates with counts."""
    drawn = [
        kmeans_plusplus(X, min(k, len(X)), random_state=_seed(rng))[0] for X in parts
    ]
    V = (
        KMeans(k, n_init=1, random_state=_seed(rng))
        .fit(np.vstack(drawn))
        .cluster_centers_
    )
    counts = np.zeros(k)
    for _ in range(_ROUNDS):
        for X in parts:
            batch = X[rng.permutation(len(X))[:256]]
            labels = cdist(batch, V).argmin(axis=1)
            for c in np.unique(labels):
                own = batch[labels == c]
                counts[c] += len(own)
                V[c] += (own.sum(axis=0) - len(own) * V[c]) / counts[c]
    return V


def one_shot(parts: Parts, k: int, rng: np.random.Generator) -> FloatArray:
    """Return centroids (k, m) of all parties' own centroids."""
    own = [
        KMeans(min(k, len(X)), n_init=1, random_state=_seed(rng))
        .fit(X)
        .cluster_centers_
        for X in parts
    ]
    points, chosen = np.vstack(own), list(own[0][:1])
    while len(chosen) < k:
        far = cdist(points, np.array(chosen)).min(axis=1).argmax()
        chosen.append(points[far])
    return _lloyd(points, np.array(chosen), 1)


def _lloyd(X: FloatArray, V: FloatArray, steps: int) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: FloatArray = (
            KMeans(len(V), init=V, n_init=1, max_iter=steps).fit(X).cluster_centers_
            if len(X) >= len(V)
            else V
        )
    return found


OTHERS: Final[Mapping[str, Other]] = {
    "averaged": average, "mini-batch": mini_batch, "one shot": one_shot,
}  # fmt: skip

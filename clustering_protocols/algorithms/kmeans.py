"""k-means with starts that can be repeated elsewhere.

Lloyd's iteration is scikit-learn's. What is added: the starts are row numbers, so that
the same clustering can be started from the same rows of other (pooled) data, and the
outcome does not depend on the number of processors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import ThreadpoolController

from clustering_protocols.arrays import FloatArray, IntArray

WORTH_A_THREAD: Final = 10**7
"""From how many rows × features × clusters on two threads share an iteration.

It takes one thread some milliseconds. Threads wait for each other at the end of each
iteration: with less to do, and where processors are busy, they wait more than they work.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustering:
    """The best of several runs.

    Attributes
    ----------
    labels : int64 array of shape (n,)
    centroids : float64 array of shape (n_clusters, width)
    inertia : float
        Sum of squared distances to the nearest centroid.
    starts : int64 array of shape (n_init, n_clusters)
        Row numbers from which each run started.
    n_iter : int
        Iterations of the best run.
    converged : bool
        Whether it ended because no label changed.
    """

    labels: IntArray = field(repr=False)
    centroids: FloatArray = field(repr=False)
    inertia: float
    starts: IntArray = field(repr=False)
    n_iter: int
    converged: bool


def draw_starts(
    X: FloatArray, n_clusters: int, n_init: int, rng: np.random.Generator
) -> IntArray:
    """Return row numbers (n_init, n_clusters) drawn by k-means++.

    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    seeds = rng.integers(2**31, size=n_init)
    drawn = [
        kmeans_plusplus(X, n_clusters, random_state=int(seed))[1] for seed in seeds
    ]
    return np.array(drawn, dtype=np.int64)


def kmeans(X: FloatArray, starts: IntArray, max_iter: int) -> Clustering:
    """Run Lloyd's iteration from each row of starts; return the run of least inertia.

    Each run goes on until no label changes (or ``max_iter``): a tolerance would stop
    runs on differently scaled copies of the same data at different iterations.

    Parameters
    ----------
    X : float64 array of shape (n, width)
        Moved to its mean and back in place, instead of being copied: equal afterwards
        but for rounding.
    starts : int64 array of shape (n_init, n_clusters)
        Row numbers of X.
    max_iter : int
    """
    centers = [X[rows] for rows in starts]
    # Each thread adds up its share and the shares are added in the order in which
    # threads finish. The sum of two does not depend on their order; of three it does.
    threads = 1 if X.size * starts.shape[1] < WORTH_A_THREAD else 2
    with _pools().limit(limits=threads, user_api="openmp"):
        runs = [_run(X, center, max_iter) for center in centers]
    best = min(runs, key=lambda run: run.inertia_)
    return Clustering(
        labels=best.labels_.astype(np.int64),
        centroids=best.cluster_centers_,
        inertia=float(best.inertia_),
        starts=starts,
        n_iter=int(best.n_iter_),
        converged=bool(best.n_iter_ < max_iter),
    )


@cache  # it looks through all libraries of the process, which takes milliseconds
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def _run(X: FloatArray, centers: FloatArray, max_iter: int) -> KMeans:
    return KMeans(
        len(centers),
        init=centers,
        n_init=1,
        max_iter=max_iter,
        tol=0.0,
        algorithm="lloyd",
        copy_x=False,
    ).fit(X)


def nearest(X: FloatArray, centroids: FloatArray) -> IntArray:
    """Return the number of the nearest centroid (k, width) of each row of X (n, width).

    Exact ties go to the lowest number.
    """
    found: IntArray = pairwise_distances_argmin(X, centroids).astype(np.int64)
    return found

"""How long a party's audit of its own sums takes in a round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.speed.figures import Figure
from clustering_protocols.contract import RowHistory

N_ROWS, N_CLUSTERS, N_ROUNDS, N_LAST = 3000, 10, 100, 10


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield the CPU time of the last rounds' audits, two in each round."""
    n_rounds = N_LAST if small else N_ROUNDS
    X, _ = make_blobs(10 * N_ROWS, 10, centers=30, cluster_std=4.0, random_state=0)
    V = X[np.random.default_rng(0).choice(len(X), N_CLUSTERS, replace=False)]
    history, took = RowHistory.empty(N_ROWS), []
    for _ in range(n_rounds):
        model = KMeans(N_CLUSTERS, init=V, n_init=1, max_iter=1, tol=0).fit(X)
        V = model.cluster_centers_
        history = history.after_partition(model.predict(X[:N_ROWS]).astype(np.int64))
        begin = time.thread_time()  # threads of scikit-learn may still spin
        for _ in range(2):
            history.count_derivable_rows()
        took.append(1000 * (time.thread_time() - begin))
    last = median(took[-N_LAST:])
    yield Figure(f"audit of own sums, round {n_rounds}, ms of CPU time", last, 5)

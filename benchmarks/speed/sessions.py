"""Whole sessions of `llf` beside pooled k-means from the same start.

Ten parties, whose processes start with the session, share rows of thirty blobs. They
start at given rows, and make twenty updates of ten clusters.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.speed.analyst_process import open_session, run_parties
from benchmarks.speed.figures import Figure

N_PARTIES: Final = 10
N_CLUSTERS: Final = 10
N_UPDATES: Final = 20
TURNS: Final = 3


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield the time of sessions over that of scikit-learn, and what they took."""
    n_rows, n_columns = (3000, 4) if small else (1_000_000, 16)
    X, _ = make_blobs(n_rows, n_columns, centers=30, cluster_std=4.0, random_state=0)
    start = X[np.random.default_rng(0).choice(n_rows, N_CLUSTERS, replace=False)]
    pooled = KMeans(N_CLUSTERS, init=start, n_init=1, max_iter=N_UPDATES, tol=0)
    ratios, sessions = [], []
    for _ in range(1 if small else TURNS):
        sessions.append(measure_session(X, start))
        begin = time.perf_counter()
        pooled.fit(X)
        ratios.append(sessions[-1]["wall"] / (time.perf_counter() - begin))
    size = f"{n_rows:,} × {n_columns}"
    yield Figure(f"llf, {size}, ten cold parties ÷ pooled KMeans", median(ratios), 6)
    for name, key, factor, goal in (
        ("  party beside its rows, ms of CPU time a round", "beside rows", 1000, 5),
        ("  analyst, ms of CPU time an answer", "answer", 1000, 6),
        ("  party's memory, MiB", "memory", 1, 180),
    ):
        least = min(factor * session[key] for session in sessions)
        yield Figure(name, least, goal)


def measure_session(X: Any, start: Any) -> Mapping[str, float]:
    """Return what one session over HTTP takes."""
    parts = np.array_split(X, N_PARTIES)
    with (
        tempfile.TemporaryDirectory() as name,
        open_session(Path(name), parts, start, N_UPDATES) as (analyst, session),
    ):
        invitations, risks = session.invite(), session.status().risks
        served, begin = sum(analyst.processor_seconds()), time.perf_counter()
        reports = run_parties(Path(name), invitations, risks)
        wall = time.perf_counter() - begin
        rounds = session.status().round
        served = sum(analyst.processor_seconds()) - served
    return {
        "wall": wall,
        "beside rows": median(party["beside rows"] for party in reports),
        "memory": max(party["memory"] for party in reports),
        "answer": served / rounds / N_PARTIES,
    }

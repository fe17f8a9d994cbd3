"""How often a party's audit stops an honest session, and what it costs.

``python -m benchmarks.sums_audit`` plays sessions of ``llf`` over real tables, dealt out to
three parties, and counts whom the audit would have stopped; the sums of a session only
grow, so the last ones tell. Then it runs c-means over the pooled rows from starts of
k-means++, audits each party as its home does, and times the audit.
Tables: scikit-learn's, and those in the folder that COTERIE_DATA names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.cluster import kmeans_plusplus

from clustering_protocols.catalogue import parse_params
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import RowHistory
from clustering_protocols.contract.row_history import SHARE, most_following
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(3)
KS = (3, 5, 10)
SIZES = (50, 150, 500)
SEEDS = 4
FEWEST_MOVED = 10
MOST_COLUMNS = 100


def tables() -> Iterator[tuple[str, FloatArray]]:
    """Yield names and standardised rows."""
    for name in ("iris", "wine", "diabetes", "breast_cancer", "digits"):
        yield name, _standardised(getattr(datasets, f"load_{name}")().data)
    folder = Path(os.environ.get("COTERIE_DATA", "."))
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as found:
            if "X" in found and found["X"].ndim == 2:
                X = _standardised(np.asarray(found["X"], dtype=np.float64))
                if X.shape[1] <= MOST_COLUMNS:
                    yield path.stem, X


def played(Z: FloatArray, k: int, seed: int) -> list[bool]:
    """Return which parties the audit would have stopped; none where a guard did."""
    data = {
        slot: MatrixSource(rows)
        for slot, rows in zip(LAYOUT.names, np.array_split(Z, 3), strict=True)
    }
    params = parse_params("llf", {"n_clusters": k})
    choices = {slot: {"sums_limit": 1.0} for slot in LAYOUT.names}
    try:
        session = Session(params, LAYOUT, data, seed, choices=choices)
        session.to_the_end()
    except GuardRefused:  # columns that differ as if they were in other units
        return []
    most = most_following(SHARE, len(Z) // 3)
    kept = [
        session.memories[slot].scope_to_run(0).get(RowHistory) for slot in LAYOUT.names
    ]
    return [each is not None and each.n_following(most) > most for each in kept]


def partitions(Z: FloatArray, k: int, seed: int) -> list[IntArray]:
    """Return the clusters in each update, and those of the last centroids."""
    V, _ = kmeans_plusplus(Z, k, random_state=seed)
    found = []
    for _ in range(100):
        labels = cdist(Z, V, "sqeuclidean").argmin(axis=1)
        found.append(labels)
        counts = np.bincount(labels, minlength=k)
        sums = np.zeros_like(V)
        np.add.at(sums, labels, Z)
        large = (counts >= FEWEST_MOVED)[:, None]
        after = np.where(large, sums / np.maximum(counts, 1)[:, None], V)
        moved, V = float(np.linalg.norm(after - V)), after
        if moved <= 1e-5:
            break
    return [*found, cdist(Z, V, "sqeuclidean").argmin(axis=1)]


def audited(found: list[IntArray]) -> tuple[int, float, float]:
    """Return which update it stops (-1: none), and processor seconds: in all, at most."""
    n_rows = len(found[0])
    history, most = RowHistory.of_none(n_rows), most_following(SHARE, n_rows)
    times = []
    for number, labels in enumerate(found):
        begun = time.thread_time()
        history = history.after(labels)
        stops = history.n_following(most) > most
        times.append(time.thread_time() - begun)
        if stops:
            return number, sum(times), max(times)
    return -1, sum(times), max(times)


def main() -> None:
    """Print false alarms and times, a line for each size and number of clusters."""
    every = [Z for _, Z in tables()]
    _sessions(every)
    print(
        "\nrows of a party   k  parties  stopped   median and longest session   update"
    )
    for n_rows in SIZES:
        for k in KS:
            stopped, whole, longest = [], [], 0.0
            for Z in every:
                for seed in range(SEEDS if n_rows < SIZES[-1] else 1):
                    for each in _parties(Z, n_rows, k, seed):
                        at, seconds, slowest = audited(each)
                        stopped.append(at >= 0)
                        whole.append(seconds)
                        longest = max(longest, slowest)
            print(
                f"{n_rows:15d} {k:3d} {len(stopped):8d} {np.mean(stopped):8.1%}"
                f" {np.median(whole) * 1e3:12.1f} ms {max(whole) * 1e3:8.1f} ms"
                f" {longest * 1e3:8.1f} ms",
                flush=True,
            )
    _large()


def _sessions(every: Sequence[FloatArray]) -> None:
    """Print how many parties of small sessions are stopped, and how many sessions."""
    n_rows = SIZES[0]
    print("sessions of llf: rows of a party   k  sessions  stopped  parties stopped")
    for k in KS:
        found = [
            played(rows, k, seed)
            for Z in every
            for seed in range(SEEDS)
            for rows in _drawn(Z, n_rows, seed)
        ]
        stopped = [each for each in found if each]
        print(
            f"{n_rows:32d} {k:3d} {len(stopped):9d}"
            f" {np.mean([any(each) for each in stopped]):8.1%}"
            f" {np.mean(np.concatenate(stopped)):16.1%}",
            flush=True,
        )


def _drawn(Z: FloatArray, n_rows: int, seed: int) -> Iterator[FloatArray]:
    """Yield rows for three parties; nothing of tables that are too small."""
    if 3 * n_rows <= 1.2 * len(Z):
        order = np.random.default_rng(seed + 100).permutation(len(Z))[: 3 * n_rows]
        yield _standardised(Z[order])


def _parties(Z: FloatArray, n_rows: int, k: int, seed: int) -> Iterator[list[IntArray]]:
    """Yield the clusters of each party's rows; nothing of tables that are too small."""
    for rows in _drawn(Z, n_rows, seed):
        size = len(rows) // 3
        found = partitions(rows, k, seed)
        for party in range(3):
            mine = slice(party * size, (party + 1) * size)
            yield [labels[mine] for labels in found]


def _large() -> None:
    """Print what a million rows cost, of which only sums are counted."""
    n_rows, history = 1_000_000, RowHistory.of_none(1_000_000)
    begun = time.thread_time()
    for _ in range(25):
        history = history.after(np.arange(10))
        history.n_following(most_following(SHARE, n_rows))
    seconds = time.thread_time() - begun
    print(f"a million rows, 25 updates of 10 clusters: {seconds * 1e3:.1f} ms in all")


def _standardised(X: FloatArray) -> FloatArray:
    whole = X[np.isfinite(X).all(axis=1)]
    varying = whole[:, whole.std(axis=0) > 1e-9]
    Z: FloatArray = (varying - varying.mean(axis=0)) / varying.std(axis=0)
    return Z


if __name__ == "__main__":
    main()

"""Distances of `omnifc` to landmarks beside those of all rows: bytes, memory, time.

    python -m benchmarks.landmarks [--rows N] [--algorithms A,B] [--compare N]

Three parties and the analyst, one after the other in this process. Of each session: the
bytes of one party's upload; the most anonymous memory above that before it, in which all
four stand together; seconds; agreement with the groups that the rows were made of.
``--compare`` rows are clustered both ways and on the pooled data, ``--rows`` by landmarks
alone. Goals: less than 2 GiB by landmarks; fidelity 1. Ends with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

from clustering_protocols import simulation
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.omnifc import OmniFC, limits
from clustering_protocols.terms.terms import Layout

GOAL = 2 << 30
GROUPS = 10
FINDS_COUNT = {"dbscan", "hdbscan"}


def main() -> int:
    """Print a line for each session."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--algorithms", default="kmeans")
    parser.add_argument("--compare", type=int, default=5_000)
    given = parser.parse_args()
    names = given.algorithms.split(",")
    session(1_000, given.features, "kmeans", "landmarks")  # compiles
    print()
    same = [
        session(given.compare, given.features, name, way)
        for name in names
        for way in ("all", "landmarks")
    ]
    small = [
        session(given.rows, given.features, name, "landmarks", evaluated=False)
        for name in names
    ]
    return int(not all(same + small))


def session(
    n: int, d: int, algorithm: Any, distances: Any, *, evaluated: bool = True
) -> bool:
    """Run one session; return whether its goals are reached."""
    X, truth = make_blobs(n, d, centers=GROUPS, cluster_std=2.0, random_state=0)
    params = OmniFC(
        algorithm=algorithm,
        n_clusters=None if algorithm in FINDS_COUNT else GROUPS,
        distances=distances,
        n_init=3,
        max_rows=n,
    )
    parts = simulation.split(X, Layout.lattice(3), 0)
    watch, begin = Watch(), time.monotonic()
    if evaluated:
        run = simulation.evaluate(params, X, parts, 0)
        labels, fidelity = run.labels, run.fidelity
        seconds, peak = time.monotonic() - begin, watch.stop()
    else:
        outcomes = simulation.run(params, parts.layout, parts.data, 0).outcomes
        seconds, peak = time.monotonic() - begin, watch.stop()
        labels, fidelity = np.empty(n, dtype=np.int64), None
        for slot, rows in zip(parts.layout.names, parts.rows, strict=True):
            labels[rows] = outcomes[slot].labels
    print(
        f"{algorithm}, {distances}, {n} × {d}: upload "
        f"{limits.upload_bytes(params, n, d):,} bytes, {peak / 2**20:,.0f} MiB, "
        f"{seconds:.1f} s; agreement with the groups {adjusted_rand(truth, labels):.3f}"
        + ("" if fidelity is None else f"; fidelity {fidelity:.3f}"),
        flush=True,
    )
    return fidelity in {None, 1.0} and (distances == "all" or peak < GOAL)


class Watch:
    """Samples the anonymous memory of this process above what it was."""

    def __init__(self) -> None:
        self._before = self._peak = anonymous()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> int:
        """Return the most bytes above those of the beginning."""
        self._over.set()
        self._thread.join()
        return self._peak - self._before

    def _sample(self) -> None:
        while not self._over.wait(0.01):
            self._peak = max(self._peak, anonymous())


def anonymous() -> int:
    """Return the anonymous bytes of this process (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


if __name__ == "__main__":
    sys.exit(main())

"""The analyst's k-means beside scikit-learn's, from the same starts, on the same cores.

    python -m benchmarks.kmeans_speed [--rows N] [--updates N] [--runs N]

speed    wall time and processor time of N updates of all rows × 16 in 10 clusters, as
         ratios to scikit-learn's KMeans from the same rows, with as many threads; the
         median over runs, which take turns.
same     whether labels, centroids and inertia are the same bits on 1, 2 and 3 threads,
         and the agreement with scikit-learn: labels, and the relative error of inertia.
memory   how far the process grew beyond what it held before, at its largest (Linux).
images   processor time of as many updates of rows that `dc` computes from those of two
         parties in each pass, beside the same rows in one array: a million at most.
starts   three by draw_starts (k-means‖) beside three by k-means++ of scikit-learn: wall
         time, memory, and the least inertia after the same updates.

Ends with 1 where bits differ or the wall time is more than 1.2 × scikit-learn's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from benchmarks.timing import cpu_seconds, ratio
from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.row_blocks import whole
from clustering_protocols.protocols.dc import DataCollaboration, messages
from clustering_protocols.protocols.dc.analyst import fit_maps
from clustering_protocols.protocols.dc.common_space import CommonSpace
from clustering_protocols.records.arrays import FloatArray, IntArray

WIDTH, N_CLUSTERS, N_STARTS, GOAL = 16, 10, 3, 1.2
T = TypeVar("T")


class Cost(NamedTuple):
    """Wall time and processor time in seconds, and growth of memory in MiB."""

    wall: float
    cpu: float
    grown: float


def made(n: int) -> FloatArray:
    """Return rows (n, 16) of ten groups that overlap."""
    rng = np.random.default_rng(0)
    middles = 1.5 * rng.normal(size=(N_CLUSTERS, WIDTH))
    X = rng.standard_normal((n, WIDTH))
    for rows in np.array_split(np.arange(n), max(n // 100_000, 1)):
        X[rows] += middles[rng.integers(N_CLUSTERS, size=len(rows))]
    return X


def resident(what: str) -> float:
    """Return MiB of memory that the process holds now (RSS), or held at most (HWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"Vm{what}:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measured(work: Callable[[], T]) -> tuple[T, Cost]:
    """Return what work gives, and what it costs."""
    Path("/proc/self/clear_refs").write_text("5")  # the largest begins anew
    before = resident("RSS")
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return found, Cost(wall, cpu, resident("HWM") - before)


def ours(X: FloatArray, starts: IntArray, updates: int, threads: int) -> Clustering:
    """Return the analyst's clustering."""
    return kmeans(X, starts, updates, LocalEngine(threads))


def theirs(X: FloatArray, starts: IntArray, updates: int) -> KMeans:
    """Return scikit-learn's, which moves rows in place instead of copying them."""
    known = KMeans(
        N_CLUSTERS,
        init=X[starts[0]],
        n_init=1,
        max_iter=updates,
        tol=0.0,
        copy_x=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return known.fit(X)


def bits(found: Clustering) -> bytes:
    """Return what has to be the same."""
    inertia = np.float64(found.inertia).tobytes()
    return found.labels.tobytes() + found.centroids.tobytes() + inertia


def beside(X: FloatArray, updates: int, runs: int) -> bool:
    """Print speed, memory and agreement; return whether the goals were met."""
    starts = np.random.default_rng(1).choice(
        len(X), size=(1, N_CLUSTERS), replace=False
    )
    cores = os.cpu_count() or 1
    by_threads = {
        n: measured(lambda n=n: ours(X, starts, updates, n)) for n in (1, 2, 3)
    }
    same = len({bits(found) for found, _ in by_threads.values()}) == 1
    pairs = []
    for _ in range(runs):
        known, their_cost = measured(lambda: theirs(X, starts, updates))
        found, cost = measured(lambda: ours(X, starts, updates, cores))
        pairs.append((cost, their_cost))
    wall = median(one.wall / other.wall for one, other in pairs)
    cpu = median(one.cpu / other.cpu for one, other in pairs)
    labels = float(np.mean(found.labels == known.labels_))
    print(
        f"speed   {len(X):,} × {WIDTH}, {found.n_iter} updates, {cores} threads: "
        f"{wall:.2f} × scikit-learn's wall time (goal {GOAL}), {cpu:.2f} × its "
        f"processor time; {pairs[-1][0].wall:.1f} s and {pairs[-1][1].wall:.1f} s"
    )
    for n, (_, cost) in by_threads.items():
        print(f"        {n} threads: {cost.wall:.1f} s, {cost.grown:.0f} MiB more")
    print(
        f"same    bits on 1, 2, 3 threads: {same}; labels as scikit-learn's:", end=" "
    )
    print(f"{labels:.7f}, inertia {abs(found.inertia / known.inertia_ - 1):.1e} apart")
    print(
        f"memory  rows {X.nbytes >> 20} MiB, labels {found.labels.nbytes >> 20} MiB; "
        f"ours {max(cost.grown for _, cost in by_threads.values()):.0f} MiB more, "
        f"scikit-learn's {max(o.grown for _, o in pairs):.0f} MiB"
    )
    return same and wall <= GOAL


def of_images(n: int, updates: int, runs: int) -> None:
    """Print what it costs to compute rows in each pass."""
    rng = np.random.default_rng(3)
    cells = [
        {
            0: messages.Projections(
                rows=made(n // 2)[:, 1:].copy(),
                anchors=rng.normal(size=(500, WIDTH - 1)),
            )
        }
        for _ in range(2)
    ]
    maps = fit_maps(DataCollaboration(n_clusters=N_CLUSTERS), cells, [WIDTH])
    space = CommonSpace.of(cells, maps)
    array, starts = whole(space), rng.choice(n // 2, size=(1, N_CLUSTERS))
    found = ratio(
        lambda: kmeans(space, starts, updates),
        lambda: kmeans(array, starts, updates),
        *(runs, cpu_seconds),
    )
    same = bits(kmeans(space, starts, 2)) == bits(kmeans(array, starts, 2))
    print(
        f"images  {n:,} × {space.shape[1]}, {updates} updates: {found:.2f} × the "
        f"processor time of rows in an array; the same bits: {same}"
    )


def of_starts(X: FloatArray, updates: int) -> None:
    """Print what starts cost and are good for."""
    engine = LocalEngine(os.cpu_count() or 1)
    drawn, cost = measured(
        lambda: draw_starts(X, N_CLUSTERS, N_STARTS, np.random.default_rng(2), engine)
    )
    known, their_cost = measured(
        lambda: np.array(
            [
                kmeans_plusplus(X, N_CLUSTERS, random_state=seed)[1]
                for seed in range(N_STARTS)
            ]
        )
    )
    reached = [kmeans(X, starts, updates, engine).inertia for starts in (drawn, known)]
    print(
        f"starts  {N_STARTS} by draw_starts {cost.wall:.1f} s, {cost.grown:.0f} MiB more; "
        f"by k-means++ {their_cost.wall:.1f} s, {their_cost.grown:.0f} MiB; least inertia "
        f"after {updates} updates {reached[0] / reached[1]:.4f} × that from k-means++"
    )


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    ours(made(1_000), np.arange(N_CLUSTERS)[np.newaxis], 2, 1)  # compiles
    of_images(min(given.rows, 1_000_000), given.updates, given.runs)
    X = made(given.rows)
    good = beside(X, given.updates, given.runs)
    of_starts(X, given.updates)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

"""Spectral clustering by representatives beside that of all rows: agreement, time, memory.

    python -m benchmarks.spectral_many [--sets NAME ...] [--seeds 3]

Each way runs in a process of its own. Of each set: rows and features, then for each way
the adjusted Rand index with the graph of all rows and with the classes, processor seconds,
and the memory (RssAnon, sampled) that it takes beside the rows, once all is imported. Of
pendigits the index is that with scikit-learn's SpectralClustering
(affinity="nearest_neighbors", n_neighbors=10), which takes hours for the others.

exact      the graph of all rows: up to 100,000 of them a session takes it.
nine in ten  the same of nine rows in ten, compared on these: how far the clustering rests.
one of ten   by one representative for each ten rows, as a session of 100,000 rows has
           them; the mean of seeds, and in brackets the least.
1,000,000  the made sets of so many rows, by 10,000 representatives as in a session. The
           graph of all rows is out of reach: only the classes are compared.
k-means    of the rows: what a graph adds.

Sets of real data come from COTERIE_DATA; moons, rings and blobs are made. Ends with 1
where labels of sets whose clusters lie apart do not agree.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks import held_memory
from benchmarks.datasets import MissingDataError, load
from clustering_protocols.common.limits import N_REPRESENTATIVES

RATIO: Final = 10
MANY: Final = 1_000_000
MADE: Final = ("moons", "rings", "noisy moons", "blobs")
APART: Final = ("moons", "rings", "blobs")
LEAST_APART: Final = 0.99
SMALL: Final = ("pendigits",)
SETS: Final = ("moons", "rings", "noisy moons", "pendigits", "blobs", "mnist")


class Data(NamedTuple):
    """Rows (n, F), their classes (n,), and how many these are."""

    X: Any
    y: Any
    k: int


class Found(NamedTuple):
    """Labels (n,), processor seconds, and bytes beside the rows."""

    labels: Any
    seconds: float
    size: int


def data(name: str, n: int = 20_000) -> Data:
    """Return a set, of n rows if it is made; images in their first twenty components."""
    from sklearn.datasets import make_circles, make_moons

    if "moons" in name:
        noise = 0.18 if "noisy" in name else 0.06
        X, y = make_moons(n, noise=noise, random_state=0)
        return Data(X, y, 2)
    if name == "rings":
        X, y = make_circles(n, factor=0.5, noise=0.05, random_state=0)
        return Data(X, y, 2)
    if name == "blobs":
        rng = np.random.default_rng(0)
        middles = 3.0 * rng.normal(size=(10, 16))
        y = rng.integers(10, size=n)
        return Data(middles[y] + 1.5 * rng.normal(size=(len(y), 16)), y, 10)
    X, y = load(name)
    if X.shape[1] > 100:
        X = X - X.mean(axis=0)
        _, axes = np.linalg.eigh(X.T @ X)
        X = X @ axes[:, -20:]
    else:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Data(X, y, len(np.unique(y)))


# Ways: functions of rows, clusters and a seed


def exact(X: Any, k: int, seed: int) -> Any:
    """Return labels by the graph of all rows."""
    from clustering_protocols.algorithms.spectral import spectral_embedding

    return kmeans(spectral_embedding(X, k, np.random.default_rng(seed)), k, seed)


def theirs(X: Any, k: int, seed: int) -> Any:
    """Return scikit-learn's labels."""
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    ).fit_predict(X)


def kmeans(X: Any, k: int, seed: int) -> Any:
    """Return labels by k-means of the rows."""
    from clustering_protocols.algorithms.kmeans import draw_starts, kmeans as lloyd

    rng = np.random.default_rng(seed)
    return lloyd(X, draw_starts(X, k, 10, rng), 300).labels


def by_some(most: int) -> Callable[[Any, int, int], Any]:
    """Return the way of so many representatives."""

    def way(X: Any, k: int, seed: int) -> Any:
        from clustering_protocols.algorithms.representatives import Representatives
        from clustering_protocols.numerics.row_blocks import of

        rng = np.random.default_rng(seed)
        some = Representatives.draw(of(X), min(most, len(X) // RATIO), rng)
        return exact(some.V, k, seed)[some.nearest]

    return way


def run(way: Callable[[Any, int, int], Any], given: Data, seed: int = 0) -> Found:
    """Return what a way gives in a process of its own."""
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe()
    process = context.Process(target=_run, args=(far, way, given, seed))
    process.start()
    found: Found = near.recv()
    process.join()
    return found


def _run(
    parent: Any, way: Callable[[Any, int, int], Any], given: Data, seed: int
) -> None:
    way(given.X[:2000], given.k, seed)  # imports and compiles
    before, begun = held_memory.now("self").own, time.process_time()
    with held_memory.watched([os.getpid()]) as most:
        labels = way(given.X, given.k, seed)
    took = time.process_time() - begun
    (memory,) = most.values()
    parent.send(Found(labels, took, max(memory.own - before, 0)))


def figures(name: str, seeds: int) -> Iterator[bool]:
    """Print the figures of a set; yield whether each is as it should be."""
    from clustering_protocols.numerics.scores import adjusted_rand as agreement

    given = data(name)
    n = len(given.X)
    print(f"{name}, {n:,} × {given.X.shape[1]}, {given.k} clusters", flush=True)
    ours = run(exact, given)
    reference = ours.labels if name not in SMALL else run(theirs, given).labels

    def line(what: str, with_all: str, found: Found) -> None:
        print(
            f"  {what:12} {with_all:15}  classes {agreement(given.y, found.labels):.3f}  "
            f"{found.seconds:6.1f} s  {found.size >> 20:5} MiB",
            flush=True,
        )

    line("exact", f"{agreement(reference, ours.labels):.3f}", ours)
    kept = np.sort(np.random.default_rng(9).permutation(n)[: n * 9 // 10])
    less = run(exact, given._replace(X=given.X[kept])).labels
    print(f"  nine in ten  {agreement(ours.labels[kept], less):.3f}")
    each = [run(by_some(n), given, seed) for seed in range(seeds)]
    indices = [agreement(reference, found.labels) for found in each]
    line("one of ten", f"{mean(indices):.3f} ({min(indices):.3f})", each[0])
    yield name not in APART or min(indices) >= LEAST_APART
    found = run(kmeans, given)
    line("k-means", f"{agreement(reference, found.labels):.3f}", found)
    if name in MADE:
        given = data(name, MANY)
        line(f"{MANY:,}", "", run(by_some(N_REPRESENTATIVES), given))


def main() -> int:
    """Print the figures; return 1 where labels do not agree that should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    agree = True
    for name in arguments.sets:
        try:
            agree = all([*figures(name, arguments.seeds)]) and agree
        except MissingDataError as missing:
            print(f"{name}: not here. {missing}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())

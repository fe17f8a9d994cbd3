"""Loops over rows, residues and masks, as ratios of CPU time to a primitive.

Medians of alternating runs, on one thread of BLAS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed.figures import Figure
from clustering_protocols.algorithms.row_kernels import nearest_sums
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.llf import kernels
from clustering_protocols.protocols.omnifc.maths import field_distances
from clustering_protocols.secrecy.masks import add_stream
from clustering_protocols.secrecy.prime import P


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield the ratios of passes of `llf`, distances of `omnifc`, and masks."""
    n, F, k = (10_000 if small else 1_000_000), 16, 10
    rng = np.random.default_rng(0)
    X, V, U = rng.normal(size=(n, F)), rng.normal(size=(k, F)), rng.random((n, k))
    fixed = np.zeros(F), np.ones(F), V
    units, sums, weights = np.full(F, 2.0**30), np.zeros((k, F)), np.zeros(k)
    counts = sums.astype(np.int64), weights.astype(np.int64)
    no_inertia = np.zeros(2), np.zeros(2, np.int64)
    rows = n // 200
    Z = rng.integers(0, P, size=(rows, F), dtype=np.uint64)
    A = rng.normal(size=(rows, F))
    words = np.arange(10 * n, dtype=np.uint64)
    D, S, square = np.empty((n, k)), np.empty((k, F)), np.empty((rows, rows))

    with threadpool_limits(1):
        for name, ours, theirs, goal in (
            (
                "hard pass ÷ the product X V'",
                lambda: nearest_sums(X, *fixed, units, *counts, *no_inertia, 0.0),
                lambda: np.dot(X, V.T, out=D),
                2,
            ),
            (
                "fuzzy pass ÷ the products X V' and U' X",
                lambda: kernels.fuzzy_sums(
                    X, *fixed, 2.0, units, 2.0**30, sums, weights
                ),
                lambda: (np.dot(X, V.T, out=D), np.dot(U.T, X, out=S)),
                2,
            ),
            (
                "distances of residues ÷ the product A A'",
                lambda: field_distances(Z),
                lambda: np.dot(A, A.T, out=square),
                8,
            ),
            (
                "masking for one party ÷ a copy",
                lambda: add_stream(words, KeyedStream(bytes(32))),
                words.copy,
                3,
            ),
        ):
            ours(), theirs()
            ratios = [cpu_seconds(ours) / cpu_seconds(theirs) for _ in range(7)]
            yield Figure(name, median(ratios), goal)


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of a call, which other work affects less."""
    begin = time.process_time()
    call()
    return time.process_time() - begin

"""Speed of `llf` and of masked sums, as ratios to named primitives of one run.

    python -m benchmarks.speed.llf_speed

passes   one c-means pass over 1,000,000 × 16 rows, k = 10, against one matrix product
         X V'; one fuzzy pass against the products X V' and U' X; and scikit-fuzzy's pass
         against the same; the passes that close a session against a c-means pass. One
         BLAS thread, processor time.
masking  10,000,000 ring elements with one pairwise mask against `words.copy()`, and
         against a copy into memory that was touched before.
wire     bytes of one party and round, up and down, beside (k·F + k) · 8.
"""

from __future__ import annotations

import numpy as np
from skfuzzy.cluster._cmeans import _cmeans0
from threadpoolctl import threadpool_limits

from benchmarks.speed.timing import cpu_seconds, ratio
from clustering_protocols import simulation
from clustering_protocols.algorithms.row_kernels import bring_nearer
from clustering_protocols.engine import packets
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.llf import LosslessFederated, kernels
from clustering_protocols.quality.block_sums import add_by_label, of_block
from clustering_protocols.secrecy.masks import add_stream
from clustering_protocols.terms.terms import Layout

N_ROWS, N_FEATURES, N_CLUSTERS = 1_000_000, 16, 10
N_PARTIES = 10


def passes() -> None:
    """Print the ratios of one party's passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    V = rng.normal(size=(N_CLUSTERS, N_FEATURES))
    U = rng.random((N_ROWS, N_CLUSTERS))
    D, S = np.empty((N_ROWS, N_CLUSTERS)), np.empty((N_CLUSTERS, N_FEATURES))
    fixed = (np.zeros(N_FEATURES), np.ones(N_FEATURES), V)
    units = np.full(N_FEATURES, 2.0**30)
    sums, weights = np.zeros_like(V), np.zeros(N_CLUSTERS)
    labels = np.empty(N_ROWS, np.int64)

    def product() -> None:
        np.dot(X, V.T, out=D)

    def both_products() -> None:
        np.dot(X, V.T, out=D)
        np.dot(U.T, X, out=S)

    def cmeans() -> None:
        kernels.cmeans_sums(X, *fixed, units, sums, weights)

    def fuzzy() -> None:
        kernels.fuzzy_sums(X, *fixed, 2.0, units, 2.0**30, sums, weights)

    def skfuzzy() -> None:
        _cmeans0(X.T, U.T.copy(), N_CLUSTERS, 2.0, "euclidean")

    def closing() -> None:
        away = np.full(N_ROWS, np.inf)
        bring_nearer(X, *fixed, 0, labels, away, 0.0)
        add_by_label(X, *fixed[:2], labels, sums)
        of_block(X, fixed[:2], V, labels, np.bincount(labels, minlength=N_CLUSTERS))

    cmeans(), fuzzy(), closing()  # compiled now
    with threadpool_limits(1):
        found = ratio(cmeans, product, 7, cpu_seconds)
        print(f"c-means pass: {found:.2f} × one product X V' (goal 2)")
        found = ratio(fuzzy, both_products, 7, cpu_seconds)
        print(f"fuzzy pass: {found:.2f} × the products X V' and U' X (goal 2)")
        found = ratio(closing, cmeans, 7, cpu_seconds)
        print(f"labels and both closing sums: {found:.2f} × a c-means pass")
        found = ratio(skfuzzy, both_products, 1, cpu_seconds)
        print(f"  scikit-fuzzy's pass: {found:.1f} ×")


def masking() -> None:
    """Print the ratio of masking to copying."""
    words = np.arange(10_000_000, dtype=np.uint64)
    touched = np.ones_like(words)

    def masked() -> None:
        add_stream(words, KeyedStream(bytes(32)))

    found = ratio(masked, words.copy, 9, cpu_seconds)
    print(f"masking 10^7 elements for one other party: {found:.2f} × a copy (goal 3)")
    found = ratio(masked, lambda: np.copyto(touched, words), 9, cpu_seconds)
    print(f"  {found:.2f} × a copy into memory that was touched before")


def _is_update(sent: simulation.SentMessage) -> bool:
    return bool(packets.read(sent.payload).header.record["kind"] == "update")


def wire() -> None:
    """Print the bytes of one party and round."""
    X = np.random.default_rng(0).normal(size=(3000, N_FEATURES))
    parts = simulation.split(X, Layout.lattice(N_PARTIES, 1), 0)
    params = LosslessFederated(n_clusters=N_CLUSTERS, max_iter=5, tol=0)
    run = simulation.run(params, parts.layout, parts.data, 0)
    numbers = 8 * N_CLUSTERS * (N_FEATURES + 1)
    updates = [sent for sent in run.sent if _is_update(sent)]
    last_update = max(sent.round for sent in updates)
    for sender, way in (("r2c1", "up"), (simulation.ANALYST, "down")):
        sizes = [
            len(sent.payload)
            for sent in run.sent
            if sent.round == last_update
            and sent.sender == sender
            and "r2c1" in (sent.sender, sent.receiver)
        ]
        beyond = max(sizes) - 1.1 * numbers
        print(
            f"wire, {way}: {max(sizes)} bytes; 1.1 × (k·F + k) × 8 = {1.1 * numbers:.0f}"
        )
        print(f"  beyond that {beyond:.0f} (goal: under 1,024)")


if __name__ == "__main__":
    passes()
    masking()
    wire()

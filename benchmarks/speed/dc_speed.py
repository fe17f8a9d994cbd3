"""Speed of `dc`, as ratios to named primitives measured in the same run.

    python -m benchmarks.speed.dc_speed [--large]

maps      collaboration maps for 10,000 anchors and total width 200, against one economy
          QR of the same matrix; and their error against a reference by full SVDs.
sessions  a whole `dc` k-means session in simulation, c = 10, d = 2, against
          scikit-learn's KMeans on the pooled matrix from the same starts plus the
          parties' PCA. 1,000,000 × 16 rows with --large, 100,000 without.
spectral  our spectral clustering in a fresh process, imports included, against
          SpectralClustering(affinity="nearest_neighbors") in another, on pendigits and,
          with --large, on 50,000 × 16 rows in ten groups (scikit-learn takes a minute).

Each ratio is the median over interleaved runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from benchmarks.datasets import MissingDataError, load
from benchmarks.speed.timing import ratio, seconds
from clustering_protocols import catalogue, simulation
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dc import DataCollaboration, analyst, messages
from clustering_protocols.terms.terms import Layout

PARAMS = DataCollaboration(n_clusters=10)


def maps() -> None:
    """Print speed and error of the collaboration maps."""
    rng = np.random.default_rng(0)
    r, width, c, d = 10_000, 10, 10, 2
    anchors = [rng.normal(size=(r, width + 1)) for _ in range(d)]
    F = [
        [np.linalg.qr(rng.normal(size=(width + 1, width)))[0] for _ in range(d)]
        for _ in range(c)
    ]
    empty = np.zeros((0, width))
    cells = [
        {
            j: messages.Projections(rows=empty, anchors=anchors[j] @ F[i][j])
            for j in range(d)
        }
        for i in range(c)
    ]
    W = np.hstack([cell.anchors for row in cells for cell in row.values()])
    features = [width + 1] * d
    found = ratio(
        lambda: analyst.fit_maps(PARAMS, cells, features),
        lambda: np.linalg.qr(W),
        runs=7,
    )
    print(f"maps, r = {r}, width {W.shape[1]}: {found:.2f} × one economy QR (goal 2)")
    print(f"  relative error of X̂^anc against full SVDs: {error(cells, features):.1e}")


def error(cells: list[Any], features: list[int]) -> float:
    """Return the error of mapped anchors against T and G by SVD and pinv, up to signs."""
    maps_ = analyst.fit_maps(PARAMS, cells, features)
    worst = 0.0
    begin = 0
    for j, m in enumerate(features):
        blocks = [row[j].anchors - row[j].anchors.mean(axis=0) for row in cells]
        U, S, _ = np.linalg.svd(
            np.hstack(blocks) / np.sqrt(len(cells)), full_matrices=False
        )
        T = U[:, :m] * S[:m]
        width = blocks[0].shape[1]
        for row, block, mapping in zip(cells, blocks, maps_, strict=True):
            reference = block @ (np.linalg.pinv(block) @ T)
            rows = slice(begin, begin + width)
            columns = slice(j * m, (j + 1) * m)
            ours = row[j].anchors @ mapping.G[rows, columns] + mapping.g[columns]
            signs = np.sign((ours * reference).sum(axis=0))
            away = np.linalg.norm(ours * signs - reference) / np.linalg.norm(reference)
            worst = max(worst, float(away))
        begin += width
    return worst


def sessions(n_rows: int) -> None:
    """Print the ratio of a whole session to pooled k-means plus the parties' PCA."""
    X, _ = make_blobs(n_rows, 16, centers=10, cluster_std=3.0, random_state=0)
    parts = simulation.split(X, Layout.lattice(10, 2), 0)
    state: dict[str, Any] = {}

    def session() -> None:
        state["run"] = simulation.run(
            *(PARAMS, parts.layout, parts.data, 0),
            timer=time.perf_counter,
            runs_on=LocalEngine(os.cpu_count() or 1),
        )

    def pooled() -> None:
        starts = state["run"].summary.starts
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        for rows in starts:
            KMeans(10, init=Z[rows], n_init=1, tol=0.0, max_iter=300).fit(Z)
        for source in parts.data.values():
            PCA(len(source.columns) - 1).fit_transform(matrix(source))

    times = [(seconds(session), seconds(pooled)) for _ in range(3)]
    found = median(ours / theirs for ours, theirs in times)
    print(f"session, {n_rows:,} × 16: {found:.2f} × pooled KMeans and PCA (goal 1.5)")
    costs = state["run"].costs
    parties = sum(cost.seconds for role, cost in costs.items() if role != "analyst")
    print(f"  analyst {costs['analyst'].seconds:.1f} s, all parties {parties:.1f} s")


def spectral(name: str) -> None:
    """Print the ratio of whole processes that cluster one set."""
    runs = 1 if name == "blobs" else 7
    pairs = [(timed(name, "ours"), timed(name, "theirs")) for _ in range(runs)]
    faster = median(theirs[0] / ours[0] for ours, theirs in pairs)
    goal = 10 if name == "blobs" else 1
    print(f"spectral, {name}: {faster:.1f} × faster than scikit-learn (goal {goal})")
    (_, ours), (_, theirs) = pairs[0]
    print(f"  ARI with the classes {ours:.3f}, scikit-learn {theirs:.3f}")


def timed(name: str, who: str) -> tuple[float, float]:
    """Return seconds (imports included, data excluded) and ARI of a fresh process."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "benchmarks.speed.spectral_process",
            name,
            who,
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    took, ari = map(float, done.stdout.split())
    return took, ari


def main() -> None:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="The sizes of the goals.")
    large = parser.parse_args().large
    catalogue.catalogue()
    maps()
    sessions(1_000_000 if large else 100_000)
    try:
        load("pendigits")
        spectral("pendigits")
    except MissingDataError as missing:
        print(f"pendigits: not here. {missing}")
    if large:
        spectral("blobs")


if __name__ == "__main__":
    main()

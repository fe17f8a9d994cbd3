"""One spectral clustering in a process of its own: prints seconds and ARI.

    python -m benchmarks.speed.spectral_process pendigits|blobs ours|theirs

Seconds count from before the first import of what clusters; reading the data does not
count.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets


def data(name: str) -> tuple[Any, Any]:
    """Return rows and classes, importing nothing that clusters."""
    if name == "blobs":
        rng = np.random.default_rng(0)
        centers = rng.uniform(-10, 10, size=(10, 16))
        y = rng.integers(10, size=50_000)
        return centers[y] + rng.normal(size=(50_000, 16)), y
    with np.load(Path(datasets.folder()) / f"{name}.npz") as found:
        return found["X"].astype(np.float64), found["y"]


def ours(X: Any, k: int) -> Any:
    """Return our labels."""
    from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
    from clustering_protocols.algorithms.spectral import spectral_embedding

    rng = np.random.default_rng(0)
    Z = spectral_embedding(X, k, rng)
    return kmeans(Z, draw_starts(Z, k, 10, rng), 300).labels


def theirs(X: Any, k: int) -> Any:
    """Return scikit-learn's labels."""
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit_predict(X)


def main() -> None:
    """Cluster once."""
    X, y = data(sys.argv[1])
    begin = time.perf_counter()
    labels = {"ours": ours, "theirs": theirs}[sys.argv[2]](X, len(np.unique(y)))
    took = time.perf_counter() - begin
    from clustering_protocols.numerics.scores import adjusted_rand

    print(took, adjusted_rand(y, labels))


if __name__ == "__main__":
    main()

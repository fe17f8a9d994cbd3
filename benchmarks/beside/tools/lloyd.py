"""What the tools share: the table, and a party's part in an update of k-means."""

import json
from pathlib import Path

import numpy as np


def settings(folder):
    """Return the number of parties and of updates."""
    read = json.loads((Path(folder) / "settings.json").read_text())
    return read["parties"], read["updates"]


def site(folder, number):
    """Return the rows of a party; parties are numbered from 1."""
    return np.load(Path(folder) / f"site-{number}.npy")


def start(folder):
    """Return the centroids to start from."""
    return np.load(Path(folder) / "start.npy")


def local_sums(X, V):
    """Return sums (k, m) and counts (k,) of the rows nearest to each centroid."""
    labels = ((V * V).sum(1) - 2 * X @ V.T).argmin(1)
    columns = [np.bincount(labels, column, len(V)) for column in X.T]
    counts = np.bincount(labels, minlength=len(V)).astype(float)
    return np.stack(columns, axis=1), counts


def move_centroids(sums, counts, V):
    """Return the means of the rows; a centroid without rows stays where it is."""
    means = sums / np.maximum(counts, 1e-9)[:, None]
    return np.where(counts[:, None] > 0.01, means, V)


def write(folder, V, rounds):
    """Write the last centroids, and the number of rounds."""
    np.save(Path(folder) / "centroids.npy", np.asarray(V, dtype=float))
    (Path(folder) / "rounds").write_text(str(rounds))

"""Speed and size of `pqmds`, as ratios of processor time measured in the same run.

    python -m benchmarks.speed.pqmds_speed [--rows N]

party    a party's whole side of the upload, self-check included (392 features, sub_dim
         8, 256 centres), against the matrix products of 25 Lloyd iterations over all
         rows: rows times centres, 49 subspaces. MNIST if it is here, else normal rows.
column   the codebook of one feature, 256 centres, against scikit-learn's KMeans (one
         start): a pixel of MNIST, and normal values, which are all different; and the
         inertia of both.
bytes    what a party sends per row beside its rows as float64.

Ends with 1 if a ratio misses its goal: party 1.5, column of pixels 50.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks.datasets import MissingDataError, load
from benchmarks.speed.timing import cpu_seconds, ratio
from clustering_protocols import simulation
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation, maths, party
from clustering_protocols.protocols.pqmds.params import cut_features, subspaces_of
from clustering_protocols.terms.terms import Layout

PARAMS = ProductQuantisation(
    n_clusters=10, sub_dim=8, codebook_size=256, scaling="none"
)
WIDTH = 392
GOAL_PARTY, GOAL_COLUMN = 1.5, 50.0


def pixels(n_rows: int) -> NDArray[np.float64]:
    """Return rows (n, 392): the first half of MNIST's pixels, or normal numbers."""
    try:
        return load("mnist")[0][:n_rows, :WIDTH] / 255
    except MissingDataError as missing:
        print(f"{missing} Normal rows instead.")
        return np.random.default_rng(0).normal(size=(n_rows, WIDTH))


def party_side(X: NDArray[np.float64]) -> None:
    """Do what a party does for its upload."""
    codes = maths.encode(PARAMS, X, KeyedStream(bytes(32))).codes
    party.compute_recovery(X, codes, subspaces_of(PARAMS, WIDTH))


def products(X: NDArray[np.float64]) -> None:
    """Multiply rows and centres as often as Lloyd's iterations would."""
    size = PARAMS.codebook_size
    out = np.empty((len(X), size))
    for features in cut_features(WIDTH, PARAMS.sub_dim):
        rows = np.ascontiguousarray(X[:, features])
        centres = np.ascontiguousarray(rows[:size].T)
        for _ in range(maths.MAX_ITERATIONS):
            np.matmul(rows, centres, out=out)


def column(name: str, x: NDArray[np.float64]) -> float:
    """Print how much faster one column is than scikit-learn's, and how good."""
    size = PARAMS.codebook_size
    stream = KeyedStream(bytes(32))
    theirs = KMeans(size, n_init=1, random_state=0)
    faster = ratio(
        lambda: theirs.fit(x), lambda: maths.quantise(x, size, stream), 5, cpu_seconds
    )
    found = maths.quantise(x, size, stream)
    inertia = float(((x - found.centres[found.codes]) ** 2).sum())
    print(
        f"column  {name:8} {faster:6.0f} times faster; inertia {inertia:.4g}, "
        f"scikit-learn {theirs.inertia_:.4g}"
    )
    return faster


def sizes() -> None:
    """Print bytes per row that one of two parties sends."""
    X = np.random.default_rng(0).normal(size=(2000, 2 * WIDTH))
    layout = Layout.lattice(1, 2)
    for sub_dim in (1, 2, 4, 8):
        params = ProductQuantisation(n_clusters=2, sub_dim=sub_dim, codebook_size=10)
        run = simulation.run(params, layout, simulation.split(X, layout, 0).data, 0)
        sent = run.costs["r1c1"].sent_bytes / len(X)
        print(f"bytes   sub_dim {sub_dim}: {sent:6.0f} per row; raw {8 * WIDTH}")


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    X = pixels(parser.parse_args().rows)
    party_side(X[:600])  # compiles
    begin = time.process_time()
    party_side(X)
    spent = time.process_time() - begin
    cost = spent / cpu_seconds(lambda: products(X))
    print(f"party   {len(X)} rows: {cost:.2f} of the products; goal {GOAL_PARTY}")
    busiest = X[:, [int(X.std(axis=0).argmax())]]
    maths.quantise(busiest[:100], 8, KeyedStream(bytes(32)))
    faster = column("pixel", busiest)
    column("normal", np.random.default_rng(0).normal(size=(len(X), 1)))
    sizes()
    return int(cost > GOAL_PARTY or faster < GOAL_COLUMN)


if __name__ == "__main__":
    sys.exit(main())

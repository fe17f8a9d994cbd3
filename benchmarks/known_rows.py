"""What an analyst that knows some rows computes of all others, from rows up to a motion.

    python -m benchmarks.known_rows [--sets A,B] [--draws N]

The analyst of `omnifc` and of `dc` has the rows up to a rotation, a reflection and a shift
(`dc`: of all dimensions but one for each party). Known rows fix the motion: the
orthogonal fit of Procrustes, with the standard deviations of the features known. Printed
are the shares of cells that lie within 5 % of their feature's range, and of rows of which
all do, over the rows that are not known; means of some draws.
"""

from __future__ import annotations

import argparse
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import MissingDataError
from benchmarks.repeats import common_space, rows_of, turned

SETS: Final = ("iris", "wine", "breast_cancer")
NEAR: Final = 0.05

Matrix = NDArray[np.float64]


def compute_rows(Z: Matrix, X: Matrix, known: NDArray[np.int64]) -> Matrix:
    """Return all rows (n, d) from their image under a motion and from the known ones.

    Z: float64 (n, at most d); rows of standardised features, moved.
    X: float64 (n, d); read at ``known`` alone, and for the standard deviations.
    """
    missing = X.shape[1] - Z.shape[1]
    Z = np.hstack([Z, np.zeros((len(Z), missing))])
    scale = X.std(axis=0)
    Y = X[known] / scale
    here, there = Z[known].mean(axis=0), Y.mean(axis=0)
    U, _, Vt = np.linalg.svd((Z[known] - here).T @ (Y - there))
    return ((Z - here) @ (U @ Vt) + there) * scale


def score(guess: Matrix, X: Matrix) -> tuple[float, float]:
    """Return the share of cells within 5 % of their range, and of whole rows."""
    near = np.abs(guess - X) <= NEAR * np.ptp(X, axis=0)
    return float(near.mean()), float(near.all(axis=1).mean())


def measure(Z: Matrix, X: Matrix, n_known: int, draws: int) -> tuple[float, float]:
    """Return the mean scores of some draws of known rows."""
    scores = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(X))
        known, rest = order[:n_known], order[n_known:]
        scores.append(score(compute_rows(Z, X, known)[rest], X[rest]))
    cells, rows = np.mean(scores, axis=0)
    return float(cells), float(rows)


def main() -> None:
    """Print cells and whole rows by protocol and number of known rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    for name in given.sets.split(","):
        try:
            X = rows_of(name)
        except MissingDataError as missing:
            print(f"{name}: not here. {missing}")
            continue
        d = X.shape[1]
        views = {"omnifc": (turned(X, 0), X), "dc": common_space(X, 0)}
        for n_known in (d // 2, d, d + 1, 2 * d):
            found = {
                protocol: measure(Z, rows, n_known, given.draws)
                for protocol, (Z, rows) in views.items()
            }
            print(
                f"{name}, {d} features, {n_known} known rows: "
                + ", ".join(
                    f"{protocol} {cells:.2f} of cells, {rows:.2f} of rows"
                    for protocol, (cells, rows) in found.items()
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()

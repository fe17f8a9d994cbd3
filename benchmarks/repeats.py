"""Fields that an analyst finds in rows up to a motion, because numbers are rounded.

    python -m benchmarks.repeats [--sets A,B] [--protocol dc]

Numbers that are given to a last digit lie on a lattice whose axes are the fields, and so
do differences of rows. A motion turns the lattice and leaves it one: a short basis of it
(Lenstra, Lenstra and Lovász) shows the axes and the length of their last digits. It takes
some d + 30 rows; no value has to repeat, no row to be known, nothing to be released. Found
is a field along which a basis vector lies with |r| >= .999; the search does not know them.

`omnifc`: the rows, turned, to the digits that its fraction keeps. `dc`: the rows in the
common space of a session of three parties; `dc-all` with all dimensions.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import MissingDataError, load

SETS: Final = ("iris", "wine", "diabetes", "banknote", "breast_cancer")
HIT: Final = 0.999
_SCALES: Final = (1e3, 1e4, 1e5)
_EXTRA: Final = 30
_SHORTEST: Final = 2e-4

Matrix = NDArray[np.float64]


def find_axes(Z: Matrix, seconds: float, seed: int = 0) -> Matrix:
    """Return candidates (c, d) for the axes of the lattice on which rows lie.

    Z: float64 (n, d); rows up to a motion.
    seconds: how long to search at most, by each of three scales.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(Z), min(len(Z), Z.shape[1] + _EXTRA + 1), replace=False)
    V = Z[drawn[1:]] - Z[drawn[0]]
    found = [np.empty((0, Z.shape[1]))]
    for scale in _SCALES:
        # whole combinations of differences; small factors are preferred
        together = np.hstack([scale * V, np.eye(len(V))])
        short = reduced(together, seconds)[:, : Z.shape[1]] / scale
        found.append(short[np.linalg.norm(short, axis=1) > _SHORTEST])
    return np.concatenate(found)


def reduced(B: Matrix, seconds: float) -> Matrix:
    """Return a shorter basis of the lattice of B's rows, by the algorithm LLL."""
    B, k, end = B.copy(), 1, time.monotonic() + seconds
    G = np.zeros_like(B)  # orthogonalised rows; those below k hold
    G[0] = B[0]
    norms = np.einsum("ij,ij->i", G, G)
    while k < len(B) and time.monotonic() < end:
        for j in range(k - 1, -1, -1):
            B[k] -= np.rint(B[k] @ G[j] / norms[j]) * B[j]
        mu = G[:k] @ B[k] / norms[:k]
        G[k] = B[k] - mu @ G[:k]
        G[k] -= (G[:k] @ G[k] / norms[:k]) @ G[:k]  # again, for rounding
        norms[k] = G[k] @ G[k]
        if norms[k] >= (0.99 - mu[k - 1] ** 2) * norms[k - 1]:
            k += 1
            continue
        B[[k, k - 1]] = B[[k - 1, k]]
        k = max(k - 1, 1)
        if k == 1:
            G[0], norms[0] = B[0], B[0] @ B[0]
    return B


def matched(axes: Matrix, Z: Matrix, X: Matrix) -> dict[int, float]:
    """Return the largest |r| of each field that an axis shows with |r| >= .999."""
    best: dict[int, float] = {}
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    for axis in axes:
        along = (Z - Z.mean(axis=0)) @ axis
        r = np.abs(centred.T @ along) / len(X) / along.std()
        field = int(np.argmax(r))
        if r[field] >= HIT:
            best[field] = max(best.get(field, 0.0), float(r[field]))
    return best


def turned(X: Matrix, seed: int) -> Matrix:
    """Return standardised rows in unknown axes, to the digits that `omnifc` keeps."""
    rng = np.random.default_rng(seed)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    R = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    return scaled @ R + rng.normal(size=X.shape) * 2.0**-22


def common_space(X: Matrix, seed: int, **more: Any) -> tuple[Matrix, Matrix]:
    """Return the rows in the common space of a session of `dc`, and the rows themselves."""
    from clustering_protocols import simulation
    from clustering_protocols.numerics import row_blocks
    from clustering_protocols.protocols.dc import DataCollaboration, analyst
    from clustering_protocols.protocols.dc.common_space import CommonSpace
    from clustering_protocols.terms.terms import Layout

    kept: list[Matrix] = []
    honest = analyst.fit_maps

    def keeping(params: Any, row_groups: Any, widths: Any, engine: Any) -> Any:
        maps = honest(params, row_groups, widths, engine)
        kept.append(row_blocks.whole(CommonSpace.of(row_groups, maps)))
        return maps

    parts = simulation.split(X, Layout.lattice(3), seed)
    with patch.object(analyst, "fit_maps", keeping):
        params = DataCollaboration(n_clusters=3, **more)
        run = simulation.Session(params, parts.layout, parts.data, seed).to_the_end()
    rows = [X[parts.held[s]][run.orders[s]] for s in parts.layout.names]
    return kept[0], np.vstack(rows)


def _seen(X: Matrix, protocol: str) -> tuple[Matrix, Matrix]:
    """Return what the analyst has of rows, and the rows in the same order."""
    if protocol == "omnifc":
        return turned(X, 0), X
    return common_space(
        X, 0, dimensions="all" if protocol == "dc-all" else "all_but_one"
    )


def rows_of(name: str, most: int = 600) -> Matrix:
    """Return at most so many rows of a set, fields of one value left out."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        X = np.asarray(load_diabetes(scaled=False).data)
    else:
        X = load(name)[0]
    X = X[np.random.default_rng(0).permutation(len(X))[:most]]
    return X[:, X.std(axis=0) > 0]


def main() -> int:
    """Print, for each set, how many fields are found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument(
        "--protocol", choices=["omnifc", "dc", "dc-all"], default="omnifc"
    )
    given = parser.parse_args()
    for name in given.sets.split(","):
        try:
            X = rows_of(name)
        except MissingDataError as missing:
            print(f"{name}: not here. {missing}")
            continue
        Z, rows = _seen(X, given.protocol)
        found = matched(find_axes(Z, given.seconds), Z, rows)
        print(
            f"{name:14} {X.shape[0]:4} x {X.shape[1]:2}, {given.protocol}: "
            f"{len(found)} of {X.shape[1]} fields found",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether 'no clusters' is said where there are none, and only there.

    python -m benchmarks.no_clusters [--draws 10] [--rows 400]

Rows without clusters are drawn from a normal distribution and uniformly from a box, in
2, 3, 5 and 10 dimensions, and stretched. Rows with clusters are nested ones (two far
groups of three near ones, and a dense cluster within a wide one) and fourteen sets with
known classes. Every set is standardised; two to ten clusters are tried, to sixteen of
the set with fifteen. Beside the rule stands the first-step rule of the paper. Ends with
1 where the rule is wrong on a set with classes, or on more than one draw in ten of
noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from benchmarks import datasets
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.gap import Gap, gaps, says_one
from clustering_protocols.quality.stability import stability

Matrix = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Matrix]
REAL = (
    "iris", "wine", "breast_cancer", "digits", "rice", "waveform", "banknote",
    "xclara", "s1_deric", "pendigits",
)  # fmt: skip
_MOST_NOISE = 0.1


def main() -> None:
    """Print how often each rule says that there are no clusters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=400)
    given = parser.parse_args()
    print(f"{'rows':24}{'clusters':>9}{'draws':>6}{'wrong':>6}{'first step wrong':>18}")
    missed = _print("no", noise(), given.draws, given.rows)
    lost = _print("nested", nested(), given.draws, given.rows)
    lost += _print("yes", classes(), 1, given.rows)
    n_noise = len(dict(noise())) * given.draws
    print(f"noise taken for clusters: {missed} of {n_noise}")
    print(f"clusters denied: {lost}")
    sys.exit(bool(lost or missed > _MOST_NOISE * n_noise))


def _print(kind: str, sets: Iterator[tuple[str, Draw]], draws: int, rows: int) -> int:
    """Print a line for each set; return the number of wrong answers."""
    total = 0
    for name, draw in sets:
        wrong = first_wrong = 0
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            said, first = _answers(
                draw(rng, rows), 16 if name == "fifteen" else 10, rng
            )
            wrong += said != (kind == "no")
            first_wrong += first != (kind == "no")
        print(f"{name:24}{kind:>9}{draws:6}{wrong:6}{first_wrong:18}", flush=True)
        total += wrong
    return total


def _answers(X: Matrix, most: int, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether the rule, and the first-step rule, say one cluster."""
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    numbers = range(2, most + 1)
    found = gaps(Z, numbers, rng)
    runs = [
        Figures(
            n_clusters=each.n_clusters,
            gap=each.gap,
            gap_error=each.error,
            gap_of_one=found[0].gap,
            stability=stability(Z, each.n_clusters, rng),
        )
        for each in found
        if each.n_clusters > 1
    ]
    return bool(says_one(runs)), _first_step(found) == 1


def _first_step(found: list[Gap]) -> int:
    """Return the least k with gap(k) ≥ gap(k') - s_k', k' the next."""
    for own, following in pairwise(found):
        if own.gap >= following.gap - following.error:
            return own.n_clusters
    return found[-1].n_clusters


def noise() -> Iterator[tuple[str, Draw]]:
    """Yield sets without clusters."""
    for width in (2, 3, 5, 10):
        yield f"normal, {width}", lambda rng, n, w=width: rng.normal(size=(n, w))
        yield f"uniform, {width}", lambda rng, n, w=width: rng.uniform(size=(n, w))
    yield (
        "normal, correlated",
        lambda rng, n: rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)),
    )


def nested() -> Iterator[tuple[str, Draw]]:
    """Yield clusters within clusters."""
    yield "three within each of two", _groups
    yield (
        "one within a wide one",
        lambda rng, n: np.vstack(
            [rng.normal(0, 4, (n // 2, 2)), rng.normal(0, 0.1, (n // 2, 2)) + 3]
        ),
    )


def _groups(rng: np.random.Generator, n: int) -> Matrix:
    centres = np.array([[x, y] for x in (0, 30) for y in (0, 4, 8)], dtype=float)
    return centres[rng.integers(6, size=n)] + rng.normal(0, 0.5, (n, 2))


def classes() -> Iterator[tuple[str, Draw]]:
    """Yield fourteen sets with known classes; those that are not here are left out."""
    for name in REAL:
        try:
            X, _ = datasets.load(name)
        except datasets.MissingDataError as missing:
            print(missing)
            continue
        yield name, lambda rng, n, X=X: X[np.sort(rng.permutation(len(X))[:n])]
    corners = np.vstack([np.zeros(3), np.eye(3), -np.eye(3)]) * 3
    yield "seven apart", _around(corners, 0.5)
    tetra = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    yield "four close", _around(tetra, 0.45)
    turns = np.linspace(0, 2 * np.pi, 8)[:7]
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    yield "fifteen", _around(np.vstack([np.zeros(2), ring * 2, ring * 6]), 0.35)
    cube = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
    yield "eight corners", _around(cube * 4.0, 0.8)


def _around(centres: Matrix, deviation: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> Matrix:
        X, _ = make_blobs(
            n,
            centers=centres,
            cluster_std=deviation,
            random_state=int(rng.integers(2**31)),
        )
        return X

    return draw


if __name__ == "__main__":
    main()

"""λ of `fccm` by rows, density and clusters, beside the defaults, which are numbers.

    python -m benchmarks.fccm_lambdas [--rows N]

λ_u = β d and λ_w = α d n / k, where d is the mean co-occurrence, n the objects and k the
clusters: the units of the two sums that they divide. On the pooled matrix, which sessions
equal, from five starts; of each set at most N objects (200), classes as clusters, values
over the largest. "/max" is of counts or intensities, "by column" of measurements
from 0 to 1. Prints how many clusters have objects, and the adjusted Rand index to the
classes. There is no bar: it says whether one rule is better on every set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.datasets import MissingDataError, load
from clustering_protocols.protocols.fccm import CoClustering, reference
from clustering_protocols.records.arrays import FloatArray, IntArray

COUNTS: Final = ("terrorist", "digits", "mnist", "fmnist", "coil20")
MEASUREMENTS: Final = (
    "iris",
    "wine",
    "breast_cancer",
    "pendigits",
    "heart",
    "banknote",
)
RULES: Final = ((0.01, 0.1), (0.01, 0.3), (0.1, 0.1))
"""Pairs of β and α."""


class Known(NamedTuple):
    """A matrix of co-occurrences, and the class of each object."""

    name: str
    R: FloatArray
    classes: IntArray


def documents(rng: np.random.Generator) -> Known:
    """Return counts of 70 words in texts of four authors, over the largest."""
    authors = rng.dirichlet(np.full(70, 0.3), 4)
    classes = rng.integers(0, 4, 600)
    own = rng.dirichlet(np.full(70, 5.0), 600)
    lengths = rng.integers(200, 1500, 600)
    words = np.array(
        [
            rng.multinomial(n, 0.5 * authors[c] + 0.5 * p)
            for n, c, p in zip(lengths, classes, own, strict=True)
        ]
    )
    return Known("drawn texts/max", words / words.max(), classes)


def sparse(rng: np.random.Generator) -> Known:
    """Return few ones, more of them where blocks of objects and items meet."""
    classes = rng.integers(0, 5, 600)
    chance = np.where(np.arange(120) // 20 == np.arange(5)[:, None], 0.25, 0.03)
    R = (rng.random((600, 120)) < chance[classes]).astype(np.float64)
    return Known("drawn, few ones", R, classes)


def sets(most_rows: int) -> Iterator[Known]:
    """Yield all sets; one that is not there is named and left out."""
    yield documents(np.random.default_rng(3))
    yield sparse(np.random.default_rng(3))
    for name in (*COUNTS, *MEASUREMENTS):
        try:
            X, classes = load(name)
        except MissingDataError as missing:
            print(f"left out: {missing}")
            continue
        kept = np.random.default_rng(7).permutation(len(X))[:most_rows]
        R = np.asarray(X[kept], dtype=np.float64)
        if name in COUNTS:
            yield Known(f"{name}/max", R / R.max(), classes[kept])
        else:
            reach = np.ptp(R, axis=0)
            R = (R - R.min(axis=0)) / np.where(reach > 0, reach, 1.0)
            yield Known(f"{name} by column", R, classes[kept])


def settings(known: Known) -> Iterator[CoClustering]:
    """Yield the defaults, and the parameters of every rule."""
    k = len(np.unique(known.classes))
    yield CoClustering(n_clusters=k, n_init=5)
    d, n = known.R.mean(), len(known.R)
    for u, w in RULES:
        found = {"lambda_u": u * d, "lambda_w": w * d * n / k}
        yield CoClustering(n_clusters=k, n_init=5, **found)


def main() -> None:
    """Print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    given = parser.parse_args()
    heads = ["default", *(f"β {u:g}, α {w:g}" for u, w in RULES)]
    print(f"{'clusters, index':26}" + "".join(f"{each:>15}" for each in heads))
    for known in sets(given.rows):
        print(f"{known.name:26}", end="")
        for params in settings(known):
            labels = reference.cluster_pooled(params, known.R, None)
            index = adjusted_rand_score(known.classes, labels)
            print(f"{len(np.unique(labels)):>8}{index:7.3f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()

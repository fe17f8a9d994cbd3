"""How near to the best pooled k-means the start of `llf` over rows leads.

    python -m benchmarks.start_quality [--seeds N]

For each set, number of parties and way to deal the rows: the inertia where Lloyd's
iteration ends from the start that the parties agree on, over that of scikit-learn's
k-means on the pooled rows with ten starts. Sets come from scikit-learn and, where it
names a folder, from COTERIE_DATA (arrays X and y; at most 3,000 rows of each).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import MissingDataError, load
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.llf import starts
from clustering_protocols.records.arrays import FloatArray, IntArray

SETS: Final = {
    "iris": 3, "wine": 3, "breast_cancer": 2, "digits": 10, "pendigits": 10,
    "s1_deric": 15, "xclara": 3, "rice": 2, "waveform": 3, "heart": 2, "banknote": 4,
    "phoneme": 6,
}  # fmt: skip
MOST_ROWS: Final = 3000
LIMIT: Final = 1.02


class Case(NamedTuple):
    """One deal of a set, and where its start led."""

    name: str
    n_parties: int
    deal: str
    ratio: float


def cases(seeds: int) -> Iterator[Case]:
    """Yield every case; a set that is not there is named and left out."""
    for name, k in SETS.items():
        try:
            X, y = load(name)
        except MissingDataError as missing:
            print(f"left out: {missing}")
            continue
        kept = np.random.default_rng(7).permutation(len(X))[:MOST_ROWS]
        Z = StandardScaler().fit_transform(X[kept])
        best = KMeans(k, n_init=10, random_state=0).fit(Z).inertia_
        for n_parties in (3, 10):
            for deal in ("random", "by class"):
                for seed in range(seeds):
                    rows = _dealt(y[kept], deal, n_parties, seed)
                    V = _start([Z[own] for own in rows], k, seed)
                    found = KMeans(k, init=V, n_init=1).fit(Z).inertia_
                    yield Case(name, n_parties, deal, float(found / best))


def _dealt(y: IntArray, deal: str, n_parties: int, seed: int) -> list[IntArray]:
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(y))
    order = drawn if deal == "random" else np.lexsort((drawn, y))
    return list(np.array_split(order, n_parties))


def _start(parts: list[FloatArray], k: int, seed: int) -> FloatArray:
    stream = KeyedStream(seed.to_bytes(32, "big"))
    own = [starts.local_centroids(part, k, stream) for part in parts]
    weights = np.concatenate([each.sizes for each in own]).astype(np.float64)
    return starts.merge(np.vstack([each.centroids for each in own]), weights, k, stream)


def main() -> None:
    """Print the distribution of the ratio, and the cases above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")  # of scikit-learn, about rows that coincide
    found = list(cases(seeds))
    ratios = np.array([case.ratio for case in found])
    above = [case for case in found if case.ratio > LIMIT]
    print(
        f"{len(found)} cases: median {np.median(ratios):.4f}, 99 % "
        f"{np.quantile(ratios, 0.99):.4f}, worst {ratios.max():.4f}; above {LIMIT}: "
        f"{len(above)}"
    )
    for case in above:
        print(f"  {case.name}, {case.n_parties} parties, {case.deal}: {case.ratio:.4f}")


if __name__ == "__main__":
    main()

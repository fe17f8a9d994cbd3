"""What starts that race are worth: inertia over that of the best of five starts.

    python -m benchmarks.race [--seeds N]

`llf`, c-means, k the number of classes, rows dealt out to five parties. Each seed draws
five starts, in a session with ``n_init=5``. From each of them Lloyd's iteration runs on
the pooled standardised rows until no label changes. Of each seed, "one start" is where
the first ends, "race" where the session does, by its own figures; both over the least of
the five. Mean and worst over the seeds; ends with 1 if a mean of the race is above 1.01
with the starts that sessions have by default.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks.datasets import MissingDataError, load
from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated, messages
from clustering_protocols.terms.terms import Layout

SETS: Final = ("iris", "wine", "xclara", "s1_deric", "pendigits", "banknote")
N_STARTS: Final = 5
GOAL: Final = 1.01
Init = Literal["careful", "random_party"]
DEFAULT: Final = "careful"


class Ratios(NamedTuple):
    """Inertia over that of the best of five: of the first start, and of the race."""

    one: float
    race: float


def ratios(X: NDArray[np.float64], k: int, init: Init, seed: int) -> Ratios:
    """Return the ratios of one seed."""
    layout = Layout.lattice(5)
    params = LosslessFederated(n_clusters=k, init=init, n_init=N_STARTS)
    parts = simulation.split(X, layout, seed)
    session = simulation.Session(params, layout, parts.data, seed)
    while session.open.stage != "race":
        session.turn()
    session.turn()
    lanes = session.recall(layout.names[0], messages.LaneStarts).centroids
    (figures,) = session.to_the_end().outcomes[layout.names[0]].figures
    dealt = X[:, parts.columns[0]]  # parties hold the columns in this order
    Z = (dealt - dealt.mean(axis=0)) / dealt.std(axis=0)
    ends = [_inertia(Z, V) for V in lanes]
    return Ratios(one=ends[0] / min(ends), race=figures.values["inertia"] / min(ends))


def _inertia(Z: NDArray[np.float64], V: NDArray[np.float64]) -> float:
    run = KMeans(len(V), init=V, n_init=1, max_iter=1000, tol=0.0, algorithm="lloyd")
    return float(run.fit(Z).inertia_)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    failed = False
    inits: tuple[Init, ...] = (DEFAULT, "random_party")
    for init in inits:
        print(f"\n{init}, {len(seeds)} seeds: mean (worst)")
        for name in SETS:
            try:
                X, classes = load(name)
            except MissingDataError as missing:
                print(f"  {name:10} not here. {missing}")
                continue
            k = len(np.unique(classes))
            found = np.array([ratios(X, k, init, seed) for seed in seeds])
            mean, worst = found.mean(axis=0), found.max(axis=0)
            print(
                f"  {name:10} k {k:2}   one start {mean[0]:.3f} ({worst[0]:.3f})   "
                f"race {mean[1]:.3f} ({worst[1]:.3f})",
                flush=True,
            )
            failed |= init == DEFAULT and mean[1] > GOAL
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

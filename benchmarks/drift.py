"""How often new rows are said to have drifted in vain, and how often in time.

    python -m benchmarks.drift [--draws N] [FOLDER]

Trained and new rows of one site are drawn from the same distribution, clustered by the
nearest of some centres, and compared as `coterie party predict` does. Shapes of columns:
normal, exponential, lognormal, of three degrees of freedom, yes and no of which one in
twenty is yes, of two far groups, and normal with one common factor. Rows of public sets
are dealt to both by chance (FOLDER holds `NAME.npz` with X and y; by default
$COTERIE_DATA). A false alarm is a site that is said to have drifted. Then one column of
ten moves by a shift, or in its standard deviation, and the share of sites in which that
is found is printed.

Ends with 1 if more than one site in fifty is alarmed in vain: of a pair of sizes, or of
all public sets together.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.unit_alarms import tables
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.statistics.by_leader import measure
from party_sdk.results.drift_summary import MeasuredRows, summarise
from party_sdk.results.trained_rows import TrainedRows, measure_prepared

MOST_FALSE: Final = 1 / 50
SIZES: Final = ((50, 20), (50, 500), (200, 20), (200, 100), (1000, 50), (1000, 1000))
WIDTHS: Final = (3, 10, 50)
N_CENTRES: Final = 4
MOST_DEALT: Final = 600  # rows
Shape = Callable[[np.random.Generator, int, int], FloatArray]


def _groups(rng: np.random.Generator, n: int, m: int) -> FloatArray:
    return rng.normal(size=(n, m)) + 6.0 * rng.integers(2, size=(n, 1))


def _common(rng: np.random.Generator, n: int, m: int) -> FloatArray:
    return rng.normal(size=(n, m)) + 2.0 * rng.normal(size=(n, 1))


SHAPES: Final[dict[str, Shape]] = {
    "normal": lambda rng, n, m: rng.normal(size=(n, m)),
    "exponential": lambda rng, n, m: rng.exponential(size=(n, m)),
    "lognormal": lambda rng, n, m: rng.lognormal(size=(n, m)),
    "heavy tails": lambda rng, n, m: rng.standard_t(3, size=(n, m)),
    "rare yes": lambda rng, n, m: (rng.random((n, m)) < 1 / 20).astype(np.float64),
    "two groups": _groups,
    "common factor": _common,
}


def is_alarmed(then: FloatArray, now: FloatArray) -> bool:
    """Return whether rows are said to have drifted from others."""
    centres = then[:N_CENTRES]
    width = then.shape[1]
    sizes = np.bincount(_nearest(then, centres), minlength=N_CENTRES)
    own = measure_prepared(MatrixSource(then))
    outside = ((now < own.minimum) | (now > own.maximum)).sum(axis=0)
    new = MeasuredRows(
        n_rows=len(now),
        columns=tuple(f"x{place}" for place in range(width)),
        moments=measure(MatrixSource(now), moments=True, ranges=False),
        variables=None,
        labels=_nearest(now, centres),
        outside=outside,
        rows_outside=None,
        farthest=None,
    )
    trained = TrainedRows(
        own=own, variables=None, pooled=None, declared=None, sizes=sizes
    )
    return summarise(trained, new, None, None).drift == "drifted"


def _nearest(X: FloatArray, centres: FloatArray) -> IntArray:
    away = np.square(X[:, None] - centres).sum(axis=2)
    return away.argmin(axis=1)


def false_alarms(draws: int) -> Iterator[float]:
    """Print the share of sites that are alarmed in vain; yield it of each shape."""
    print("alarmed in vain: columns, then each pair of trained and new rows")
    print("shape", "columns", *(f"{n}/{new}" for n, new in SIZES), sep="\t")
    for name, shape in SHAPES.items():
        for width in WIDTHS:
            shares = []
            for n, n_new in SIZES:
                rng = np.random.default_rng([n, n_new, width])
                alarms = sum(
                    is_alarmed(shape(rng, n, width), shape(rng, n_new, width))
                    for _ in range(draws)
                )
                shares.append(alarms / draws)
            print(name, width, *(f"{share:.4f}" for share in shares), sep="\t")
            yield from shares


def dealt_alarms(folder: Path, draws: int) -> float:
    """Print the share of sites that are alarmed in vain, of each set; return it of all."""
    print("\nalarmed in vain, rows of a set dealt by chance: two thirds are trained")
    shares = []
    for name, X, _ in tables(folder):
        rng = np.random.default_rng(5)
        alarms = 0
        for _ in range(draws):
            dealt = rng.permutation(len(X))[:MOST_DEALT]
            cut = len(dealt) * 2 // 3
            alarms += is_alarmed(X[dealt[:cut]], X[dealt[cut:]])
        shares.append(alarms / draws)
        print(f"{shares[-1]:.4f}", name, f"{X.shape[1]} columns", sep="\t")
    return float(np.mean(shares))


def found_drifts(draws: int) -> None:
    """Print in how many sites one of ten columns is found to have drifted."""
    changes: dict[str, Callable[[FloatArray], FloatArray]] = {
        "shift 0.3": lambda x: x + 0.3,
        "shift 0.5": lambda x: x + 0.5,
        "shift 1": lambda x: x + 1.0,
        "shift 2": lambda x: x + 2.0,
        "3 times as wide": lambda x: 3.0 * x,
    }
    print("\nfound, one of ten normal columns: each pair of trained and new rows")
    print("change", *(f"{n}/{new}" for n, new in SIZES), sep="\t")
    for name, change in changes.items():
        shares = []
        for n, n_new in SIZES:
            rng = np.random.default_rng([n, n_new])
            found = 0
            for _ in range(draws):
                then, now = rng.normal(size=(n, 10)), rng.normal(size=(n_new, 10))
                now[:, 0] = change(now[:, 0])
                found += is_alarmed(then, now)
            shares.append(found / draws)
        print(name, *(f"{share:.2f}" for share in shares), sep="\t")


def main() -> int:
    """Print both; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("folder", nargs="?", default=os.environ.get("COTERIE_DATA", ""))
    given = parser.parse_args()
    draws, few = given.draws, max(1, given.draws // 5)
    most = max(*false_alarms(draws), dealt_alarms(Path(given.folder), few))
    found_drifts(few)
    print(f"\nmost alarmed in vain: {most:.4f}; at most {MOST_FALSE:g}")
    return int(most > MOST_FALSE)


if __name__ == "__main__":
    sys.exit(main())

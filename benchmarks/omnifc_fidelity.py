"""Fidelity of `omnifc` against the same clustering of the pooled data.

    python -m benchmarks.omnifc_fidelity [--rows N] [--parties M] [--sets A,B]

Rows are drawn (at most N of a set), shuffled by a seed and dealt to M parties. Fidelity is
the adjusted Rand index between the labels and those of the same algorithm on the pooled
data, with the same scaling, from the same rows. The lossless mode is every algorithm on
decoded distances, k-means and fuzzy c-means on their embedding, and the same on
distances to landmarks; the paper's mode is k-means and fuzzy c-means on rows of
distances. Ends with 1 if a lossless one on all distances is below 1: by landmarks
rounding decides between neighbours at equal distances.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from benchmarks.datasets import MissingDataError, load
from clustering_protocols import simulation
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout

SETS = ("iris", "digits", "pendigits", "coil20")
LOSSLESS: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "fuzzy_cmeans": {"algorithm": "fuzzy_cmeans"},
    "spectral": {"algorithm": "spectral"},
    "dbscan": {"algorithm": "dbscan"},
    "single": {"algorithm": "hierarchical", "linkage": "single"},
    "complete": {"algorithm": "hierarchical", "linkage": "complete"},
    "average": {"algorithm": "hierarchical", "linkage": "average"},
    "ward": {"algorithm": "hierarchical", "linkage": "ward"},
    "kmedoids": {"algorithm": "kmedoids"},
}
LANDMARKS: dict[str, dict[str, Any]] = {
    f"{label}, landmarks": {"distances": "landmarks"} | variant
    for label, variant in (LOSSLESS | {"hdbscan": {"algorithm": "hdbscan"}}).items()
}
PAPER: dict[str, dict[str, Any]] = {
    "kmeans, rows of D": {"features": "distance_rows"},
    "fuzzy_cmeans, rows of D": {
        "algorithm": "fuzzy_cmeans",
        "features": "distance_rows",
    },
}
GOAL = 1.0
# With m = 2 all centroids of fuzzy c-means fall into one in so many dimensions.
FUZZINESS = {"digits": 1.1, "coil20": 1.1}
SCALINGS = ("standard", "unit_norm", "none")


def sample(name: str, rows: int) -> tuple[Any, Any]:
    """Return at most so many rows of a set, drawn without replacement."""
    X, y = load(name)
    kept = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[kept], y[kept]


def fidelity(X: Any, params: OmniFC, parties: int) -> float:
    """Return the fidelity of one run."""
    parts = simulation.split(X, Layout.lattice(parties), 0)
    return simulation.evaluate(params, X, parts, 0).fidelity


def params_of(name: str, k: int, variant: dict[str, Any], scaling: str) -> OmniFC:
    """Return the parameters of one run."""
    return OmniFC(
        n_clusters=None if variant.get("algorithm") in {"dbscan", "hdbscan"} else k,
        fuzziness=FUZZINESS.get(name, 2.0),
        scaling=scaling,
        **variant,
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--parties", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    given = parser.parse_args()
    failed = False
    for name in given.sets.split(","):
        try:
            X, y = sample(name, given.rows)
        except MissingDataError as missing:
            print(f"\n{name}: not here. {missing}")
            continue
        print(f"\n{name}, {len(X)} rows: fidelity (goal {GOAL:.3f})")
        for scaling in SCALINGS:
            found = {}
            for label, variant in (LOSSLESS | LANDMARKS | PAPER).items():
                params = params_of(name, len(np.unique(y)), variant, scaling)
                found[label] = fidelity(X, params, given.parties)
            failed |= any(found[label] < GOAL for label in LOSSLESS)
            text = "  ".join(f"{label} {value:.3f}" for label, value in found.items())
            print(f"  {scaling:10} {text}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""New rows labelled at home, against the predictions of pooled k-means.

    python -m benchmarks.dc_prediction [--seeds N]

One column group, three row groups; a quarter of the rows is held out. Fidelity is the
adjusted Rand index between the labels that parties give to held-out rows, with what the
terms let out, and the predictions of scikit-learn's KMeans on the pooled, standardised
rows. The labels of the training rows are predicted too and must be those of the session.
Ends with 1 if they are not.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.datasets import load
from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

NAMES = ("iris", "wine", "breast_cancer", "digits")


def predict(name: str, seed: int) -> tuple[float, bool]:
    """Return the fidelity on held-out rows, and whether training rows agree."""
    X, classes = load(name)
    held_out = np.random.default_rng(seed).permutation(len(X)) < len(X) // 4
    train, new = X[~held_out], X[held_out]
    k = len(np.unique(classes))
    parts = simulation.split(train, Layout.lattice(3), seed)
    params = DataCollaboration(n_clusters=k, predictor=True)
    run = simulation.run(params, parts.layout, parts.data, seed)
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread[spread == 0] = 1.0
    pooled = KMeans(k, n_init=10, random_state=seed).fit((train - mean) / spread)
    expected = pooled.predict((new - mean) / spread)
    columns = parts.columns[0]
    scores, agree = [], True
    for slot, outcome in run.outcomes.items():
        assert outcome.predict is not None  # noqa: S101  the terms let it out
        found = outcome.predict(MatrixSource(new[:, columns])).labels
        scores.append(adjusted_rand(expected, found))
        own = outcome.predict(parts.data[slot]).labels
        agree &= np.array_equal(own, outcome.labels)
    return float(np.mean(scores)), agree


def main() -> int:
    """Print one line per set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    all_agree = True
    print(f"fidelity of predicted labels, mean and least of {len(seeds)} seeds")
    for name in NAMES:
        found = [predict(name, seed) for seed in seeds]
        scores = [score for score, _ in found]
        agree = all(same for _, same in found)
        all_agree &= agree
        training = "as in the session" if agree else "NOT as in the session"
        print(
            f"  {name:14} {np.mean(scores):.3f}   {min(scores):.3f}   training rows "
            f"{training}"
        )
    return int(not all_agree)


if __name__ == "__main__":
    sys.exit(main())

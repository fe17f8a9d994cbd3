"""How well two labellings agree, and how well one describes its data.

ARI, NMI (geometric mean) and the silhouette are scikit-learn's. Accuracy and kappa
first match cluster numbers to classes; only the matching is our own code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as sk

from clustering_protocols.records.arrays import FloatArray, IntArray

_MAX_STEPS = 100  # Dinkelbach converges superlinearly; a handful is usual


def adjusted_rand(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the adjusted Rand index: 1 for equal partitions, about 0 by chance."""
    return float(sk.adjusted_rand_score(truth, labels))


def normalized_mutual_information(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return mutual information over the geometric mean of the entropies, in [0, 1]."""
    return float(
        sk.normalized_mutual_info_score(truth, labels, average_method="geometric")
    )


def clustering_accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of rows that agree under the best one-to-one matching.

    Kuhn's Hungarian assignment on the contingency table (padded to a square).
    """
    table = _square_table(truth, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def kappa(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return Cohen's kappa, maximised over one-to-one matchings of labels.

    The matching with the best accuracy is not always the one with the best kappa,
    because the chance agreement changes with it. Kappa is a ratio of two sums that are
    both linear in the matching, so Dinkelbach's iteration over assignments finds the
    maximum: W. Dinkelbach, "On nonlinear fractional programming", 1967.
    """
    table = _square_table(truth, labels)
    total = table.sum()
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    value = -np.inf
    for _ in range(_MAX_STEPS):
        # maximise (observed - chance) - value * (total - chance)
        gain = table - chance + (value * chance if np.isfinite(value) else 0.0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        observed, expected = table[rows, columns].sum(), chance[rows, columns].sum()
        if expected == total:
            return 1.0 if observed == total else 0.0
        ratio = float((observed - expected) / (total - expected))
        if ratio <= value:
            break
        value = ratio
    return float(value)


def silhouette(X: FloatArray, labels: IntArray) -> float:
    """Return the mean silhouette of labels on rows X, in [-1, 1]."""
    return float(sk.silhouette_score(X, labels))


def agreement_with(truth: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Return all four agreements by their usual names."""
    return {
        "ARI": adjusted_rand(truth, labels),
        "NMI": normalized_mutual_information(truth, labels),
        "ACC": clustering_accuracy(truth, labels),
        "kappa": kappa(truth, labels),
    }


def _square_table(truth: ArrayLike, labels: ArrayLike) -> FloatArray:
    table = sk.cluster.contingency_matrix(truth, labels).astype(np.float64)
    size = max(table.shape)
    padded = np.zeros((size, size))
    padded[: table.shape[0], : table.shape[1]] = table
    return padded

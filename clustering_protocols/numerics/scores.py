"""Measures of agreement between two labellings.

ARI and NMI (geometric mean) come from scikit-learn. Accuracy and kappa first match
cluster numbers to classes; only the matching is our own code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as sk

from clustering_protocols.records.arrays import FloatArray

_MAX_STEPS = 100  # Dinkelbach's method usually needs a handful


def adjusted_rand(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the adjusted Rand index: 1 for equal partitions, about 0 by chance."""
    return float(sk.adjusted_rand_score(truth, labels))


def normalized_mutual_information(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return mutual information over the geometric mean of entropies, in [0, 1]."""
    return float(
        sk.normalized_mutual_info_score(truth, labels, average_method="geometric")
    )


def clustering_accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the proportion of rows that agree under the best matching of labels.

    The Hungarian algorithm finds the one-to-one matching on the padded contingency
    table.
    """
    table = _square_contingency_table(truth, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def kappa(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return Cohen's kappa, maximised over one-to-one matchings of labels.

    The matching with the best accuracy does not always have the best kappa, because the
    chance agreement depends on the matching. Kappa is a ratio of two sums that are both
    linear in the matching, so Dinkelbach's iteration over assignments finds the
    maximum: W. Dinkelbach, "On nonlinear fractional programming", 1967.
    """
    table = _square_contingency_table(truth, labels)
    total = table.sum()
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    value = -np.inf
    for _ in range(_MAX_STEPS):
        # Maximise (observed - chance) - value * (total - chance).
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


def agreement_scores(truth: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Return ARI, NMI, accuracy and kappa, keyed by their usual abbreviations."""
    return {
        "ARI": adjusted_rand(truth, labels),
        "NMI": normalized_mutual_information(truth, labels),
        "ACC": clustering_accuracy(truth, labels),
        "kappa": kappa(truth, labels),
    }


def _square_contingency_table(truth: ArrayLike, labels: ArrayLike) -> FloatArray:
    table = sk.cluster.contingency_matrix(truth, labels).astype(np.float64)
    size = max(table.shape)
    padded = np.zeros((size, size))
    padded[: table.shape[0], : table.shape[1]] = table
    return padded

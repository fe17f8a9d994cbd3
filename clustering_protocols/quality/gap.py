"""Whether there are clusters at all: the gap statistic.

R. Tibshirani, G. Walther, T. Hastie, "Estimating the number of clusters in a data set
via the gap statistic", 2001. With W_k the inertia of k clusters, and W_k* that of rows
drawn uniformly from the box around X along its principal axes (their variant b):

    gap(k) = mean log W_k* - log W_k,   s_k = sd(log W_k*) · sqrt(1 + 1/B).

That of one cluster is always computed: it may be the answer. The paper's rule, the
smallest k with gap(k) ≥ gap(k + 1) - s_(k + 1), says one of clusters whose pairs are no
clusters; so one is compared with all other numbers here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray

REFERENCES: Final = 10
"""B: how many sets of rows without clusters are drawn."""
STABLE: Final = 0.95
"""Clusterings of halves that agree so well, by Rand index, have found clusters."""
_STARTS: Final = 2
_MAX_ITER: Final = 30  # rows without clusters take long to rest, and move little
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The gap of one number of clusters, and the standard error s_k of its reference."""

    n_clusters: int
    gap: float
    error: float


def gaps(
    X: FloatArray,
    numbers: Sequence[int],
    rng: np.random.Generator,
    n_references: int = REFERENCES,
) -> list[Gap]:
    """Return the gaps of one cluster and of these numbers, ascending.

    A number that leaves no inertia, of the rows or of a reference, is left out, and so
    are those after it; nothing is returned for rows that are all equal.

    X: float64 (n, width).
    numbers: numbers of clusters k, at least 1.
    """
    counts = sorted({1, *numbers})
    inertias = _inertias(X, counts, rng)
    box = _Box.around(X)
    references = [
        _inertias(box.draw(len(X), rng), counts, rng) for _ in range(n_references)
    ]
    rounding = _ROUNDING * inertias[0]
    results: list[Gap] = []
    for index, k in enumerate(counts):
        reference_inertias = np.array([row[index] for row in references])
        if not min(inertias[index], reference_inertias.min()) > rounding:
            break
        logs = np.log(reference_inertias)
        results.append(
            Gap(
                n_clusters=k,
                gap=float(logs.mean() - np.log(inertias[index])),
                error=float(logs.std() * np.sqrt(1 + 1 / n_references)),
            )
        )
    return results


def says_one(runs: Sequence[Figures]) -> bool | None:
    """Return whether one cluster is the answer, given the figures of several runs.

    It is if gap(1) ≥ gap(k) - s_k for every other k, and no run is stable: the first
    step alone would say so of clusters whose halves are no clusters. None where the
    figures do not tell.
    """
    more = [run for run in runs if run.gap is not None and run.n_clusters > 1]
    if not more or (of_one := more[0].gap_of_one) is None:
        return None
    if any(run.stability is not None and run.stability >= STABLE for run in more):
        return False
    return all(of_one >= (run.gap or 0.0) - (run.gap_error or 0.0) for run in more)


def _inertias(
    X: FloatArray, numbers: Sequence[int], rng: np.random.Generator
) -> list[float]:
    """Return the least inertia found of each number of clusters; 0 of too many."""
    inertias, n_different = [], len(np.unique(X, axis=0))
    for k in numbers:
        if k == 1:
            inertias.append(float(np.square(X - X.mean(axis=0)).sum()))
        elif k >= n_different:
            inertias.append(0.0)
        else:
            starts = draw_starts(X, k, _STARTS, rng)
            inertias.append(kmeans(X, starts, _MAX_ITER).inertia)
    return inertias


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Box:
    """The box of rows along their principal axes.

    axes: float64 (r, width); orthonormal rows.
    least, most: float64 (r,).
    """

    axes: FloatArray
    least: FloatArray
    most: FloatArray

    @classmethod
    def around(cls, X: FloatArray) -> _Box:
        centred = X - X.mean(axis=0)
        # of the columns' products: a few numbers, however many rows
        _, vectors = np.linalg.eigh(centred.T @ centred)
        # an axis may point either way; the largest part says which, on every machine
        largest = np.abs(vectors).argmax(axis=0)
        signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
        axes = (vectors * signs).T
        turned = centred @ axes.T
        return cls(axes=axes, least=turned.min(axis=0), most=turned.max(axis=0))

    def draw(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return uniform rows (n, width); where their mean lies does not matter."""
        coordinates = rng.uniform(self.least, self.most, size=(n_rows, len(self.least)))
        return np.ascontiguousarray(coordinates @ self.axes)

"""The experiments of the paper of `fccm`: data, fuzziness, plain runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from benchmarks.datasets import load
from clustering_protocols.numerics.randomness import public_stream

MAX_ITER, TOL = 200, 1e-6
N_MADE = 5
GROUPS = (27, 24, 21, 18)
STATES = (26, 26, 27, 27)
# Rows are bombings, kidnappings and attacks with weapons, columns clusters.
TABLE_4 = {
    "whole data": ((274, 40, 248), (51, 2, 126), (407, 14, 77)),
    "site": ((278, 32, 252), (51, 2, 126), (400, 13, 85)),
}

Matrix = NDArray[np.float64]
Fuzziness = tuple[float, float]  # λ_u, λ_w


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Data, their split, and the fuzziness for each way of working."""

    title: str
    X: Matrix
    widths: Sequence[int]
    n_clusters: int
    pooled: Fuzziness
    together: Fuzziness
    alone: Fuzziness

    @property
    def columns(self) -> list[NDArray[np.int64]]:
        """Return the item numbers of each site."""
        return np.split(np.arange(self.X.shape[1]), np.cumsum(self.widths)[:-1])


@dataclass(frozen=True)
class Run:
    """Memberships of objects U (n, C) and items W (m, C)."""

    U: Matrix
    W: Matrix


# The data


def draw_cooccurrences(
    objects: NDArray[Any], items: NDArray[Any], p_same: float, rng: np.random.Generator
) -> Matrix:
    """Return co-occurrences, which are likely if object and item share a group."""
    p = np.where(objects[:, None] == items[None, :], p_same, 1.0 - p_same)
    return (rng.random(p.shape) < p).astype(np.float64)


def homogeneous(p_same: float, rng: np.random.Generator) -> Matrix:
    """Return a matrix of four groups, for which all sites have items (section 6.1)."""
    objects = np.arange(100) % 4
    items = np.concatenate([np.arange(width) % 4 for width in GROUPS])
    return draw_cooccurrences(objects, items, p_same, rng)


def heterogeneous(p_same: float, rng: np.random.Generator) -> Matrix:
    """Return a matrix of three groups, seen by sites as 4, 3, 2 and 4 (section 6.2).

    Site 1 tells two halves of the first group apart, site 3 takes the last two groups
    for one, site 4 tells two halves of the second group apart.
    """
    group, half = np.arange(100) % 3, np.arange(100) // 3 % 2
    seen = (
        np.where((group == 0) & (half == 1), 3, group),
        group,
        np.minimum(group, 1),
        np.where((group == 1) & (half == 1), 3, group),
    )
    return np.hstack(
        [
            draw_cooccurrences(own, np.arange(width) % (own.max() + 1), p_same, rng)
            for own, width in zip(seen, GROUPS, strict=True)
        ]
    )


def experiments(p_same: float, *, attacks: bool = True) -> list[list[Experiment]]:
    """Return the experiments, each as a list with an entry for each matrix."""
    made = [
        [table_1(homogeneous(p_same, rng)) for rng in _generators()],
        [table_2(heterogeneous(p_same, rng)) for rng in _generators()],
    ]
    return [*made, [table_3(load("terrorist")[0])]] if attacks else made


def _generators() -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in range(N_MADE)]


def table_1(X: Matrix) -> Experiment:
    """Return the experiment of section 6.1."""
    return Experiment(
        title="Table 1, homogeneous",
        X=X,
        widths=GROUPS,
        n_clusters=4,
        pooled=(0.001, 100.0),
        together=(0.001, 100.0),
        alone=(0.001, 100.0),
    )


def table_2(X: Matrix) -> Experiment:
    """Return the experiment of section 6.2."""
    return replace(table_1(X), title="Table 2, heterogeneous", n_clusters=3)


def table_3(X: Matrix) -> Experiment:
    """Return the experiment of section 6.3."""
    return Experiment(
        title="Table 3, terrorist attacks",
        X=X,
        widths=STATES,
        n_clusters=3,
        pooled=(0.001, 180.0),
        together=(0.0035, 100.0),
        alone=(0.01, 100.0),
    )


# FCCM, equations 2 and 3


def fccm(
    X: Matrix, columns: Sequence[NDArray[np.int64]], fuzziness: Fuzziness, U: Matrix
) -> Run:
    """Run FCCM from U; item memberships sum to 1 in each set of columns."""
    lambda_u, lambda_w = fuzziness
    for _ in range(MAX_ITER):
        exponents = X.T @ U / lambda_w
        W = np.vstack([softmax(exponents[own], axis=0) for own in columns])
        before, U = U, softmax(X @ W / lambda_u, axis=1)
        if np.abs(U - before).max() <= TOL:
            break
    return Run(U, W)


def criterion(X: Matrix, run: Run, fuzziness: Fuzziness) -> float:
    """Return L_fccm (equation 1)."""
    U, W = run.U, run.W
    aggregation = float((U * (X @ W)).sum())
    entropies = fuzziness[0] * xlogy(U, U).sum() + fuzziness[1] * xlogy(W, W).sum()
    return aggregation - float(entropies)


def start(e: Experiment, seed: int) -> Matrix:
    """Return U(0) of a session with this seed, objects in the order of X."""
    stream = public_stream(seed, "simulation", "fccm", "start", 0)
    drawn = stream.uniform(len(e.X), e.n_clusters)
    return drawn / drawn.sum(axis=1, keepdims=True)


# Runs from every start


def run_alone(e: Experiment, U: Matrix) -> list[Run]:
    """Return FCCM at each site alone."""
    return [fccm(e.X[:, own], [np.arange(len(own))], e.alone, U) for own in e.columns]


def best_of(X: Matrix, runs: Sequence[Run], fuzziness: Fuzziness) -> Run:
    """Return the run with the largest criterion."""
    return max(runs, key=lambda run: criterion(X, run, fuzziness))


@dataclass(frozen=True)
class Runs:
    """All runs of an experiment: one per start, or (alone) one per start and site."""

    pooled: Sequence[Run]
    site: Sequence[Run]
    alone: Sequence[Sequence[Run]]


def pooled_runs(e: Experiment, n_starts: int) -> list[Run]:
    """Return FCCM on the pooled matrix from every start."""
    everything = [np.arange(e.X.shape[1])]
    return [fccm(e.X, everything, e.pooled, start(e, seed)) for seed in range(n_starts)]


def run_all(e: Experiment, n_starts: int) -> Runs:
    """Return the runs from every start."""
    starts = [start(e, seed) for seed in range(n_starts)]
    return Runs(
        pooled=pooled_runs(e, n_starts),
        site=[fccm(e.X, e.columns, e.together, U) for U in starts],
        alone=[run_alone(e, U) for U in starts],
    )

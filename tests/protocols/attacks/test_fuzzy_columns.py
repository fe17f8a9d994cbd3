"""Memberships of fuzzy ``llf`` over columns are the rows of the others, up to a motion.

A membership u of a row gives u^(m-1)·D up to a factor of the row, and
D = |x|² - 2x·v + |v|². So the matrix of u^-(m-1) is diag(1/s)·Φ·Ψᵀ with the rows
(|x|², x, 1) in Φ: with as many clusters as columns and two more, one set of memberships
gives all of it in closed form. The attacker's own columns fix the factors and the scale.
So the terms name it, and each party has to accept it.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from sklearn.datasets import load_iris
from support.tables import cut_columns
from support.verdicts import ATTACKED, RIGHT, Verdict, attacked, check

from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout


class Case(NamedTuple):
    """How many columns are the attacker's, and whether memberships change their rows."""

    own: int
    shuffled: bool
    verdict: Verdict


CASES = {
    "two own columns of four": Case(own=2, shuffled=False, verdict=ATTACKED),
    "one own column of four": Case(own=1, shuffled=False, verdict=ATTACKED),
    "memberships of other rows": Case(own=2, shuffled=True, verdict=RIGHT),
}


def null_vector(M: FloatArray) -> FloatArray:
    """Return the right singular vector of M with the smallest singular value."""
    vector: FloatArray = np.linalg.svd(M, full_matrices=False)[2][-1]
    return vector


def others_columns(u: FloatArray, own: FloatArray, width: int, m: float) -> FloatArray:
    """Return the others' columns (n, width), up to a rotation and a shift.

    u: memberships (n, k), k >= columns of all + 2.
    own: the attacker's columns (n, f), standardised.
    """
    n, f = own.shape
    rank = f + width + 2
    H = np.maximum(u, 1e-300) ** -(m - 1)
    H /= np.linalg.norm(H, axis=1)[:, None]
    P = np.linalg.svd(H, full_matrices=False)[0][:, :rank]
    # an own column is a ratio of two columns in the span of P: that fixes the factors
    ratios = np.zeros((n * f, rank * (f + 1)))
    for j in range(f):
        lines = slice(j * n, (j + 1) * n)
        ratios[lines, :rank] = own[:, [j]] * P
        ratios[lines, (j + 1) * rank : (j + 2) * rank] = -P
    Phi = P / (P @ null_vector(ratios)[:rank])[:, None]
    base = np.column_stack([np.ones(n), own])
    rest = Phi - base @ np.linalg.lstsq(base, Phi, rcond=None)[0]
    mixed = np.linalg.svd(rest, full_matrices=False)[0][:, : width + 1] * np.sqrt(n)
    # all rows lie on one quadric, |x|² = sum of squares: its matrix is the metric
    B = np.column_stack([mixed, own])
    pairs = [(i, j) for i in range(B.shape[1]) for j in range(i, B.shape[1])]
    terms = [np.ones(n), *B.T, *(B[:, i] * B[:, j] for i, j in pairs)]
    M = np.column_stack(terms)
    norms = np.linalg.norm(M, axis=0)
    quadric = null_vector(M / norms) / norms
    Q = np.zeros((B.shape[1],) * 2)
    for (i, j), value in zip(pairs, quadric[1 + B.shape[1] :], strict=True):
        Q[i, j] += value / 2
        Q[j, i] += value / 2
    Q *= np.sign(np.trace(Q))
    inner, across, outer = Q[:-f, :-f], Q[:-f, -f:], Q[-f:, -f:]
    values, vectors = np.linalg.eigh(inner)
    largest = np.argsort(-np.abs(values))[:width]
    values, vectors = np.abs(values[largest]), vectors[:, largest]
    T = (vectors.T @ across) / values[:, None]
    kappa = np.trace(outer - (T * values[:, None]).T @ T) / f
    columns: FloatArray = (mixed @ vectors + own @ T.T) * np.sqrt(values / abs(kappa))
    return columns


def share_met(guess: FloatArray, truth: FloatArray) -> float:
    """Return the share of cells within 5 % of a column's range, after the best motion."""
    guess, truth = guess - guess.mean(axis=0), truth - truth.mean(axis=0)
    turned = guess @ orthogonal_procrustes(guess, truth)[0]
    return float((np.abs(turned - truth) <= 0.05 * np.ptp(truth, axis=0)).mean())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.quick(1)
def test_memberships_give_the_columns_of_others(case: str) -> None:
    own_width, shuffled, verdict = CASES[case]
    X = load_iris().data
    layout = Layout.lattice(1, 3)
    data = cut_columns(X, layout, [own_width, 1, 3 - own_width])
    params = LosslessFederated(
        n_clusters=8, algorithm="fuzzy_cmeans", output="memberships"
    )
    run = simulation.run(params, layout, data, seed=0)
    u = np.asarray(run.outcomes["r1c1"].memberships)
    order = run.orders["r1c1"]
    if shuffled:
        u = np.random.default_rng(0).permutation(u)
    rows = ((X - X.mean(axis=0)) / X.std(axis=0))[order]
    u = u[order]
    read = others_columns(u, rows[:, :own_width], 4 - own_width, m=2)
    check(attacked(share_met(read, rows[:, own_width:]) > 0.99), verdict)

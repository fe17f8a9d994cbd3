"""Solving the totals of fuzzy c-means for the rows behind them, as a curious party may.

Between two rounds a party knows the centroids before and after, and its own rows. Each
new centroid is a mean of all rows with weights that follow from the centroids before:
k·F equations a round in the n·F numbers of the others' rows.
"""

import numpy as np
from scipy.optimize import least_squares, linear_sum_assignment

from clustering_protocols.records.arrays import FloatArray


def weighted(
    rows: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what each row (n, F) adds to Σ μ² (x - v') of each round, and ∂/∂x.

    Arrays of shape (n, T, k, F) and (F, n, T, k, F); complex steps give the derivatives.
    """

    def parts(x: FloatArray) -> FloatArray:
        away = np.square(x[:, None, None, :] - before).sum(axis=3) + 1e-300
        degrees = (1 / away) / (1 / away).sum(axis=2, keepdims=True)
        added: FloatArray = np.square(degrees)[..., None] * (
            x[:, None, None, :] - after
        )
        return added

    slopes = []
    for feature in range(rows.shape[1]):
        moved = rows.astype(np.complex128)
        moved[:, feature] += 1e-20j
        slopes.append(parts(moved).imag / 1e-20)
    return parts(rows), np.array(slopes)


def solved(
    before: FloatArray, after: FloatArray, own: FloatArray, n: int, *, starts: int = 20
) -> FloatArray:
    """Return n rows (n, F) of others that explain how centroids moved, best of starts.

    before, after: float64 (T, k, F), of each round.
    """
    mine = weighted(own, before, after)[0].sum(axis=0)
    width = own.shape[1]
    missing = max(0, n * width - mine.size)  # the solver wants a square

    def residuals(flat: FloatArray) -> FloatArray:
        theirs = weighted(flat.reshape(n, width), before, after)[0]
        return np.append((theirs.sum(axis=0) + mine).ravel(), np.zeros(missing))

    def slopes(flat: FloatArray) -> FloatArray:
        found = weighted(flat.reshape(n, width), before, after)[1]
        jacobian = found.reshape(width, n, -1).transpose(2, 1, 0).reshape(-1, n * width)
        return np.vstack([jacobian, np.zeros((missing, n * width))])

    rng = np.random.default_rng(0)
    best = None
    for _ in range(starts):
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 4000}
        guess = rng.normal(size=n * width)
        found = least_squares(residuals, guess, jac=slopes, method="lm", **tight)
        if best is None or found.cost < best.cost:
            best = found
        if best.cost < 1e-20:
            break
    assert best is not None
    rows: FloatArray = best.x.reshape(n, width)
    return rows


def n_met(guess: FloatArray, rows: FloatArray, within: float) -> int:
    """Return how many rows a guess meets, each of it taken for one row."""
    away = np.abs(guess[:, None] - rows).max(axis=2)
    return int((away[linear_sum_assignment(away)] < within).sum())

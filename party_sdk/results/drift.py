"""When new rows count as drifted: limits that follow from both numbers of rows.

A column has drifted where its mean has, or where too many of its new values lie outside
the range of the trained rows. A cluster has drifted where its share of the rows has.

- A mean drifts by more than ``LEAST_SHIFT`` standard deviations of the trained rows and
  by more than z standard errors. The error is s √(1/n + 1/N) of n trained and N new rows;
  s is the larger of both standard deviations, so that one far value raises no alarm.
  z is 3 to 4.5: the normal quantile of ``ALARM``, divided by the number of comparisons
  (Bonferroni).
- Too many values outside are more than ``LEAST_OUTSIDE`` of the rows, and more than
  exchangeable rows have with the same probability. It is exact for any distribution:
  Wilks, "Determination of sample sizes for setting tolerance limits", 1941.

``python -m benchmarks.drift`` counts false alarms and drifts that are found.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

FEWEST_ROWS: Final = 20
"""Fewer new rows, or fewer trained ones, say nothing."""
LEAST_SHIFT: Final = 0.3
LEAST_OUTSIDE: Final = 0.05
ALARM: Final = 0.005

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class ColumnMeans(NamedTuple):
    """Means and standard deviations (m,) of so many rows."""

    n_rows: int
    mean: FloatArray
    deviation: FloatArray


def find_shifts(then: ColumnMeans, now: ColumnMeans) -> FloatArray:
    """Return by how many standard deviations of then each mean has moved (m,).

    NaN where a column was constant then.
    """
    shifts = np.full(len(then.mean), np.nan)
    np.divide(
        now.mean - then.mean, then.deviation, out=shifts, where=then.deviation > 0
    )
    return shifts


def find_drifted_means(then: ColumnMeans, now: ColumnMeans, comparisons: int) -> Flags:
    """Return which means (m,) have drifted, of so many comparisons in all."""
    from scipy.special import ndtri

    moved = np.abs(now.mean - then.mean)
    deviation = np.maximum(then.deviation, now.deviation)
    error = deviation * np.sqrt(1 / then.n_rows + 1 / now.n_rows)
    limit = ndtri(1 - ALARM / (2 * comparisons)) * error
    found: Flags = (moved > limit) & (moved > LEAST_SHIFT * then.deviation)
    return found


def find_drifted_ranges(
    n_then: int, n_now: int, outside: IntArray, comparisons: int
) -> Flags:
    """Return in which columns (m,) too many of the new values lie outside the range.

    outside: int64 (m,); how many do.
    """
    probability = compute_outside_probability(n_then, n_now, outside)
    many = outside > LEAST_OUTSIDE * n_now
    found: Flags = many & (probability < ALARM / comparisons)
    return found


def compute_outside_probability(
    n_then: int, n_now: int, outside: IntArray
) -> FloatArray:
    """Return how likely so many new values (m,) or more lie outside the range of then.

    Of exchangeable rows: all orders of the n + N values are equally likely, and K new
    ones stand before the first or behind the last of the old ones. With M = n + N,
    P(K >= k) = [(k + 1) C(M - k - 1, n - 1) + C(M - k - 1, n)] / C(M, n).
    """
    from scipy.special import gammaln

    def choose(n: FloatArray, k: int) -> FloatArray:
        """Return the logarithm of C(n, k); -inf where n < k."""
        enough = np.maximum(n, k)
        ways = gammaln(enough + 1) - gammaln(k + 1) - gammaln(enough - k + 1)
        return np.where(n < k, -np.inf, ways)

    left = (n_then + n_now - 1 - outside).astype(np.float64)
    of_all = choose(np.array([float(n_then + n_now)]), n_then)
    first = np.log1p(outside) + choose(left, n_then - 1) - of_all
    second = choose(left, n_then) - of_all
    found: FloatArray = np.minimum(np.exp(first) + np.exp(second), 1.0)
    return found


def share_means(sizes: IntArray) -> ColumnMeans:
    """Return shares of clusters (k,) as means of yes and no.

    By Jeffreys' estimate, half a row is added to yes and to no: an empty cluster has a
    standard deviation too.
    """
    n_rows = int(sizes.sum())
    shares = (sizes + 0.5) / (n_rows + 1)
    return ColumnMeans(n_rows, shares, np.sqrt(shares * (1 - shares)))

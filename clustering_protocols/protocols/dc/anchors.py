"""Anchor data X^anc of a column group: all its parties hold the same, nobody else does."""

from __future__ import annotations

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from clustering_protocols.terms.preparation import Ranges

from .params import Anchor, DataCollaboration

_UNIFORM_SPREAD = 12.0**-0.5  # standard deviation of a uniform number of (0, 1)
_SMOTE_NEIGHBORS = 5


def n_anchors(anchor: Anchor, n_features: int) -> int:
    """Return r for a number of features over all column groups."""
    return anchor.n_rows or max(500, minimum_anchors(n_features))


def minimum_anchors(n_features: int) -> int:
    """Return the fewest anchors that determine the collaboration maps.

    With r = m the maps fit the anchors and miss the data.
    """
    return 2 * n_features


def draw(
    params: DataCollaboration, n_rows: int, moments: PooledMoments, stream: KeyedStream
) -> FloatArray:
    """Return X^anc (n_rows, m) in the units of the data, by moments.

    gaussian: normal, with the pooled mean. Of independent normal columns of equal
    spread every rotation looks alike, so that a blind source separation of their
    projections gains nothing.
    rotated: standardised uniform numbers times a secret Haar-random rotation: no longer
    independent in the direction of any feature.

    The spread is equal in the units in which the private maps see the anchors. Were it
    each feature's own under maps that only centre, the covariance of the projections
    would show the direction of every feature.
    """
    m = len(moments.mean)
    if params.anchor.kind == "rotated":
        standard = (stream.uniform(n_rows, m) - 0.5) / _UNIFORM_SPREAD
        drawn = standard @ stream.rotation(m)
    else:
        drawn = stream.normal(n_rows, m)
    return moments.mean + equal_spread(params, moments.spread) * drawn


def uniform(ranges: Ranges, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Return X^anc (n_rows, m) within the range of each feature: the paper's choice."""
    span = ranges.high - ranges.low
    return ranges.low + span * stream.uniform(n_rows, len(span))


def equal_spread(params: DataCollaboration, spread: FloatArray) -> FloatArray:
    """Return spreads (m,) of anchors that are equal after the parties' scaling."""
    if params.scaling in {"shared", "local"}:
        return spread
    return np.full_like(spread, np.sqrt(np.mean(np.square(spread))))


def synthesise(
    anchor: Anchor, n_rows: int, X: FloatArray, stream: KeyedStream
) -> FloatArray:
    """Return X^anc (n_rows, m) made from one party's rows X (n, m)."""
    if anchor.kind == "low_rank":
        return low_rank(X, n_rows, stream)
    return smote(X, n_rows, stream)


def low_rank(X: FloatArray, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Return draws from the low-rank Gaussian model of X.

    Half of the principal directions keep their variance, the others share the mean of
    what is left: probabilistic principal components (Tipping and Bishop, 1999). Where
    nothing is left, the last direction that varies stands in, so that the anchors span
    all features.
    """
    mean = X.mean(axis=0)
    m = X.shape[1]
    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(X, rowvar=False)))
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    kept = (m + 1) // 2
    rest = variances[kept:].mean() if kept < m else 0.0
    variances[kept:] = rest if rest > 0 else variances[:kept].min()
    drawn: FloatArray = (stream.normal(n_rows, m) * np.sqrt(variances)) @ axes.T
    drawn += mean
    return drawn


def smote(X: FloatArray, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Return points between a random row and one of its five nearest others.

    N. Chawla et al., "SMOTE: synthetic minority over-sampling technique", 2002.
    Neighbours are sought in standardised units.
    """
    from scipy.spatial import cKDTree  # the stage's declaration imports this file too

    spread = X.std(axis=0)
    Z = X / np.where(spread > 0, spread, 1.0)
    n_neighbors = min(_SMOTE_NEIGHBORS, len(X) - 1)
    neighbors = cKDTree(Z).query(Z, n_neighbors + 1)[1][:, 1:]
    first = (stream.uniform(n_rows) * len(X)).astype(np.int64)
    which = (stream.uniform(n_rows) * n_neighbors).astype(np.int64)
    second = neighbors[first, which]
    between: FloatArray = X[first] + stream.uniform(n_rows, 1) * (X[second] - X[first])
    return between

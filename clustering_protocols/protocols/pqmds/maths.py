"""A party's codes: scaled features, codebooks of subspaces, coordinates of centres.

Wang, Zhang and Chen number steps instead of equations. :func:`.params.subspaces_of`
decomposes the features, :func:`quantise` is k-means of a subspace, :func:`coordinates`
is one-dimensional MDS of its centres (the paper's Algorithm 2),
:func:`scale_to_unit_range` normalises the coordinates, and :func:`encode` returns the
codes. The server's k-means is in :mod:`.analyst`.

Clusters of sorted values are intervals, so k-means of a single feature can be solved
exactly: it is the shortest path with k links from 0 to m, where the link (i, j) costs
the sum of squared deviations of the values i … j-1 (computed from three prefix sums).
These costs satisfy the quadrangle inequality:

- If each link costs a penalty and the number of links is free, one pass with a queue of
candidates finds the shortest path (Z. Galil and K. Park, "A linear-time algorithm for
concave one-dimensional dynamic programming", 1990).

- The least cost is convex in the number of links, so some penalty gives k links. If
paths with fewer and with more links are equally short, they can be joined into one with
k links (A. Aggarwal, B. Schieber, T. Tokuyama, "Finding a minimum-weight k-link path in
graphs with the concave Monge property", 1994).

A pass takes O(m log m) time, and a handful of penalties suffices.

Several features are quantised by Lloyd's algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.numerics.kernels import add_in_order, in_c
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray

from .params import ProductQuantisation, subspaces_of

MAX_ITERATIONS: Final = 25
_LANES: Final = 4  # features per pass in C, padded with zeros


class QuantisedRows(NamedTuple):
    """Centres (size, d) of a codebook, and the number (n,) of each row's centre."""

    centres: FloatArray
    codes: IntArray


def quantise_points(X: FloatArray, size: int, draws: FloatArray) -> QuantisedRows:
    """Return a codebook of at most ``size`` centres, and the codes of the rows.

    If there are at most ``size`` distinct rows, they are the centres. Otherwise, the
    centres result from k-means++ and at most :data:`MAX_ITERATIONS` iterations of
    Lloyd's algorithm.

    X: float64 (n, d).
    draws: float64 (size,); uniform numbers in (0, 1), which determine the initial
        centres.
    """
    rows, weights, row_of = _distinct_rows(X)
    if len(rows) <= size:
        return QuantisedRows(rows, row_of)
    padded = -rows.shape[1] % _LANES
    features = np.ascontiguousarray(np.pad(rows, ((0, 0), (0, padded))).T)
    starts: IntArray = np.zeros(len(draws), dtype=np.int64)
    _draw_starts(features, weights, draws, starts)
    centres = np.ascontiguousarray(features[:, starts].T)
    codes = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(MAX_ITERATIONS):
        if not _reassign(features, centres, codes):
            break
        _move_centres(features, weights, codes, centres)
    used = np.bincount(codes, minlength=size) > 0
    renumbered = (np.cumsum(used) - 1)[codes]
    return QuantisedRows(centres[used, : rows.shape[1]], renumbered[row_of])


def _distinct_rows(X: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return distinct rows, how often each occurs, and each row's number among them.

    Rows are sorted by one linear combination of their features. If two different rows
    happen to agree in this combination, equal rows may be counted separately, which
    changes no distance.
    """
    key = X @ np.sqrt(2.0 + np.arange(X.shape[1]))
    order = np.argsort(key)
    ordered = X[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    row_of = np.empty(len(X), dtype=np.int64)
    row_of[order] = np.cumsum(new) - 1
    weights = np.bincount(row_of).astype(np.float64)
    return ordered[new], weights, row_of


@in_c("starts")
def _draw_starts(
    features: FloatArray, weights: FloatArray, draws: FloatArray, starts: IntArray
) -> None:
    """Write to ``starts`` the numbers of the rows that k-means++ selects by ``draws``."""
    near, share = np.full(len(weights), np.inf), weights
    for start, draw in enumerate(draws):
        cumulative = np.cumsum(share)
        position = int(np.searchsorted(cumulative, draw * cumulative[-1]))
        row = min(position, len(share) - 1)
        starts[start] = row
        difference = features - features[:, row, None]
        squares = add_in_order(np.zeros(len(near)), difference * difference)
        near = np.minimum(near, squares)
        share = weights * near


@in_c("codes")
def _reassign(features: FloatArray, centres: FloatArray, codes: IntArray) -> int:
    """Write the number of each row's nearest centre; return 1 if any number has changed.

    The nearest centre minimises ½|c|² - c·x.
    """
    best, nearest = np.full(len(codes), np.inf), np.zeros_like(codes)
    for number, centre in enumerate(centres):
        score = np.full(len(codes), 0.5 * add_in_order(0.0, centre * centre))
        for f in range(0, len(features), _LANES):
            a, b, c, d = (centre[i] * features[i] for i in range(f, f + _LANES))
            score -= ((a + b) + c) + d
        nearer = score < best
        best[nearer], nearest[nearer] = score[nearer], number
    changed = not np.array_equal(codes, nearest)
    codes[:] = nearest
    return int(changed)


@in_c("centres")
def _move_centres(
    features: FloatArray, weights: FloatArray, codes: IntArray, centres: FloatArray
) -> None:
    """Move each centre to the mean of its rows; centres without rows stay in place."""
    counts = np.bincount(codes, weights, len(centres))
    filled = counts > 0
    for f, column in enumerate(features):
        sums = np.bincount(codes, weights * column, len(centres))
        centres[filled, f] = sums[filled] / counts[filled]


_MAX_PENALTIES: Final = 64
_NARROW: Final = 1 + 1e-12  # ratio of penalties that differ only by rounding


def optimal_intervals(values: FloatArray, weights: FloatArray, size: int) -> IntArray:
    """Return where the clusters of least total inertia begin; the last entry is m.

    values: float64 (m,); ascending and distinct.
    weights: float64 (m,); how often each value occurs.
    size: number of clusters; the result has ``min(size, m) + 1`` entries.
    """
    m = len(values)
    shorter: IntArray = np.array([0, m], dtype=np.int64)
    longer = np.arange(m + 1, dtype=np.int64)
    if size >= m:
        return longer
    if size == 1:
        return shorter
    sums = _prefix_sums(values, weights)
    high = float(sums[2, m] - sums[1, m] ** 2 / sums[0, m])  # the cost of a single link
    low = high * float(np.finfo(np.float64).eps) ** 2
    penalty = high / size**3
    for _ in range(_MAX_PENALTIES):
        nodes: IntArray = np.empty(m + 1, dtype=np.int64)
        links = _shortest_path(sums, penalty, nodes)
        path = nodes[: links + 1]
        if links == size:
            return path
        if links < size:
            shorter, high = path, penalty
        else:
            longer, low = path, penalty
        if high <= low * _NARROW:
            break
        # for a smooth density, the number of links falls with penalty^(-1/3)
        guess = penalty * (links / size) ** 3
        penalty = guess if low < guess < high else float(np.sqrt(low * high))
    return _join_paths(shorter, longer, size)


def _prefix_sums(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return prefix sums (3, m + 1) of w, w x and w x², where x are centred values."""
    centred = values - np.average(values, weights=weights)
    terms = weights * np.stack([np.ones_like(centred), centred, centred**2])
    return np.pad(np.cumsum(terms, axis=1), ((0, 0), (1, 0)))


@in_c("path")
def _shortest_path(sums: FloatArray, penalty: float, path: IntArray) -> int:
    """Write the nodes of the shortest path from 0 to m; return its number of links.

    Each link costs ``penalty`` in addition to its squared deviations. ``candidates`` is
    a queue of predecessors, each of which is the best predecessor of the nodes from its
    entry in ``begins`` up to the next entry. By the quadrangle inequality, a later
    candidate that is better for one node is better for all later nodes.
    """
    m = sums.shape[1] - 1
    counts, totals, squares = sums.tolist()
    length, before = [0.0] * (m + 1), [0] * (m + 1)
    candidates, begins = [0], [0]
    head = 0

    def via(i: int, end: int) -> float:
        """Return the length of the path to ``end`` whose last link is from i."""
        total = totals[end] - totals[i]
        cost = squares[end] - squares[i] - total * total / (counts[end] - counts[i])
        return float(length[i] + cost)

    def first_beaten(j: int, i: int, worse: int) -> int:
        """Return the first node after ``worse`` with a shorter path via j than via i."""
        better, step = worse + 1, 1
        while better < m and not via(j, better) < via(i, better):
            worse = better
            step *= 2
            better = min(m, better + step)
        while worse + 1 < better:
            middle = (worse + better) // 2
            if via(j, middle) < via(i, middle):
                better = middle
            else:
                worse = middle
        return better

    for j in range(1, m + 1):
        while head + 1 < len(begins) and begins[head + 1] <= j:
            head += 1
        before[j] = candidates[head]
        length[j] = via(candidates[head], j) + penalty
        if j == m or not via(j, m) < via(candidates[-1], m):
            continue
        begin = j + 1
        while len(candidates) > head:
            begin = max(begins[-1], j + 1)
            if not via(j, begin) < via(candidates[-1], begin):
                begin = first_beaten(j, candidates[-1], begin)
                break
            candidates.pop()
            begins.pop()
        candidates.append(j)
        begins.append(begin)
    nodes = [m]
    while nodes[-1] > 0:
        nodes.append(before[nodes[-1]])
    path[: len(nodes)] = nodes[::-1]
    return len(nodes) - 1


def _join_paths(shorter: IntArray, longer: IntArray, size: int) -> IntArray:
    """Join the start of one path and the end of another into a path of ``size`` links.

    At a link of ``longer`` that lies within a link of ``shorter``, the paths can
    exchange their ends at no cost. At one such link, the numbers of links add up to
    ``size``.
    """
    ahead = len(longer) - 1 - size
    shifted = longer[ahead : ahead + len(shorter)]
    link = int(np.flatnonzero(shifted[1:] <= shorter[1 : len(shifted)])[0])
    return np.concatenate([shorter[: link + 1], longer[ahead + link + 1 :]])


_ROUNDING: Final = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRows:
    """The codes of a party's rows.

    codes: float64 (n, s); the coordinates of the centre of each row, subspace by
        subspace.
    sizes: int64 (number of subspaces,); the number of centres of each subspace.
    bounds: float64 (s, 2); minimum and maximum of each coordinate over the centres of
        its subspace.
    """

    codes: FloatArray = field(repr=False)
    sizes: IntArray
    bounds: FloatArray = field(repr=False)

    @classmethod
    def of(cls, codes: Sequence[FloatArray], books: Sequence[Codebook]) -> EncodedRows:
        """Join the codes (n, c) of all subspaces, and the bounds of their codebooks."""
        return cls(
            codes=np.hstack(codes),
            sizes=np.array([len(book.centres) for book in books]),
            bounds=np.concatenate([book.bounds for book in books]),
        )


class Codebook(NamedTuple):
    """Centres (size, d), their coordinates (size, c), and each row's centre (n,)."""

    centres: FloatArray
    coordinates: FloatArray
    codes: IntArray

    @property
    def bounds(self) -> FloatArray:
        """Return the minimum and maximum (c, 2) of each coordinate.

        A coordinate in which all centres are equal gets the bounds of the last
        coordinate before it in which centres differ, so that noise hides both equally
        well.
        """
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        last = np.maximum.accumulate(np.where(high > low, np.arange(len(low)), 0))
        return np.column_stack([low[last], high[last]])


def encode(
    params: ProductQuantisation,
    X: FloatArray,
    stream: KeyedStream,
    units: FloatArray | None = None,
) -> EncodedRows:
    """Return the codes of rows X (n, m).

    stream: determines the initial centres of the codebooks.
    units: float64 (m,); used instead of the standard deviations of the features if the
        terms prepare the columns.
    """
    Z = scale_rows(params, X, units)
    books = [
        build_codebook(params, Z[:, features], stream, width)
        for features, width in subspaces_of(params, X.shape[1])
    ]
    return EncodedRows.of([book.coordinates[book.codes] for book in books], books)


def build_codebook(
    params: ProductQuantisation, rows: FloatArray, stream: KeyedStream, width: int
) -> Codebook:
    """Return the codebook for the scaled rows (n, d) of one subspace.

    width: number of coordinates that are sent.
    """
    centres, codes = quantise(rows, params.codebook_size, stream)
    counts = np.bincount(codes, minlength=len(centres))
    weights = counts if params.weights == "rows" else np.ones(len(counts))
    Z = coordinates(centres, weights.astype(np.float64), width)
    return Codebook(
        centres, scale_to_unit_range(Z) if params.normalise == "minmax" else Z, codes
    )


def scale_rows(
    params: ProductQuantisation, X: FloatArray, units: FloatArray | None = None
) -> FloatArray:
    """Return rows (n, m) in the units in which distances are measured."""
    if params.scaling == "none":
        return X
    spread = X.std(axis=0)
    divisor = np.where(spread > 0, spread, 1.0) if units is None else units
    Z: FloatArray = (X - X.mean(axis=0)) / divisor
    return Z


def quantise(rows: FloatArray, size: int, stream: KeyedStream) -> QuantisedRows:
    """Return a codebook of at most ``size`` centres for one subspace, and the codes."""
    if rows.shape[1] > 1:
        return quantise_points(rows, size, stream.uniform(size))
    values, counts = np.unique(rows, return_counts=True)
    weights = counts.astype(np.float64)
    begins = optimal_intervals(values, weights, size)[:-1]
    means = np.add.reduceat(weights * values, begins) / np.add.reduceat(weights, begins)
    codes = np.searchsorted(values[begins[1:]], rows[:, 0], side="right")
    return QuantisedRows(means[:, np.newaxis], codes)


def coordinates(centres: FloatArray, weights: FloatArray, width: int) -> FloatArray:
    """Return the classical scaling (size, width) of centres (size, d).

    The principal coordinates √λ_i v_i of the doubly centred squared distances are the
    projections of the centred centres on their right singular vectors, so that no
    matrix of size × size is needed. Signs are chosen such that each vector's largest
    entry is positive. Distances between centres are preserved if the width is at least
    the rank; further coordinates are zero.

    weights: float64 (size,); a centre of weight w counts as w equal points.
    """
    centred = centres - np.average(centres, axis=0, weights=weights)
    spread = np.sqrt(weights)[:, np.newaxis] * centred
    _, values, axes = np.linalg.svd(spread, full_matrices=False)
    rounding = _ROUNDING * np.abs(centres).max() * np.sqrt(weights.sum())
    axes = axes[:width][values[:width] > rounding]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    Z = np.zeros((len(centres), width))
    Z[:, : len(axes)] = centred @ (signs[:, np.newaxis] * axes).T
    return Z


def scale_to_unit_range(Z: FloatArray) -> FloatArray:
    """Return coordinates (size, c), shifted and scaled to [0, 1].

    All coordinates of a subspace are divided by the same factor, the range of the
    widest coordinate.
    """
    shifted: FloatArray = Z - Z.min(axis=0)
    largest = shifted.max()
    if largest > 0:
        shifted /= largest
    return shifted

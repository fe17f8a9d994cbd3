"""Lagrange coding: the points, their weights, and rows as shares; landmarks.

In Yan, Liu and Zhang, equation 1 is :func:`quantise`, equation 2 is
:func:`build_encoding_matrix`, equation 3 is :func:`encode`, equation 4 is
:func:`field_distances`, equation 5 is :func:`build_decoding_weights`, and equation 6 is
:meth:`.analyst.DistanceDecoder.read`.

A row is cut into l segments, to which t segments of noise are added. These segments s_1
… s_{l+t} are the values of a polynomial f of degree l + t - 1 at the *data points* 1,
3, 5, …; party j holds the value of f at its *share point* 2j. No share point is a data
point, because a share at a data point would be the segment itself.

Weights are Python integers, because there are only a few hundred per session. The prime
is a parameter, so that tests can try every value of the noise with a small prime.

Landmarks: V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark
points", 2004. Distances to d + 1 points that span all d dimensions determine the rows
exactly, up to a rigid motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy import field
from clustering_protocols.secrecy.field import LIMB, LOW_LIMB, add_limbs, reduce
from clustering_protocols.secrecy.prime import P

from .limits import n_landmarks, n_pairs

Matrix = list[list[int]]

_ROWS: Final = 16  # rows of a tile in C
_GROUP: Final = 4  # features per pass in C
_PAIRS: Final = 1 << 21  # pairs of a stripe, approximately: 16 MB


def quantise(rows: FloatArray, bits: int) -> WordArray:
    """Return x̃ = round(2^q x) (eq. 1) for non-negative rows x (n, d)."""
    return np.rint(rows * 2.0**bits).astype(np.uint64)


def data_points(count: int) -> list[int]:
    """Return the points of the segments and the noise: odd numbers."""
    return [2 * index + 1 for index in range(count)]


def share_points(count: int) -> list[int]:
    """Return the points of the parties' shares, in the order of slots: even numbers."""
    return [2 * index for index in range(count)]


def basis(nodes: Sequence[int], point: int, p: int = P) -> list[int]:
    """Return the Lagrange basis at a point: L_j(point) mod p for each node j."""
    values = []
    for x_j in nodes:
        numerator = prod(point - x_k for x_k in nodes if x_k != x_j)
        denominator = prod(x_j - x_k for x_k in nodes if x_k != x_j)
        values.append(numerator * pow(denominator, -1, p) % p)
    return values


def build_encoding_matrix(
    segments: int, noise: int, parties: int, p: int = P
) -> Matrix:
    """Return the matrix (parties × (l + t)) that maps segments to shares (eq. 2)."""
    nodes = data_points(segments + noise)
    return [basis(nodes, point, p) for point in share_points(parties)]


def build_decoding_weights(segments: int, points: Sequence[int]) -> list[int]:
    """Return the weight w_j = Σ_{o ≤ l} L_j(α_o) of each share point's answer (eq. 5).

    The answers for a pair are the values of a polynomial of degree 2(l + t - 1). Its
    values at the first l data points sum to the squared distance (the paper's Theorem
    1).
    """
    values = [basis(points, point) for point in data_points(segments)]
    return [sum(column) % P for column in zip(*values, strict=True)]


def build_checks(points: Sequence[int], n_values: int) -> Matrix:
    """Return rows of weights for which consistent answers sum to zero.

    The weights are rows of the parity-check matrix of the Reed-Solomon code of length N
    and dimension R. The first row is v_j = 1 / Π_{k ≠ j} (β_j - β_k). If there are at
    least two more answers than needed, the second row is v_j β_j. If only answer j is
    wrong, by e, the two sums are e v_j and e v_j β_j, whose ratio is β_j.
    """
    v = [pow(prod(x - y for y in points if y != x), -1, P) for x in points]
    rows = min(len(points) - n_values, 2)
    return [
        [w * pow(x, power, P) % P for w, x in zip(v, points, strict=True)]
        for power in range(rows)
    ]


_TERMS: Final = 4  # number of parts that `field.add_multiples` adds in one call


def combine(weights: Sequence[int], parts: Sequence[WordArray]) -> WordArray:
    """Return Σ_k weights_k parts_k mod p (size,) for parts of equal length."""
    total: WordArray = np.zeros(len(parts[0]), dtype=np.uint64)
    for rows, block in blocks(total):
        add_combination(block, weights, [part[rows] for part in parts])
        field.canonicalise(block)
    return total


def blocks(total: WordArray) -> Iterator[tuple[slice, WordArray]]:
    """Yield slices of an array, with views of them that fit the cache."""
    for begin in range(0, len(total), field.BLOCK):
        rows = slice(begin, begin + field.BLOCK)
        yield rows, total[rows]


def add_combination(
    total: WordArray, weights: Sequence[int], parts: Sequence[WordArray]
) -> None:
    """Add Σ_k weights_k parts_k to total in place, without reduction to [0, p)."""
    if all(weight == 1 for weight in weights):
        for part in parts:
            field.add(total, part)
        return
    for begin in range(0, len(parts), _TERMS):
        terms = list(parts[begin : begin + _TERMS])
        padded = np.zeros(_TERMS, dtype=np.uint64)
        padded[: len(terms)] = weights[begin : begin + _TERMS]
        # the padding has weight 0, and is in the cache
        terms += terms[:1] * (_TERMS - len(terms))
        field.add_multiples(total, padded, *terms)


def cut_into_segments(rows: WordArray, segments: int) -> list[WordArray]:
    """Cut rows (n, d) into l segments (n · width,); zeros pad the last one."""
    n, d = rows.shape
    width = -(-d // segments)
    padded: WordArray = np.zeros((n, segments * width), dtype=np.uint64)
    padded[:, :d] = rows
    return [
        np.ascontiguousarray(padded[:, begin : begin + width]).reshape(-1)
        for begin in range(0, segments * width, width)
    ]


def encode(
    matrix: Sequence[Sequence[int]], parts: Sequence[WordArray]
) -> list[WordArray]:
    """Return the shares z_j = f(β_j) (n · width,) of all parties (eq. 3).

    matrix: (parties × (l + t)) integers; see :func:`build_encoding_matrix`.
    parts: the l segments and the t arrays of noise, each uint64 (n · width,).
    """
    return [combine(weights, parts) for weights in matrix]


_RADIUS: Final = 0.45  # as a fraction of the diagonal; see `draw_landmarks`
_UNITS: Final = 16.0  # minimum radius, in steps of quantised rows, divided by √d
_SUMMANDS: Final = 12  # uniform numbers whose sum is nearly normal
_SPREAD: Final = 0.5  # smallest over largest eigenvalue exceeds this: it is nearly 1
_BLOCK: Final = 4096

ReadPairs = Callable[[slice], FloatArray]


def draw_landmarks(ranges: FloatArray, bits: int, stream: KeyedStream) -> WordArray:
    """Draw d + 1 landmarks, in the units of quantised rows, as residues.

    The landmarks lie .45 diagonals from the middle of the box of ranges, so that no row
    and no other landmark is farther from a landmark than the diagonal. The precision
    that keeps distances between rows below p therefore also keeps distances to
    landmarks below p. The remaining twentieth of the diagonal leaves room for rounding.
    In a box of only a few units the landmarks lie farther away, since otherwise
    rounding could make them span fewer dimensions; all distances are far below p in
    this case.

    ranges: float64 (d,); R_f of the scaled features.
    bits: q.
    stream: the same at all parties.

    Returns uint64 (d + 1, d), with the same bits on every machine: numbers are added in
    a fixed order, and functions that libraries round differently are avoided.
    """
    steps = ranges * 2.0**bits
    diagonal = sqrt(_sum_in_order(np.square(steps)))
    radius = max(_RADIUS * diagonal, _UNITS * sqrt(len(steps)))
    points = np.rint(
        steps / 2 + radius * _map_orthogonally(_simplex(len(steps)), stream)
    )
    return (points.astype(np.int64) % P).astype(np.uint64)


def rows_from_landmarks(read: ReadPairs, n_rows: int, n_features: int) -> FloatArray:
    """Return rows (n_rows, n_features) with the same distances as the parties' rows.

    Distances are read in blocks of rows, so that they are never all in memory.

    read: returns the squared distances of a slice of pairs. Pairs of two landmarks, or
        of a landmark and a row, are numbered as in the condensed distances of the
        landmarks followed by the rows.

    Raises ProtocolFailed if the landmarks do not form a regular simplex, which means
    that an answer is corrupt.
    """
    delta, begins = _read_landmark_distances(read, n_landmarks(n_features), n_rows)
    mean = delta.mean(axis=0)
    gram = -(delta - mean - mean[:, None] + mean.mean()) / 2
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[-n_features:], vectors[:, -n_features:]
    if values[0] <= _SPREAD * values[-1]:
        raise ProtocolFailed(
            "The distances between the landmarks are not those that all parties draw: "
            "at least one answer is corrupt."
        )
    inverse = -vectors / np.sqrt(values) / 2
    X = np.empty((n_rows, n_features))
    for begin in range(0, n_rows, _BLOCK):
        end = min(begin + _BLOCK, n_rows)
        distances = [read(slice(first + begin, first + end)) for first in begins]
        differences = np.array(distances) - mean[:, None]
        # a matrix product could give equal rows different bits
        np.einsum("ln,ld->nd", differences, inverse, out=X[begin:end])
    return X


def _read_landmark_distances(
    read: ReadPairs, count: int, n_rows: int
) -> tuple[FloatArray, list[int]]:
    """Return squared distances of landmarks (L, L), and where the pairs with rows begin."""
    delta, begins, begin = np.zeros((count, count)), [], 0
    for landmark in range(count):
        middle = begin + count - landmark - 1
        delta[landmark, landmark + 1 :] = read(slice(begin, middle))
        begins.append(middle)
        begin = middle + n_rows
    return delta + delta.T, begins


def _simplex(d: int) -> FloatArray:
    """Return the d + 1 corners (d + 1, d) of a regular simplex, at distance 1 from 0."""
    corners = np.empty((d + 1, d))
    corners[0] = 1 / sqrt(d)
    corners[1:] = -(sqrt(d + 1) + 1) / (d * sqrt(d))
    corners[1:] += sqrt(1 + 1 / d) * np.eye(d)
    return corners


def _map_orthogonally(points: FloatArray, stream: KeyedStream) -> FloatArray:
    """Apply a random orthogonal map to points (n, d), and return their images.

    The map is a product of reflections in 1, 2, … d dimensions, each of which takes the
    first axis to a random direction x (G. W. Stewart, "The efficient generation of
    random orthogonal matrices", 1980; Mezzadri, arXiv:math-ph/0609050, for the signs).
    """
    points = points.copy()
    for size in range(1, points.shape[1] + 1):
        x = _nearly_normal_numbers(size, stream)
        sign = 1.0 if x[0] > 0 else -1.0
        v = x.copy()
        v[0] += sign * sqrt(_sum_in_order(np.square(x)))
        block = points[:, -size:]
        projections = 2 * _sum_in_order(block * v) / _sum_in_order(np.square(v))
        block[:] = sign * (projections[:, None] * v - block)
    return points


def _nearly_normal_numbers(size: int, stream: KeyedStream) -> FloatArray:
    """Return numbers (size,) of mean 0: exact sums of twelve uniform 32-bit numbers."""
    words = stream.words(_SUMMANDS * size).reshape(_SUMMANDS, size) >> np.uint64(32)
    # w + 1/2, doubled to get an integer; the mean is exactly 2^32
    whole: IntArray = (2 * words + np.uint64(1)).sum(axis=0).astype(np.int64)
    return (whole - _SUMMANDS * 2**32).astype(np.float64) * 2.0**-33


def _sum_in_order(values: FloatArray) -> Any:
    """Sum over the last axis in a fixed order, so that the bits are reproducible."""
    return np.cumsum(values, axis=-1)[..., -1]


def field_distances(
    Z: WordArray, engine: Engine = ONE_THREAD, first: int | None = None
) -> WordArray:
    """Return Σ_f (Z_if - Z_i'f)² mod p for pairs of rows i < i' (eq. 4).

    Z: uint64 (n, width); residues in [0, p).
    engine: computes on stripes of rows, which have nearly equal numbers of pairs.
    first: the number of first rows i whose pairs are computed; by default all.

    Returns uint64 (n (n - 1) / 2,), or (n L - L (L + 1) / 2,) if L = first, in the
    order of :func:`scipy.spatial.distance.pdist`.
    """
    n, width = Z.shape
    last = n if first is None else first
    columns = np.zeros((-(-width // _GROUP) * _GROUP, n), dtype=np.uint64)
    columns[:width] = Z.T
    distances: WordArray = np.empty(n_pairs(n) - n_pairs(n - last), dtype=np.uint64)
    begin = 0
    for part in engine.map(partial(_stripe_distances, columns), _stripes(n, last)):
        distances[begin : begin + len(part)] = part
        begin += len(part)
    return distances


def _stripes(n: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of stripes of rows, each of which has about `_PAIRS` pairs."""
    top = 0
    while top < last:
        tiles = max(1, _PAIRS // (_ROWS * (n - top)))
        bottom = min(last, top + _ROWS * tiles)
        yield top, bottom
        top = bottom


def _stripe_distances(columns: WordArray, rows: tuple[int, int]) -> WordArray:
    """Return the distances of pairs whose first row lies in a stripe."""
    n, (top, bottom) = columns.shape[1], rows
    size = n_pairs(n - top) - n_pairs(n - bottom)
    distances: WordArray = np.empty(size, dtype=np.uint64)
    _fill_distances(columns, top, bottom, distances)
    return distances


@in_c("distances")
def _fill_distances(
    columns: WordArray, first: int, last: int, distances: WordArray
) -> None:
    begin = 0
    for i in range(first, last):
        row = distances[begin : begin + columns.shape[1] - i - 1]
        row[:] = 0
        for column in columns:
            x, y = column[i], column[i + 1 :]
            difference = np.maximum(x, y) - np.minimum(x, y)
            a0, a1 = difference & LOW_LIMB, difference >> LIMB
            row[:] = add_limbs(row, a0 * a0, (a0 * a1) << np.uint64(1), a1 * a1)
        row[:] = reduce(row)
        begin += len(row)

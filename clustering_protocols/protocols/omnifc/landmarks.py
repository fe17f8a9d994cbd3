"""Landmark MDS: distances to d + 1 common points give all rows up to a rigid motion.

V. de Silva and J. B. Tenenbaum, "Sparse multidimensional scaling using landmark points",
2004. Landmarks that span all d dimensions make it exact: nothing is estimated, whatever
the rows are.

The parties draw the landmarks from a secret that the analyst lacks: the corners of a
regular simplex, turned at random, round the middle of the features' ranges. A landmark
is a row of no party; every party encodes it at home, with noise segments of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.secrets import group_stream

from . import limits, maths, scaling
from .params import OmniContext

_RADIUS: Final = 0.45  # of the diagonal; see `draw`
_UNITS: Final = 16.0  # times √d, the least radius
_SUMMANDS: Final = 12  # of a nearly normal number
_SPREAD: Final = 0.5  # least over largest eigenvalue; 1 but for rounding
_BLOCK: Final = 4096

ReadPairs = Callable[[slice], FloatArray]


def shares(context: OmniContext, bits: int) -> WordArray:
    """Return this party's shares (d + 1, width) of the landmarks."""
    params, session = context.session.params, context.session
    ranges = scaling.build_agreed_scale(context, params).ranges
    drawn = draw(ranges, bits, group_stream(context, "column", "landmarks"))
    segments = maths.cut(drawn, params.segments)
    silent = [np.zeros_like(segments[0])] * params.noise
    matrix = maths.build_encoding_matrix(
        params.segments, params.noise, len(session.slots)
    )
    own = matrix[session.slots.index(context.slot.name)]
    return maths.encode([own], segments + silent)[0].reshape(len(drawn), -1)


def draw(ranges: FloatArray, bits: int, stream: KeyedStream) -> WordArray:
    """Return d + 1 landmarks in the units of quantised rows, as residues.

    They lie .45 diagonals from the middle of the box of ranges, so that no row and no
    other landmark is farther from one than the diagonal: the precision that leaves the
    distances of rows below p leaves these below it too. Rounding is covered by the
    twentieth of the diagonal that is left. Of a box of a few units the landmarks lie
    farther away, that rounding does not bring them into fewer dimensions; all is far
    below p then.

    ranges: float64 (d,); r_f of the scaled features.
    bits: q.
    stream: the same at all parties.

    Returns uint64 (d + 1, d): equal to the last bit on every machine: only sums of
        whole numbers and of single numbers in a fixed order, and no function that
        libraries round differently.
    """
    steps = ranges * 2.0**bits
    diagonal = sqrt(_total(np.square(steps)))
    radius = max(_RADIUS * diagonal, _UNITS * sqrt(len(steps)))
    points = np.rint(
        steps / 2 + radius * _map_orthogonally(_simplex(len(steps)), stream)
    )
    return (points.astype(np.int64) % P).astype(np.uint64)


def coordinates(read: ReadPairs, n_rows: int, n_features: int) -> FloatArray:
    """Return rows (n_rows, n_features) whose distances are those of the parties' rows.

    Distances are read block by block of rows: they are never all at hand.

    read: from pairs to their squared distances: between the landmarks, and of each
        landmark to each row, the first pairs of the condensed distances of landmarks
        and rows.

    Raises ProtocolFailed if the landmarks are no simplex: an answer was corrupt.
    """
    between, begins = _read_landmark_distances(
        read, limits.n_landmarks(n_features), n_rows
    )
    mean = between.mean(axis=0)
    gram = -(between - mean - mean[:, None] + mean.mean()) / 2
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
        from_rows = [read(slice(first + begin, first + end)) for first in begins]
        apart = np.array(from_rows) - mean[:, None]
        # no matrix product: equal rows stay equal wherever they stand
        np.einsum("ln,ld->nd", apart, inverse, out=X[begin:end])
    return X


def _read_landmark_distances(
    read: ReadPairs, count: int, n_rows: int
) -> tuple[FloatArray, list[int]]:
    """Return distances between landmarks (L, L); where those of each to all rows begin."""
    between, begins, begin = np.zeros((count, count)), [], 0
    for place in range(count):
        middle = begin + count - place - 1
        between[place, place + 1 :] = read(slice(begin, middle))
        begins.append(middle)
        begin = middle + n_rows
    return between + between.T, begins


def _simplex(d: int) -> FloatArray:
    """Return the corners (d + 1, d) of a regular simplex, of length 1."""
    corners = np.empty((d + 1, d))
    corners[0] = 1 / sqrt(d)
    corners[1:] = -(sqrt(d + 1) + 1) / (d * sqrt(d))
    corners[1:] += sqrt(1 + 1 / d) * np.eye(d)
    return corners


def _map_orthogonally(points: FloatArray, stream: KeyedStream) -> FloatArray:
    """Return points (n, d) after a random orthogonal map.

    Reflections that take the first axis to a random direction x, in 1, 2, … d
    dimensions (G. W. Stewart, "The efficient generation of random orthogonal matrices",
    1980; Mezzadri, arXiv:math-ph/0609050, for the signs).
    """
    points = points.copy()
    for size in range(1, points.shape[1] + 1):
        x = _nearly_normal(size, stream)
        sign = 1.0 if x[0] > 0 else -1.0
        v = x.copy()
        v[0] += sign * sqrt(_total(np.square(x)))
        some = points[:, -size:]
        along = 2 * _total(some * v) / _total(np.square(v))
        some[:] = sign * (along[:, None] * v - some)
    return points


def _nearly_normal(size: int, stream: KeyedStream) -> FloatArray:
    """Return numbers of mean 0: sums of twelve uniform ones, of 32 bits each, exact."""
    drawn = stream.words(_SUMMANDS * size).reshape(_SUMMANDS, size) >> np.uint64(32)
    # twice each and odd: none is zero
    whole: IntArray = (2 * drawn + np.uint64(1)).sum(axis=0).astype(np.int64)
    return (whole - _SUMMANDS * 2**32).astype(np.float64) * 2.0**-33


def _total(values: FloatArray) -> Any:
    """Return sums over the last axis, in the order of its numbers."""
    return np.cumsum(values, axis=-1)[..., -1]

"""What the equations of the paper compute, in scaled units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Ranges

from .params import LlfContext, LlfSession

if TYPE_CHECKING:  # a stage of its own, that most sessions do without
    from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.fixed_point import EXACT_BITS, FixedPoint

from .params import LosslessFederated

_ROUNDING: Final = 1.001
_BATCH_ITEMS: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaler:
    """A row counts as (x - offset) · inverse.

    offset, inverse: float64 (m,).
    limit: float64 (m,); largest absolute value of a scaled feature in any row.
    sum_limit, square_limit: float64 (m,); largest sum of its absolute values, and of
        its squares, over all rows.
    step: float64 (m,); the unit of a small step, by which an empty cluster's centroid
        is moved.
    ranges: of the dictionary, in the units of the data; infinite where it says nothing.
    """

    offset: FloatArray
    inverse: FloatArray
    limit: FloatArray
    sum_limit: FloatArray
    square_limit: FloatArray
    step: FloatArray
    ranges: Ranges

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return rows (n, m) in scaled units."""
        return (X - self.offset) * self.inverse

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """Return offset and inverse, as kernels take them."""
        return self.offset, self.inverse

    def farthest_from(self, V: FloatArray) -> float:
        """Return a squared distance that no row has to any of the points V (k, m)."""
        return float(np.square(self.limit + np.abs(V).max(axis=0)).sum())

    def undo(self, Z: FloatArray) -> FloatArray:
        """Return scaled rows (n, m) in the units of the data."""
        return Z / self.inverse + self.offset


def check_widths(session: LlfSession) -> None:
    """Refuse a given start that is not as wide as the data."""
    given, width = session.params.initial_centroids, sum(session.column_widths)
    if given is not None and any(len(row) != width for row in given):
        raise InvalidParameters(f"initial_centroids needs {width} numbers in each row.")


def scaler_of(context: LlfContext) -> Scaler:
    """Return the scaler of a party's column group."""
    moments = None
    if context.session.params.scaling == "standard":
        from clustering_protocols.shared_stages.statistics.by_leader import (
            PooledMoments,
        )

        moments = context.recall(PooledMoments)
    return scaler(context.session, context.slot.column, moments)


def scaler(session: LlfSession, column: int, moments: PooledMoments | None) -> Scaler:
    """Return the scaler of a column group.

    moments: for scaling 'standard'; the analyst, who has none, gets bounds and steps
        alone.
    """
    params = session.params
    group = session.layout.column_group(column)
    width = session.member(group[0]).n_columns
    n_rows = sum(session.n_rows(slot) for slot in group)
    ranges = session.bounds(group[0])
    low, high = ranges
    ones = np.ones(width)
    if params.scaling == "standard":
        mean = moments.mean if moments else np.zeros(width)
        spread = moments.spread if moments else ones
        weights = session.weights(group[0], width)
        # Σz² = n, |z| ≤ √n and, by Cauchy and Schwarz, Σ|z| ≤ n; a little more for
        # rounding.
        return Scaler(
            offset=mean,
            inverse=1.0 / session.units(group[0], spread),
            limit=_ROUNDING * np.sqrt(n_rows) * weights,
            sum_limit=_ROUNDING * n_rows * weights,
            square_limit=_ROUNDING * n_rows * np.square(weights),
            step=ones,
            ranges=ranges,
        )
    extent = np.where(high > low, high - low, 1.0)
    minmax = params.scaling == "minmax"
    farthest = np.maximum(np.abs(low), np.abs(high))
    largest = ones if minmax else np.where(farthest > 0, farthest, 1.0)
    return Scaler(
        offset=low if minmax else np.zeros(width),
        inverse=1.0 / extent if minmax else ones,
        limit=largest,
        sum_limit=n_rows * largest,
        square_limit=n_rows * np.square(largest),
        step=ones if minmax else extent,
        ranges=ranges,
    )


def check_ranges(context: LlfContext, data: DataSource) -> None:
    """Refuse rows outside the dictionary's ranges, before anything of them is sent.

    Fields that are prepared were checked where they were read: what fills their gaps may
    lie a rounding outside.
    """
    if context.session.terms.plan(context.slot.name) is None:
        context.session.bounds(context.slot.name).check(data)


def batches(data: DataSource, k: int = 1) -> Iterator[tuple[slice, FloatArray]]:
    """Yield batches and which rows they are, small enough for k numbers of each row."""
    begin, size = 0, max(_BATCH_ITEMS // k, 1)
    for batch in data.batches():
        for first in range(0, len(batch), size):
            some = batch[first : first + size]
            yield slice(begin, begin + len(some)), some
            begin += len(some)


NUDGE = 1e-3
"""How far the centroid of an empty cluster is moved, in steps of each feature."""

_OTHER_MACHINE = 1e-9
"""How far parties may differ in what moved, as a share of the tolerance."""


class MovedCentroids(NamedTuple):
    """V(t), and ‖V(t) - V(t-1)‖_F over the clusters that have rows."""

    centroids: FloatArray
    moved: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """How sums and weights of one update stand as ring elements.

    sums: per feature.
    weights: counts are whole; degrees to the power λ are not.
    """

    sums: FixedPoint
    weights: FixedPoint
    n_clusters: int
    n_features: int

    @classmethod
    def of(cls, params: LosslessFederated, scale: Scaler, n_rows: int) -> Encoding:
        """Return the encoding of a session whose parties hold n_rows together."""
        degrees = FixedPoint.of(n_rows, EXACT_BITS)
        return cls(
            sums=FixedPoint.of(scale.sum_limit, EXACT_BITS),
            weights=degrees if params.fuzzy else counts_of(n_rows),
            n_clusters=params.n_clusters,
            n_features=scale.offset.size,
        )

    @property
    def n_words(self) -> int:
        """Return the number of ring elements: k·F sums and k weights."""
        return self.n_clusters * (self.n_features + 1)

    def encode(self, sums: FloatArray, weights: FloatArray) -> WordArray:
        """Return the ring elements of whole units: (k, F) sums, then (k,) weights."""
        parts = (
            self.sums.encode_units(sums).reshape(-1),
            self.weights.encode_units(weights),
        )
        return np.concatenate(parts)

    def weights_of(self, units: FloatArray) -> FloatArray:
        """Return weights (k,) of whole units."""
        return units / self.weights.unit

    def decode(self, words: WordArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums (k, F) and weights (k,) of a total.

        Raises ProtocolFailed if the total cannot be one: its masks did not cancel.
        """
        if not self.fits(words):
            raise ProtocolFailed(
                "A total is larger than it can be: the parties did not add up the same."
            )
        sums, weights = self._split(words)
        return self.sums.decode(sums), self.weights.decode(weights)

    def fits(self, words: WordArray) -> bool:
        """Return whether a total is as small as it must be."""
        sums, weights = self._split(words)
        return self.sums.fits(sums) and self.weights.fits(weights)

    def _split(self, words: WordArray) -> tuple[WordArray, WordArray]:
        size = self.n_clusters * self.n_features
        return words[:size].reshape(self.n_clusters, self.n_features), words[size:]


def counts_of(n_rows: int) -> FixedPoint:
    """Return the encoding of counts of n_rows in all."""
    return FixedPoint(bound=np.array(float(n_rows)), unit=np.array(1.0))


def check_weights(params: LosslessFederated, weights: FloatArray, n_rows: int) -> None:
    """Refuse degrees that rows which took part cannot have, and counts of others.

    Raises ProtocolFailed.
    """
    if params.fuzzy:
        _check_most(weights, n_rows)
    else:
        check_counts(weights, n_rows)


def check_counts(counts: FloatArray, n_rows: int) -> None:
    """Refuse counts that are not those of the rows that took part.

    Raises ProtocolFailed.
    """
    _check_most(counts, n_rows)
    if counts.sum() != n_rows:
        raise ProtocolFailed("The counts of a total do not add up to the rows.")


def _check_most(weights: FloatArray, n_rows: int) -> None:
    if (weights < 0).any() or weights.sum() > n_rows * (1 + 1e-9):
        raise ProtocolFailed("A total counts more rows than the parties hold.")


def move(
    V: FloatArray,
    sums: FloatArray,
    weights: FloatArray,
    nudge: FloatArray,
    unit: FloatArray,
    least: int = 1,
) -> MovedCentroids:
    """Return V(t) = ΣLs_c/Σn_c or ΣWS_c/Σu_c (equations 5 and 7).

    Centroids that coincide are made equal. An empty cluster keeps its centroid, moved by
    a nudge that does not count; one of fewer rows than ``least`` keeps it as it is.

    V, sums, nudge: float64 (k, F).
    weights: float64 (k,).
    unit: float64 (F,); of each feature: :attr:`Scaler.step`.
    least: :attr:`LosslessFederated.least_rows_moved`, where rows are split.
    """
    filled = weights > 0
    large = filled & ((least == 1) | (weights >= least))
    divisor = np.where(filled, weights, 1.0)[:, None]
    centroids = equalise_coordinates(np.where(large[:, None], sums / divisor, V), unit)
    moved = float(np.sqrt(np.square(centroids - V).sum()))
    return MovedCentroids(
        np.where(filled[:, None], centroids, centroids + nudge), moved
    )


def nudge(session: LlfSession, column: int, number: int, scale: Scaler) -> FloatArray:
    """Return the small seeded steps (k, m) of an update, for a column group."""
    stream = session.public_stream("llf", "nudge", column, number)
    return drawn_nudge(stream, scale, session.params.n_clusters)


def nudge_purpose(column: int, number: int) -> str:
    """Return what a row group's secret steps of an update are drawn for."""
    return f"nudge/{column}/{number}"


def drawn_nudge(stream: KeyedStream, scale: Scaler, k: int) -> FloatArray:
    """Return small steps (k, m): secret with split columns, by a row group's stream.

    Uniform: all parties have these numbers in the same bits, in any language. The last
    bit of a normal number is a matter of the library.
    """
    return NUDGE * scale.step * (2.0 * stream.uniform(k, scale.step.size) - 1.0)


def rows_of(session: LlfSession, slots: Sequence[str]) -> int:
    """Return how many rows some parties hold together."""
    return sum(session.n_rows(slot) for slot in slots)


def digest(V: FloatArray, number: int) -> bytes:
    """Return a digest of the centroids after an update, bit for bit."""
    return sha256(
        number.to_bytes(8, "big") + np.ascontiguousarray(V).tobytes()
    ).digest()


def stops(params: LosslessFederated, moved: float | None) -> bool:
    """Return whether the centroids moved by no more than the tolerance."""
    return moved is not None and moved <= params.tol


def may_stop(params: LosslessFederated, moved: float | None) -> bool:
    """Return whether the leader may see the centroids at rest.

    All have the same centroids, but add up how far these moved in an order of their own.
    """
    return moved is not None and moved <= params.tol * (1.0 + _OTHER_MACHINE)

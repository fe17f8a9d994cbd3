"""Moving centroids by totals: from V(t-1) and a total all parties compute one V(t)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy.fixed_point import EXACT_BITS, FixedPoint

from .features import Scaler
from .params import LlfSession, LosslessFederated

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

"""The last sums over split rows: cluster sizes and what intrinsic indices need."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.algorithms.coincidence import n_coinciding
from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.secrecy.fixed_point import FixedPoint

from . import indices, kernels, messages
from .features import Scaler, contiguous
from .params import (
    LlfSession,
    LosslessFederated,
)

N_ARRAYS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Sums per cluster (k,): rows, Σ μ² d², Σ μ^λ d and Σ μ^λ; d in scaled units."""

    sizes: FloatArray
    compactness: FloatArray
    scatter: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosingTotals:
    """What all parties learn of the whole."""

    sizes: IntArray = field(repr=False)
    xie_beni: float | None
    soft_davies_bouldin: float | None

    @property
    def mark(self) -> bytes:
        """Return what all parties must find alike; indices to nine digits."""
        indices_ = (self.xie_beni, self.soft_davies_bouldin)
        told = ["none" if each is None else f"{each:.9g}" for each in indices_]
        return self.sizes.tobytes() + ",".join(told).encode()


def final_rows(
    params: LosslessFederated, data: DataSource, scale: Scaler, V: FloatArray
) -> tuple[messages.FinalRows, Shares]:
    """Return labels (and memberships, where wanted) and this party's shares."""
    k = len(V)
    wanted = params.output == "memberships"
    labels = np.empty(data.n_rows, dtype=np.int64)
    memberships = np.empty((data.n_rows if wanted else 0, k))
    parts = np.zeros((N_ARRAYS, k))
    exponent = 1.0 / (params.fuzzifier - 1.0) if params.fuzzy else 0.0
    begin = 0
    for batch in contiguous(data):
        end = begin + len(batch)
        U, D = np.empty((len(batch), k)), np.empty((len(batch), k))
        fixed = (scale.offset, scale.inverse, np.ascontiguousarray(V), exponent)
        kernels.assign(batch, *fixed, labels[begin:end], U, D)
        parts += _sums(params, labels[begin:end], U, D)
        if wanted:
            memberships[begin:end] = U
        begin = end
    sizes, compactness, scatter, weights = parts
    shares = Shares(
        sizes=sizes, compactness=compactness, scatter=scatter, weights=weights
    )
    return messages.FinalRows(labels=labels, memberships=memberships), shares


def _sums(
    params: LosslessFederated, labels: IntArray, U: FloatArray, D: FloatArray
) -> FloatArray:
    degrees = U**params.fuzzifier if params.fuzzy else U
    return np.array(
        [
            np.bincount(labels, minlength=U.shape[1]),
            np.einsum("ic,ic,ic->c", U, U, D),
            np.einsum("ic,ic->c", degrees, np.sqrt(D)),
            degrees.sum(axis=0),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """How sizes and the three sums of reals stand as ring elements."""

    sizes: FixedPoint
    reals: tuple[FixedPoint, FixedPoint, FixedPoint]

    @classmethod
    def of(cls, scale: Scaler, V: FloatArray, n_rows: int) -> Encoding:
        """Return the encoding around centroids V, of parties with n_rows together."""
        counts = FixedPoint(bound=np.array(float(n_rows)), unit=np.array(1.0))
        farthest = np.square(scale.limit + np.abs(V).max(axis=0)).sum()
        return cls(
            sizes=counts,
            reals=(
                FixedPoint.of(n_rows * farthest),
                FixedPoint.of(n_rows * np.sqrt(farthest)),
                FixedPoint.of(n_rows),
            ),
        )

    def encode(self, shares: Shares) -> WordArray:
        """Return the ring elements of a party's shares, (4k,)."""
        reals = (shares.compactness, shares.scatter, shares.weights)
        parts = [self.sizes.encode_units(shares.sizes)]
        parts += [code.encode(r) for code, r in zip(self.reals, reals, strict=True)]
        return np.concatenate(parts)

    def fits(self, words: WordArray) -> bool:
        """Return whether sums are as small as they must be."""
        parts = words.reshape(N_ARRAYS, -1)
        codes = (self.sizes, *self.reals)
        return all(code.fits(part) for code, part in zip(codes, parts, strict=True))


def n_words(params: LosslessFederated) -> int:
    """Return the size of a closing share: four sums per cluster, and a tag if masked."""
    return N_ARRAYS * params.n_clusters + params.masked


def read(code: Encoding, words: WordArray, V: FloatArray, n_rows: int) -> ClosingTotals:
    """Return sizes and indices of the total over members with n_rows together.

    Raises
    ------
    ProtocolFailed
        If the sizes do not add up to the rows.
    """
    counts, *reals = words.reshape(N_ARRAYS, len(V))
    counted = code.sizes.decode(counts)
    if not code.fits(words) or (counted < 0).any() or counted.sum() != n_rows:
        raise ProtocolFailed("The sizes of the clusters do not add up to the rows.")
    compactness, scatter, weights = (
        each.decode(real) for each, real in zip(code.reals, reals, strict=True)
    )
    return ClosingTotals(
        sizes=counted.astype(np.int64),
        xie_beni=indices.xie_beni(float(compactness.sum()), n_rows, V),
        soft_davies_bouldin=indices.soft_davies_bouldin(scatter, weights, V),
    )


def published(
    session: LlfSession,
    scale: Scaler,
    known: messages.Centroids,
    totals: ClosingTotals,
) -> messages.Published:
    """Return what the terms let out of clusters that are large enough."""
    params = session.params
    silent = params.publish == "nothing"
    large = np.flatnonzero(totals.sizes >= params.min_cluster_rows)
    if silent:
        large = large[:0]
    told = large if params.publish == "centroids" else large[:0]
    return messages.Published(
        clusters=large.astype(np.int64),
        centroids=scale.undo(known.centroids[told]),
        sizes=totals.sizes[large],
        n_updates=known.number,
        n_coinciding=None if silent else n_coinciding(known.centroids),
        xie_beni=None if silent else totals.xie_beni,
        soft_davies_bouldin=None if silent else totals.soft_davies_bouldin,
    )


def nothing(width: int, n_updates: int) -> messages.Published:
    """Return what a party says that does not lead."""
    none = np.empty(0, dtype=np.int64)
    return messages.Published(
        clusters=none, centroids=np.empty((0, width)), sizes=none, n_updates=n_updates
    )

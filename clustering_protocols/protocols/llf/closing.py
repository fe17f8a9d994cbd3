"""The last sums over split rows: of the final labels, first their means, then around them.

The figures are those of the labels, which are of the nearest final centroid: so they are
what anybody would compute of the labels and the pooled rows, however far the centroids
still are from the means of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clustering_protocols.algorithms.coincidence import n_coinciding
from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.figures import Figures
from clustering_protocols.profiles import SHARES
from clustering_protocols.quality import sums as formulas
from clustering_protocols.secrecy.fixed_point import FixedPoint

from . import kernels, messages
from .centroids import Encoding, counts_of, stops
from .features import Scaler, contiguous
from .params import LlfSession, LosslessFederated

_BLOCK_ITEMS: Final = 1 << 22
_NOT_THE_ROWS = "The sizes of the clusters do not add up to the rows."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Around:
    """Sums of the final labels around the means m_c of their clusters.

    Attributes
    ----------
    sizes, squares, distances : float64 arrays of shape (k,)
        n_c, Σ ‖x - m_c‖² and Σ ‖x - m_c‖, in scaled units.
    silhouettes : float
        Of the simplified silhouette.
    fuzzy : float64 array of shape (2,), or (0,) for c-means
        Σ_c Σ_i μ_ci² ‖x_i - v_c‖² around the centroids v_c, and Σ_c Σ_i μ_ci².
    """

    sizes: FloatArray = field(repr=False)
    squares: FloatArray = field(repr=False)
    distances: FloatArray = field(repr=False)
    silhouettes: float
    fuzzy: FloatArray = field(repr=False)


def final_rows(
    params: LosslessFederated, data: DataSource, scale: Scaler, V: FloatArray
) -> messages.FinalRows:
    """Return the labels of this party's rows, and memberships where wanted."""
    k = len(V)
    wanted = params.output == "memberships"
    labels = np.empty(data.n_rows, dtype=np.int64)
    memberships = np.empty((data.n_rows if wanted else 0, k))
    for begin, batch in batches(data):
        end = begin + len(batch)
        labels[begin:end], U, _ = assigned(params, batch, scale, V)
        if wanted:
            memberships[begin:end] = U
    return messages.FinalRows(labels=labels, memberships=memberships)


def sums_of_labels(
    params: LosslessFederated, data: DataSource, scale: Scaler, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums (k, F) and counts (k,) of this party's rows by label."""
    k = params.n_clusters
    sums = np.zeros((k, scale.offset.size))
    for begin, batch in batches(data):
        own = labels[begin : begin + len(batch)]
        sums += formulas.by_label(scale(batch), own, k)
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    if params.suppresses:
        few = counts < params.suppress_below
        sums[few], counts[few] = 0.0, 0.0
    return sums, counts


def sums_around(
    params: LosslessFederated,
    data: DataSource,
    scale: Scaler,
    known: messages.Centroids,
    final: messages.FinalMeans,
    labels: IntArray,
) -> Around:
    """Return this party's share of the sums around the means; see :class:`Around`."""
    k = params.n_clusters
    squares, distances, silhouettes = np.zeros(k), np.zeros(k), 0.0
    fuzzy = np.zeros(2 if params.fuzzy else 0)
    for begin, batch in batches(data, k):
        own = labels[begin : begin + len(batch)]
        D = squared_distances(scale(batch), final.means)
        block = formulas.of_block(D, own, final.counts)
        squares += block.squares
        distances += block.distances
        silhouettes += block.silhouettes
        if params.fuzzy:
            _, U, to_centroids = assigned(params, batch, scale, known.centroids)
            degrees = np.square(U)
            fuzzy += (degrees * to_centroids).sum(), degrees.sum()
    return Around(
        sizes=np.bincount(labels, minlength=k).astype(np.float64),
        squares=squares,
        distances=distances,
        silhouettes=silhouettes,
        fuzzy=fuzzy,
    )


def batches(data: DataSource, k: int = 1) -> Iterator[tuple[int, FloatArray]]:
    """Yield batches with the number of their first row, k times as many items each."""
    begin, size = 0, max(_BLOCK_ITEMS // k, 1)
    for batch in contiguous(data):
        for first in range(0, len(batch), size):
            yield begin + first, batch[first : first + size]
        begin += len(batch)


def assigned(
    params: LosslessFederated, batch: FloatArray, scale: Scaler, V: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return labels (n,), memberships and squared distances (n, k) to centroids."""
    labels = np.empty(len(batch), dtype=np.int64)
    U, D = np.empty((len(batch), len(V))), np.empty((len(batch), len(V)))
    exponent = 1.0 / (params.fuzzifier - 1.0) if params.fuzzy else 0.0
    fixed = (scale.offset, scale.inverse, np.ascontiguousarray(V), exponent)
    kernels.assign(batch, *fixed, labels, U, D)
    return labels, U, D


def encoding_of_labels(scale: Scaler, k: int, n_rows: int) -> Encoding:
    """Return how sums and counts of labels stand as ring elements: rounded once."""
    return Encoding(
        sums=FixedPoint.of(scale.sum_limit),
        weights=counts_of(n_rows),
        n_clusters=k,
        n_features=scale.offset.size,
    )


def means_of(
    sums: FloatArray, counts: FloatArray, V: FloatArray
) -> messages.FinalMeans:
    """Return the means (k, F) of the final labels; the centroid, of a cluster without."""
    filled = counts[:, None] > 0
    means = np.where(filled, sums / np.maximum(counts, 1.0)[:, None], V)
    return messages.FinalMeans(counts=counts.astype(np.int64), means=means)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AroundEncoding:
    """How :class:`Around` stands as ring elements: sizes, then reals."""

    sizes: FixedPoint
    reals: FixedPoint
    n_clusters: int

    @classmethod
    def of(
        cls,
        params: LosslessFederated,
        scale: Scaler,
        V: FloatArray,
        means: FloatArray,
        n_rows: int,
    ) -> AroundEncoding:
        """Return the encoding around centroids and means, of n_rows in all."""
        k, farthest = params.n_clusters, scale.farthest_from(means)
        ones = np.ones(k)
        bounds = [*(farthest * ones), *(np.sqrt(farthest) * ones), 1.0]
        if params.fuzzy:
            bounds += [scale.farthest_from(V), 1.0]
        return cls(
            sizes=counts_of(n_rows),
            reals=FixedPoint.of(n_rows * np.array(bounds)),
            n_clusters=k,
        )

    def encode(self, share: Around) -> WordArray:
        """Return the ring elements of a party's share."""
        scalars = [share.silhouettes], share.fuzzy
        reals = np.concatenate([share.squares, share.distances, *scalars])
        sizes = self.sizes.encode_units(share.sizes)
        return np.concatenate([sizes, self.reals.encode(reals)])

    def fits(self, words: WordArray) -> bool:
        """Return whether sums are as small as they must be."""
        k = self.n_clusters
        return self.sizes.fits(words[:k]) and self.reals.fits(words[k:])

    def decode(self, words: WordArray, n_rows: int) -> Around:
        """Return the total over members with n_rows together.

        Raises
        ------
        ProtocolFailed
            If it cannot be one.
        """
        k = self.n_clusters
        if not self.fits(words):
            raise ProtocolFailed(_NOT_THE_ROWS)
        sizes, reals = self.sizes.decode(words[:k]), self.reals.decode(words[k:])
        negative = (sizes < 0).any() or (np.delete(reals, 2 * k) < 0).any()
        if negative or sizes.sum() != n_rows:
            raise ProtocolFailed(_NOT_THE_ROWS)
        return Around(
            sizes=sizes,
            squares=reals[:k],
            distances=reals[k : 2 * k],
            silhouettes=float(reals[2 * k]),
            fuzzy=reals[2 * k + 1 :],
        )


def n_words_of_labels(params: LosslessFederated, width: int) -> int:
    """Return the size of a share of sums of labels, with a tag if masked."""
    return params.n_clusters * (width + 1) + params.masked


def n_words_around(params: LosslessFederated) -> int:
    """Return the size of a share of the sums around the means, with a tag if masked."""
    return 3 * params.n_clusters + 1 + 2 * params.fuzzy + params.masked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosingTotals:
    """What all parties learn of the whole."""

    sizes: IntArray = field(repr=False)
    figures: Figures

    @property
    def mark(self) -> bytes:
        """Return what all parties must find alike; figures to nine digits."""
        told = [
            f"{name}={value}" for name, value in dict(self.figures.rounded(9)).items()
        ]
        return self.sizes.tobytes() + ",".join(told).encode()


def totals_of(
    params: LosslessFederated,
    known: messages.Centroids,
    means: FloatArray,
    total: Around,
) -> ClosingTotals:
    """Return sizes and figures of the total."""
    run: dict[str, Any] = {
        "n_iter": known.number,
        "converged": stops(params, known.moved),
    }
    sizes = total.sizes.astype(np.int64)
    if params.suppresses:  # the sums lack the rows that were held back
        figures = Figures(n_clusters=int(np.count_nonzero(sizes)), **run)
        return ClosingTotals(sizes=sizes, figures=figures)
    between, n_rows = formulas.separations(means), int(sizes.sum())
    others: dict[str, float | None] = {}
    if params.fuzzy:
        compactness, degrees = map(float, total.fuzzy)
        apart = formulas.separations(known.centroids)
        others["partition_coefficient"] = formulas.partition_coefficient(
            degrees, n_rows
        )
    else:
        compactness, there = float(total.squares.sum()), np.flatnonzero(sizes)
        apart = between[np.ix_(there, there)]
    others["xie_beni"] = formulas.xie_beni(compactness, n_rows, apart)
    sums = formulas.ClusterSums(
        counts=sizes,
        squares=total.squares,
        distances=total.distances,
        separations=between,
        silhouettes=total.silhouettes,
    )
    return ClosingTotals(sizes=sizes, figures=formulas.of_sums(sums, **others, **run))


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
    shown = known.centroids[told]
    if session.terms.release is not None:  # else they would undo its rounding
        shown = np.rint(SHARES * shown) / SHARES
    return messages.Published(
        clusters=large.astype(np.int64),
        centroids=scale.undo(shown),
        sizes=totals.sizes[large],
        n_updates=known.number,
        n_coinciding=None if silent else n_coinciding(known.centroids),
    )


def nothing(width: int, n_updates: int) -> messages.Published:
    """Return what a party says that does not lead."""
    none = np.empty(0, dtype=np.int64)
    return messages.Published(
        clusters=none, centroids=np.empty((0, width)), sizes=none, n_updates=n_updates
    )

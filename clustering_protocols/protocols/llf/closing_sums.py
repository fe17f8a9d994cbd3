"""Totals of the final labels over split rows: first their means, then sums around them.

The figures are those of the labels, which are of the nearest final centroid: so they are
what anybody would compute of the labels and the pooled rows, however far the centroids
still are from the means of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clustering_protocols.algorithms.coincidence import n_coinciding
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.round_numbers import round_up
from clustering_protocols.quality import sums as formulas
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint

from . import messages
from .maths import Encoding, Scaler, counts_of, stops
from .params import LlfSession, LosslessFederated

_COARSEST_STEP: Final = 1 / 20
_ROWS_HIDDEN: Final = 5
"""Published means are as coarse as if so many rows of their cluster lay one spread off."""
_NOT_THE_ROWS = "The sizes of the clusters do not add up to the rows."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Around:
    """Sums of the final labels around the means m_c of their clusters.

    sizes, squares, distances: float64 (k,); n_c, Σ ‖x - m_c‖² and Σ ‖x - m_c‖, in
        scaled units.
    silhouettes: of the simplified silhouette.
    fuzzy: float64 (2,), or (0,) for c-means; σ_c Σ_i μ_ci² ‖x_i - v_c‖² around the
        centroids v_c, and Σ_c Σ_i μ_ci².
    """

    sizes: FloatArray = field(repr=False)
    squares: FloatArray = field(repr=False)
    distances: FloatArray = field(repr=False)
    silhouettes: float
    fuzzy: FloatArray = field(repr=False)


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

        Raises ProtocolFailed if it cannot be one.
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
    """Return the size of a share of sums of labels, with its tag."""
    return params.n_clusters * (width + 1) + 1


def n_words_around(params: LosslessFederated) -> int:
    """Return the size of a share of the sums around the means, with its tag."""
    return 3 * params.n_clusters + 2 + 2 * params.fuzzy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosingTotals:
    """What all parties learn of the whole."""

    sizes: IntArray = field(repr=False)
    figures: Figures


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
    between, n_rows = formulas.separations(means), int(sizes.sum())
    others: dict[str, float | None] = {}
    if params.fuzzy:
        compactness, degrees = map(float, total.fuzzy)
        apart = formulas.separations(known.centroids)
        others["partition_coefficient"] = formulas.partition_coefficient(
            degrees, n_rows, sizes
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


def build_publication(
    session: LlfSession,
    scale: Scaler,
    known: messages.Centroids,
    final: messages.FinalMeans,
    totals: ClosingTotals,
) -> messages.PublishedResult:
    """Return what the terms let out of clusters that are large enough, rounded.

    Centroids are the means of the final labels (fuzzy: those of the last update), in
    round steps of at least max(1/20, 5/n) spreads for a cluster of n rows (of the
    declared range, where that is the unit); sizes are told to fives: what two sessions
    differ by then says less of a single row than the mean of all rows does.
    """
    params = session.params
    silent = params.publish == "nothing"
    large = np.flatnonzero(totals.sizes >= params.min_cluster_rows)
    if silent:
        large = large[:0]
    told = large if params.publish == "centroids" else large[:0]
    shown = (known.centroids if params.fuzzy else final.means)[told]
    grid = steps_of(final.counts[told], _units(session, scale))
    return messages.PublishedResult(
        clusters=large.astype(np.int64),
        centroids=np.rint(scale.undo(shown) / grid) * grid,
        sizes=_in_fives(totals.sizes[large]),
        n_updates=known.number,
        n_coinciding=None if silent else n_coinciding(known.centroids),
    )


def steps_of(sizes: IntArray, spreads: FloatArray) -> FloatArray:
    """Return the steps (p, F) of means over so many rows (p,); 0 where no row differs.

    They are round numbers: other digits would say what sizes and spreads are.

    spreads: float64 (F,), of each feature.
    """
    shares = np.maximum(_COARSEST_STEP, _ROWS_HIDDEN / np.maximum(sizes, 1))
    return round_up(shares[:, None] * spreads)


def _units(session: LlfSession, scale: Scaler) -> FloatArray:
    """Return the spread of each feature (F,), or its declared range."""
    slot = session.layout.column_group(0)[0]
    return scale.step * session.weights(slot, scale.step.size) / scale.inverse


def _in_fives(sizes: IntArray) -> IntArray:
    """Return sizes (p,) as the nearest multiples of five above none."""
    found: IntArray = np.maximum(5 * np.rint(sizes / 5), 5).astype(np.int64)
    return found


def build_empty_publication(width: int, n_updates: int) -> messages.PublishedResult:
    """Return what a party says that does not lead."""
    none = np.empty(0, dtype=np.int64)
    return messages.PublishedResult(
        clusters=none, centroids=np.empty((0, width)), sizes=none, n_updates=n_updates
    )

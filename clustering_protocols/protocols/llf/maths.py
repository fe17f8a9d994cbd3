"""The equations of the paper in scaled units, and quality figures from closing totals.

In Corcuera Bárcena et al., equations 1 and 2 are the layouts of split rows and columns.
Equations 3 and 4 are in :func:`.row_kernels.nearest_sums`, equations 5 and 7 in
:func:`move_centroids`, equation 6 in :func:`.kernels.fuzzy_sums`, equations 16 and 17 in
:mod:`.columns_party`, and equation 18 in :mod:`.columns_analyst`.

The quality figures describe the final labels, that is, the numbers of the nearest final
centroids. The figures equal those computed from these labels and the pooled rows, even
if the centroids are not yet the means of their rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from clustering_protocols.algorithms.coincidence import (
    count_coinciding_centroids,
    equalise_coordinates,
)
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.round_numbers import round_rows, rounding_steps
from clustering_protocols.quality import sums as formulas
from clustering_protocols.records.arrays import (
    ByteArray,
    FloatArray,
    IntArray,
    WordArray,
)
from clustering_protocols.secrecy.fixed_point import EXACT_BITS, FixedPoint
from clustering_protocols.shared_stages.scaling import Scaler, build_scaler

from . import messages
from .params import LlfSession, LosslessFederated

PERTURBATION = 1e-3
"""The centroid of an empty cluster moves at most this far, in units of ``Scaler.step``."""

ROUNDING_MARGIN: Final = 1e-9
"""Largest rounding error of a movement of the centroids, relative to the tolerance.

All parties have the same centroids, but may add up their movements in a different order
from the leader.
"""


def build_update_encoding(
    params: LosslessFederated, scale: Scaler, n_rows: int
) -> FixedPoint:
    """Return the fixed-point encoding of an update: sums (k, F), then weights (k,).

    Weights are numbers of rows, or sums of memberships to the power λ.

    n_rows: the number of rows of all parties.
    """
    k = params.n_clusters
    degrees = FixedPoint.of(np.full(k, float(n_rows)), EXACT_BITS)
    weights = degrees if params.fuzzy else _build_count_encoding(n_rows, k)
    sums = FixedPoint.of(np.tile(scale.sum_limit, k), EXACT_BITS)
    return FixedPoint.concatenate(sums, weights)


def build_labels_encoding(
    params: LosslessFederated, scale: Scaler, n_rows: int
) -> FixedPoint:
    """Return the encoding of sums by final label, which a party rounds after adding up."""
    k = params.n_clusters
    sums = FixedPoint.of(np.tile(scale.sum_limit, k))
    return FixedPoint.concatenate(sums, _build_count_encoding(n_rows, k))


def _build_count_encoding(n_rows: int, k: int) -> FixedPoint:
    return FixedPoint(bound=np.full(k, float(n_rows)), unit=np.ones(k))


def join_sums(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Concatenate the sums and weights of an update into one vector (k·F + k,)."""
    return np.append(sums, weights)


def split_sums(numbers: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Split the vector (k·F + k,) of an update into sums (k, F) and weights (k,)."""
    return numbers[:-k].reshape(k, -1), numbers[-k:]


def n_words_of_sums(params: LosslessFederated, width: int) -> int:
    """Return the length of an update in 64-bit words: its sums, weights and tag."""
    return params.n_clusters * (width + 1) + 1


def check_weights(weights: FloatArray, n_rows: int, *, counts: bool = True) -> None:
    """Raise ProtocolFailed if weights (k,) are impossible for n_rows rows.

    counts: whether the weights are numbers of rows rather than sums of memberships.
    """
    if (weights < 0).any() or weights.sum() > n_rows * (1 + 1e-9):
        raise ProtocolFailed("A total counts more rows than the parties have.")
    if counts and weights.sum() != n_rows:
        raise ProtocolFailed("The counts of a total do not add up to the rows.")


def move_centroids(
    V: FloatArray,
    sums: FloatArray,
    weights: FloatArray,
    perturbation: FloatArray,
    unit: FloatArray,
    minimum: int = 1,
) -> tuple[FloatArray, float]:
    """Return V(t) = ΣLs_c/Σn_c or ΣWS_c/Σu_c (equations 5 and 7), and ‖V(t) - V(t-1)‖_F.

    Coinciding centroids are made equal. A cluster with fewer rows than ``minimum`` keeps
    its centroid. An empty cluster moves by the perturbation, which the norm does not
    include.

    V, sums, perturbation: float64 (k, F).
    weights: float64 (k,); numbers of rows or sums of memberships.
    unit: float64 (F,); :attr:`Scaler.step`.
    minimum: :attr:`LosslessFederated.min_rows_to_move_centroid` if rows are split.
    """
    filled = weights > 0
    large = filled & ((minimum == 1) | (weights >= minimum))
    divisor = np.where(filled, weights, 1.0)[:, None]
    centroids = equalise_coordinates(np.where(large[:, None], sums / divisor, V), unit)
    moved = float(np.sqrt(np.square(centroids - V).sum()))
    return np.where(filled[:, None], centroids, centroids + perturbation), moved


def public_perturbation(session: LlfSession, number: int, scale: Scaler) -> FloatArray:
    """Return public perturbations (k, m) of empty clusters for an update of split rows."""
    stream = session.public_stream("llf", "nudge", 0, number)  # of column group 0
    return draw_perturbation(stream, scale, session.params.n_clusters)


def perturbation_label(column: int, number: int) -> str:
    """Return the label under which a row group draws an update's secret perturbations."""
    return f"nudge/{column}/{number}"


def draw_perturbation(stream: KeyedStream, scale: Scaler, k: int) -> FloatArray:
    """Draw perturbations (k, m), which are small uniform numbers, from a stream.

    Uniform numbers have the same bits in any language, whereas the last bit of a normal
    random number depends on the library.
    """
    return PERTURBATION * scale.step * (2.0 * stream.uniform(k, scale.step.size) - 1.0)


def count_rows(session: LlfSession, slots: Sequence[str]) -> int:
    """Return the total number of rows of these slots."""
    return sum(session.n_rows(slot) for slot in slots)


def has_converged(
    params: LosslessFederated, moved: float | None, margin: float = 0.0
) -> bool:
    """Return whether the centroids moved by no more than the tolerance, plus a margin."""
    return moved is not None and moved <= params.tol * (1.0 + margin)


def build_figures_encoding(
    params: LosslessFederated,
    scale: Scaler,
    V: FloatArray,
    means: FloatArray,
    n_rows: int,
) -> FixedPoint:
    """Return the encoding of the sums from which quality figures are computed.

    These sums are the cluster sizes (k,) and, in scaled units, the sums (2k + 1,) that
    :func:`.block_sums.sum_around_means` computes around the means (k, F) of the labels.
    For fuzzy c-means, Σ_c Σ_i μ_ci² ‖x_i - v_c‖² around V (k, F) and Σ_c Σ_i μ_ci²
    follow.
    """
    k, farthest = params.n_clusters, scale.bound_squared_distances(means)
    bounds = [farthest] * k + [math.sqrt(farthest)] * k + [1.0]
    if params.fuzzy:
        bounds += [scale.bound_squared_distances(V), 1.0]
    reals = FixedPoint.of(n_rows * np.array(bounds))
    return FixedPoint.concatenate(_build_count_encoding(n_rows, k), reals)


def n_words_of_figures(params: LosslessFederated) -> int:
    """Return the length, in 64-bit words, of a party's share of the sums for the figures.

    The share consists of the sums of :func:`build_figures_encoding` and a tag.
    """
    return 3 * params.n_clusters + 2 + 2 * params.fuzzy


def read_sizes_and_figures(
    params: LosslessFederated,
    state: messages.Centroids,
    means: FloatArray,
    total: FloatArray,
    n_rows: int,
) -> tuple[messages.FinalSizes, Figures]:
    """Compute the sizes and the quality figures of the final clusters from a total.

    means: float64 (k, F); the means of the final labels.
    total: the sums of :func:`build_figures_encoding` over n_rows rows.

    Raises ProtocolFailed if the sums are impossible for n_rows rows.
    """
    k = params.n_clusters
    negative = (np.delete(total, 3 * k) < 0).any()  # silhouettes may be negative
    if negative or total[:k].sum() != n_rows:
        raise ProtocolFailed("The sizes of the clusters do not add up to the rows.")
    sizes, around = total[:k].astype(np.int64), total[k : 3 * k + 1]
    figures: dict[str, Any] = {
        "n_iter": state.number,
        "converged": has_converged(params, state.moved),
    }
    if params.fuzzy:
        compactness, degrees = map(float, total[3 * k + 1 :])
        centroids = state.centroids
        figures["partition_coefficient"] = formulas.partition_coefficient(
            degrees, n_rows, sizes
        )
    else:
        compactness, centroids = float(around[:k].sum()), means[sizes > 0]
    figures["xie_beni"] = formulas.xie_beni(
        compactness, n_rows, formulas.squared_separations(centroids)
    )
    return messages.FinalSizes(sizes=sizes), formulas.figures_from_sums(
        sizes, means, around, **figures
    )


def build_publication(
    session: LlfSession,
    scale: Scaler,
    state: messages.Centroids,
    final: messages.FinalMeans,
) -> messages.PublishedResult:
    """Return the rounded centroids and sizes of the clusters that may be published.

    Sizes are those of the sum that gives the means. With a quorum, other parties may
    have taken part in the sum for the figures.

    The published centroids are the means of the final labels or, for fuzzy c-means, the
    last centroids. The centroid of a cluster of n rows is rounded to steps of at least
    max(1/20, 5/n) standard deviations, or of declared ranges if the terms scale by
    these. Sizes are rounded to multiples of five.
    """
    params = session.params
    silent = params.publish == "nothing"
    large = np.flatnonzero(final.counts >= params.min_cluster_rows)
    if silent:
        large = large[:0]
    with_centroid = large if params.publish == "centroids" else large[:0]
    V = (state.centroids if params.fuzzy else final.means)[with_centroid]
    slot = session.layout.column_group(0)[0]
    grid = rounding_steps(
        final.counts[with_centroid],
        (scale.step * session.weights(slot, scale.step.size) / scale.inverse),
    )
    return messages.PublishedResult(
        clusters=large.astype(np.int64),
        centroids=np.rint(scale.unscale(V) / grid) * grid,
        sizes=round_rows(final.counts[large]),
        n_updates=state.number,
        n_coinciding=None if silent else count_coinciding_centroids(state.centroids),
    )


def cohort_members(session: LlfSession, cohort: ByteArray) -> list[str]:
    """Return the slots that are marked in a cohort, in slot order."""
    return [slot for slot, mark in zip(session.slots, cohort, strict=True) if mark]


# Functions for split columns: encodings of distances and scatter, and the sample

OTHER_INPUTS = (
    "The summed distances are out of range: the parties used different inputs."
)

MOST_ROWS: Final = 20_000
MOST_GROUPS: Final = 128
LEAST_ROWS: Final = 5
"""Minimum number of rows of a group or initial cluster, so that no mean is one row."""
_MOST_WORDS: Final = 1 << 21


def build_distance_encoding(session: LlfSession) -> FixedPoint:
    """Return the encoding of squared distances over all columns.

    A centroid is a mean of rows, at most twice a feature's limit away from any row.
    """
    limits = [
        build_scaler(session, column, None).limit
        for column in range(session.layout.n_column_groups)
    ]
    return FixedPoint.of(np.square(2.01 * np.concatenate(limits)).sum())


def subtract_first_distance(encoding: FixedPoint, total: WordArray) -> WordArray:
    """Subtract each row's first distance from its distances (n, k), to remove the shift.

    The results are signed numbers, which are exact if none exceeds 2^62.

    Raises ProtocolFailed if a difference is out of range.
    """
    words: WordArray = total - total[:, :1]
    if not encoding.fits(words):
        raise ProtocolFailed(OTHER_INPUTS)
    return words


class Sample(NamedTuple):
    """The number of sampled rows, and of groups to whose means distances are measured."""

    n_rows: int
    n_groups: int

    @property
    def groups(self) -> IntArray:
        """The group (n_rows,) of each sampled row, in the secret row order."""
        return np.arange(self.n_rows, dtype=np.int64) % self.n_groups


def choose_sample(n_rows: int, n_columns: int) -> Sample:
    """Choose the size of the sample, with one more group than columns if rows suffice."""
    rows = min(n_rows, MOST_ROWS)
    groups = max(2, min(n_columns + 1, rows // LEAST_ROWS, MOST_GROUPS))
    return Sample(min(rows, _MOST_WORDS // groups), groups)


def fewest_rows_per_start(n_rows: int, k: int) -> int:
    """Return the minimum number of rows whose mean may be one of k initial centroids."""
    return max(1, min(LEAST_ROWS, n_rows // k))


def build_scatter_encoding(session: LlfSession) -> FixedPoint:
    """Return the encoding of the two scatter sums, neither of which exceeds Σ ‖x‖²."""
    columns = range(session.layout.n_column_groups)
    limits = [build_scaler(session, column, None).square_limit for column in columns]
    return FixedPoint.of(np.concatenate(limits).sum())


def choose_session_sample(session: LlfSession) -> Sample:
    """Choose the size of the sample for a session with split columns."""
    return choose_sample(session.n_rows(session.slots[0]), sum(session.column_widths))

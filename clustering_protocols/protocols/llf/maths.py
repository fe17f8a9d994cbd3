"""The equations of the paper, in scaled units, and the closing totals.

Corcuera Bárcena et al.: eqs 1 and 2 are layouts of split rows and columns; eqs 3 and 4
:func:`.row_kernels.nearest_sums`; eq. 5 :func:`move`; eq. 6 memberships and their sums
:func:`.kernels.fuzzy_sums`; eq. 7 :func:`move`; eqs 16 and 17
:mod:`.columns_party`; eq. 18 :mod:`.columns_analyst`.

The figures describe the final labels (nearest final centroids), and equal those computed
from these labels and the pooled rows, even if the centroids are not the means of their
rows yet.
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
from clustering_protocols.numerics.round_numbers import steps_of
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
"""How far the centroid of an empty cluster is moved, in units of ``Scaler.step``."""

_ROUNDING_MARGIN = 1e-9
"""Largest rounding error of how far centroids moved, relative to the tolerance."""


def build_update_encoding(
    params: LosslessFederated, scale: Scaler, n_rows: int
) -> FixedPoint:
    """Return the encoding of an update over n_rows: sums (k, F), then weights (k,).

    Weights are counts, which are integers, or sums of degrees to the power λ.
    """
    k = params.n_clusters
    degrees = FixedPoint.of(np.full(k, float(n_rows)), EXACT_BITS)
    weights = degrees if params.fuzzy else _build_count_encoding(n_rows, k)
    sums = FixedPoint.of(np.tile(scale.sum_limit, k), EXACT_BITS)
    return FixedPoint.concatenate(sums, weights)


def build_labels_encoding(
    params: LosslessFederated, scale: Scaler, n_rows: int
) -> FixedPoint:
    """Return the encoding of sums by final label; each party rounds only its sum."""
    k = params.n_clusters
    sums = FixedPoint.of(np.tile(scale.sum_limit, k))
    return FixedPoint.concatenate(sums, _build_count_encoding(n_rows, k))


def _build_count_encoding(n_rows: int, k: int) -> FixedPoint:
    """Return the encoding of k counts that add up to n_rows."""
    return FixedPoint(bound=np.full(k, float(n_rows)), unit=np.ones(k))


def join_sums(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the numbers (k·F + k,) of an update."""
    return np.append(sums, weights)


def split_sums(numbers: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums (k, F) and weights (k,) of an update's numbers, or their units."""
    return numbers[:-k].reshape(k, -1), numbers[-k:]


def n_words_of_sums(params: LosslessFederated, width: int) -> int:
    """Return the number of words of sums and weights by cluster, with their tag."""
    return params.n_clusters * (width + 1) + 1


def check_weights(weights: FloatArray, n_rows: int, *, counts: bool = True) -> None:
    """Raise ProtocolFailed for weights (k,) that n_rows rows cannot have.

    counts: whether weights are counts, not sums of degrees.
    """
    if (weights < 0).any() or weights.sum() > n_rows * (1 + 1e-9):
        raise ProtocolFailed("A total counts more rows than the parties have.")
    if counts and weights.sum() != n_rows:
        raise ProtocolFailed("The counts of a total do not add up to the rows.")


def move_centroids(
    V: FloatArray,
    sums: FloatArray,
    weights: FloatArray,
    nudge: FloatArray,
    unit: FloatArray,
    minimum: int = 1,
) -> tuple[FloatArray, float]:
    """Return V(t) = ΣLs_c/Σn_c or ΣWS_c/Σu_c (equations 5 and 7), and how far it moved.

    It moved by ‖V(t) - V(t-1)‖_F over the clusters that have rows.

    Centroids that coincide are made equal. The centroid of an empty cluster moves by the
    nudge, which does not count as movement; a cluster of fewer rows than ``minimum``
    keeps its centroid.

    V, sums, nudge: float64 (k, F).
    weights: float64 (k,).
    unit: float64 (F,); :attr:`Scaler.step`.
    minimum: :attr:`LosslessFederated.least_rows_moved` if rows are split.
    """
    filled = weights > 0
    large = filled & ((minimum == 1) | (weights >= minimum))
    divisor = np.where(filled, weights, 1.0)[:, None]
    centroids = equalise_coordinates(np.where(large[:, None], sums / divisor, V), unit)
    moved = float(np.sqrt(np.square(centroids - V).sum()))
    return np.where(filled[:, None], centroids, centroids + nudge), moved


def public_perturbation(session: LlfSession, number: int, scale: Scaler) -> FloatArray:
    """Return the public nudges (k, m) of an update of split rows."""
    stream = session.public_stream("llf", "nudge", 0, number)  # of column group 0
    return draw_perturbation(stream, scale, session.params.n_clusters)


def perturbation_label(column: int, number: int) -> str:
    """Return the label under which a row group draws the secret nudges of an update."""
    return f"nudge/{column}/{number}"


def draw_perturbation(stream: KeyedStream, scale: Scaler, k: int) -> FloatArray:
    """Return nudges (k, m): small uniform numbers from a stream.

    Uniform numbers have the same bits in any language; the last bit of a normal number
    would depend on the library.
    """
    return PERTURBATION * scale.step * (2.0 * stream.uniform(k, scale.step.size) - 1.0)


def count_rows(session: LlfSession, slots: Sequence[str]) -> int:
    """Return how many rows these slots hold together."""
    return sum(session.n_rows(slot) for slot in slots)


def has_converged(params: LosslessFederated, moved: float | None) -> bool:
    """Return whether the centroids moved by no more than the tolerance."""
    return moved is not None and moved <= params.tol


def may_have_converged(params: LosslessFederated, moved: float | None) -> bool:
    """Return whether the centroids may have converged for the leader.

    All parties have the same centroids, but may add up movements in a different order.
    """
    return moved is not None and moved <= params.tol * (1.0 + _ROUNDING_MARGIN)


def build_figures_encoding(
    params: LosslessFederated,
    scale: Scaler,
    V: FloatArray,
    means: FloatArray,
    n_rows: int,
) -> FixedPoint:
    """Return the encoding of the sums for the figures of the final labels.

    These are sizes (k,); sums (2k + 1,) of :func:`.block_sums.of_block` around the means
    (k, F) of the labels, in scaled units; for fuzzy c-means also Σ_c Σ_i μ_ci² ‖x_i - v_c‖²
    around the centroids V (k, F), and Σ_c Σ_i μ_ci².
    """
    k, farthest = params.n_clusters, scale.bound_squared_distances(means)
    bounds = [farthest] * k + [math.sqrt(farthest)] * k + [1.0]
    if params.fuzzy:
        bounds += [scale.bound_squared_distances(V), 1.0]
    reals = FixedPoint.of(n_rows * np.array(bounds))
    return FixedPoint.concatenate(_build_count_encoding(n_rows, k), reals)


def n_words_of_figures(params: LosslessFederated) -> int:
    """Return the number of words of a share of the sums for figures, with its tag."""
    return 3 * params.n_clusters + 2 + 2 * params.fuzzy


def read_sizes_and_figures(
    params: LosslessFederated,
    state: messages.Centroids,
    means: FloatArray,
    total: FloatArray,
    n_rows: int,
) -> tuple[messages.FinalSizes, Figures]:
    """Return the sizes and figures of the clusters with these means (k, F).

    total: numbers of :func:`figures_encoding` over members with n_rows together.

    Raises ProtocolFailed if n_rows rows cannot have these sums.
    """
    k = params.n_clusters
    negative = (np.delete(total, 3 * k) < 0).any()  # only silhouettes may be
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
    sizes: IntArray,
) -> messages.PublishedResult:
    """Return the published part of clusters that are large enough, rounded.

    Centroids are the means of the final labels (fuzzy: those of the last update), in
    round steps of at least max(1/20, 5/n) spreads for a cluster of n rows (or declared
    ranges, if these are the unit), and sizes in multiples of five: the difference of two
    sessions then discloses less of a single row than the mean of all rows does.
    """
    params = session.params
    silent = params.publish == "nothing"
    large = np.flatnonzero(sizes >= params.min_cluster_rows)
    if silent:
        large = large[:0]
    with_centroid = large if params.publish == "centroids" else large[:0]
    V = (state.centroids if params.fuzzy else final.means)[with_centroid]
    slot = session.layout.column_group(0)[0]
    grid = steps_of(
        final.counts[with_centroid],
        (scale.step * session.weights(slot, scale.step.size) / scale.inverse),
    )
    return messages.PublishedResult(
        clusters=large.astype(np.int64),
        centroids=np.rint(scale.unscale(V) / grid) * grid,
        sizes=np.maximum(5 * np.rint(sizes[large] / 5), 5).astype(np.int64),
        n_updates=state.number,
        n_coinciding=None if silent else count_coinciding_centroids(state.centroids),
    )


def cohort_members(session: LlfSession, cohort: ByteArray) -> list[str]:
    """Return the slots of a cohort, in slot order."""
    return [slot for slot, mark in zip(session.slots, cohort, strict=True) if mark]


def draw_cohort(session: LlfSession, available: ByteArray, number: int) -> ByteArray:
    """Return the cohort of an update: available slots, as many as a share γ of all."""
    params, candidates = session.params, np.flatnonzero(available)
    size = max(
        params.least_parties, math.ceil(params.participation * len(session.slots))
    )
    if size >= len(candidates):
        return available
    order = session.public_stream("llf", "cohort", number).permutation(len(candidates))
    cohort = np.zeros_like(available)
    cohort[candidates[order[:size]]] = 1
    return cohort


# Split columns: encodings of distances and scatter, and the sample of rows

OTHER_INPUTS = (
    "The summed distances are out of range: the parties used different inputs."
)

MOST_ROWS: Final = 20_000
MOST_GROUPS: Final = 128
LEAST_ROWS: Final = 5
"""Fewest rows of a group, and of a cluster to start from, so that no mean is a row."""
_MOST_WORDS: Final = 1 << 21


def build_distance_encoding(session: LlfSession) -> FixedPoint:
    """Return the encoding of squared distances over all columns.

    A centroid is a mean of rows, so no distance exceeds twice the limit of a feature.
    """
    limits = [
        build_scaler(session, column, None).limit
        for column in range(session.layout.n_column_groups)
    ]
    return FixedPoint.of(np.square(2.01 * np.concatenate(limits)).sum())


def subtract_first_distance(encoding: FixedPoint, total: WordArray) -> WordArray:
    """Return distances (n, k) less the first one of their row, which removes the shift.

    Read as signed numbers, the differences are exact as long as none exceeds 2^62.

    Raises ProtocolFailed if they are out of range.
    """
    words: WordArray = total - total[:, :1]
    if not encoding.fits(words):
        raise ProtocolFailed(OTHER_INPUTS)
    return words


class Sample(NamedTuple):
    """Numbers of sampled rows, and of the groups from whose means they are measured."""

    n_rows: int
    n_groups: int

    @property
    def groups(self) -> IntArray:
        """Return the group (n_rows,) of each row, in the secret order."""
        return np.arange(self.n_rows, dtype=np.int64) % self.n_groups


def choose_sample(n_rows: int, n_columns: int) -> Sample:
    """Return the sample of a table: one group more than columns, if rows suffice."""
    rows = min(n_rows, MOST_ROWS)
    groups = max(2, min(n_columns + 1, rows // LEAST_ROWS, MOST_GROUPS))
    return Sample(min(rows, _MOST_WORDS // groups), groups)


def fewest_rows_per_start(n_rows: int, k: int) -> int:
    """Return the fewest rows from whose mean each of k clusters may start."""
    return max(1, min(LEAST_ROWS, n_rows // k))


def hard_labels(task: messages.MeasureDistances) -> IntArray:
    """Return the labels in an update's task; fuzzy: those of the largest memberships."""
    if not len(task.memberships):
        return task.labels
    labels: IntArray = np.argmax(task.memberships, axis=1).astype(np.int64)
    return labels


def build_scatter_encoding(session: LlfSession) -> FixedPoint:
    """Return the encoding of the two sums of scatter, which are at most Σ ‖x‖²."""
    columns = range(session.layout.n_column_groups)
    limits = [build_scaler(session, column, None).square_limit for column in columns]
    return FixedPoint.of(np.concatenate(limits).sum())


def choose_session_sample(session: LlfSession) -> Sample:
    """Return the sample of a session's joint rows."""
    return choose_sample(session.n_rows(session.slots[0]), sum(session.column_widths))

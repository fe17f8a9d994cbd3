"""A party's role: its private map f_ij (equations 5, 6), the self-check, the upload.

The self-check is the known-anchor attack. In this attack, a colluding party of the
column group gives its anchors to the analyst, who regresses the inputs of f_ij on its
outputs and applies the regression to the reduced rows. Each party runs the attack on
its own upload before it sends anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from threadpoolctl import threadpool_limits

from clustering_protocols.algorithms.kmeans import nearest_centroids
from clustering_protocols.algorithms.lloyd import TIE
from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.common.limits import build_grouping_note
from clustering_protocols.contract import Outcome, PartyRole, Placement, Reply
from clustering_protocols.numerics.data_source import (
    DataSource,
    check_column_count,
    matrix,
)
from clustering_protocols.numerics.moments import Moments, measure_moments
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_stream
from clustering_protocols.shared_stages.statistics.moments import recall_moments
from clustering_protocols.shared_stages.statistics.ranges import PooledRanges
from clustering_protocols.terms.preparation import Ranges

from . import anchors, maths, messages
from .params import LEAST_WIDTH, DataCollaboration, DcContext, count_session_anchors


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMap:
    """A private map f_ij, fitted to the party's rows.

    function: maps rows (n, m) to images (n, width).
    width: number of dimensions that are sent.
    rank: number of dimensions of the data.
    scale: float64 (m,); each column is divided by its entry before the reduction.
    left_out: fraction of the variance in dimensions that are not sent; NaN for the
        party's own transformer.
    """

    function: maths.RowFunction
    width: int
    rank: int
    scale: FloatArray
    left_out: float = math.nan


def fit(
    context: DcContext, params: DataCollaboration, own: Moments, data: DataSource
) -> FittedMap:
    """Fit the private map f_ij to a party's rows, of which ``own`` are the moments.

    Raises GuardRefused if a dimension must be dropped but the data have only one, or
    if the party's own transformer returns as many dimensions as the data have, or more.
    """
    offset, scale = _find_offset_and_scale(context, params, own)
    R = maths.triangular_factor(data, own.mean, scale)
    shift = float(np.linalg.norm(own.mean / scale))
    axes, rank = maths.principal_axes(R, data.n_rows, shift)
    full_width = context.choices.get("allow_full_width")
    if params.drops_one_dimension and rank == 1 and not full_width:
        raise GuardRefused(
            "The data have one dimension: whatever the map, they would be sent as they "
            "are; the choice 'allow_full_width' overrides this."
        )
    if "transformer" in context.choices:
        return _fit_own_transformer(context, data, rank)
    width = len(own.mean)
    if params.drops_one_dimension:
        width = maths.reduced_width(rank, data.n_rows)
    rotation = context.lasting_stream("rotation").rotation(width)
    if not params.drops_one_dimension:
        # All columns are rotated, even if the rank is smaller: anchors vary in all
        # columns, and parties would otherwise lose different parts of them.
        axes = np.eye(width)
    axes = axes[:, :width]
    linear = messages.KeptMap(offset=offset, scale=scale, axes=axes @ rotation)
    total = np.square(R).sum() or 1.0
    explained = np.square(R @ axes).sum()
    left_out = max(0.0, 1.0 - float(explained / total))
    return FittedMap(
        function=linear, width=width, rank=rank, scale=scale, left_out=left_out
    )


def _fit_own_transformer(context: DcContext, data: DataSource, rank: int) -> FittedMap:
    """Return the map of the party's own transformer, which takes unscaled rows."""
    transform = context.choices["transformer"].transform

    def images(X: FloatArray) -> FloatArray:
        return np.asarray(transform(X), dtype=np.float64).reshape(len(X), -1)

    width = images(next(iter(data.batches()))[:1]).shape[1]
    if width > len(data.columns):
        raise GuardRefused(
            f"The transformer makes {width} dimensions from {len(data.columns)} features; "
            "the analyst accepts no more dimensions than features."
        )
    if width >= max(rank, 2) and not context.choices.get("allow_full_width"):
        raise GuardRefused(
            f"The transformer sends {width} of {rank} dimensions and drops none; "
            "the choice 'allow_full_width' overrides this."
        )
    rotation = context.lasting_stream("rotation").rotation(width)
    return FittedMap(
        function=lambda X: images(X) @ rotation,
        width=width,
        rank=rank,
        scale=np.ones(len(data.columns)),
    )


def _find_offset_and_scale(
    context: DcContext, params: DataCollaboration, own: Moments
) -> tuple[FloatArray, FloatArray]:
    ones = np.ones_like(own.mean)
    if params.scaling == "none":
        return np.zeros_like(own.mean), ones
    if params.scaling == "center":
        return own.mean, ones
    shared = params.scaling == "shared"
    moments = recall_moments(context, lambda: own) if shared else own
    return moments.mean, context.session.units(context.slot.name, moments.spread)


_CLOSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildScore:
    """Measures of how well the attack reconstructs a party's rows.

    largest_r2, median_r2: the largest and the median, over the features that vary, of
        the fraction of a feature's variance that is reconstructed.
    close_rows: fraction of rows whose error is at most a tenth of their distance from
        the mean, in standardised units.
    close_values: fraction of rows whose error in one feature is at most a tenth of that
        feature's standard deviation, for the feature with the largest such fraction.
    """

    largest_r2: float
    median_r2: float
    close_rows: float
    close_values: float

    @property
    def worst(self) -> float:
        """Return the larger of ``close_rows`` and ``close_values``."""
        return max(self.close_rows, self.close_values)

    @property
    def wording(self) -> str:
        """Return close_rows and close_values as part of a sentence."""
        return (
            f"{self.close_rows:.1%} of your rows within 10 %, and one feature within 10 % "
            f"in {self.close_values:.1%} of all your rows"
        )

    def notes(self) -> dict[str, Any]:
        """Return the scores with their titles, to be shown to the operator."""
        return {
            "self-check": "what an analyst with one party of your column group rebuilds",
            "  features, largest R²": self.largest_r2,
            "  features, median R²": self.median_r2,
            "  rows within 10 %, share": self.close_rows,
            "  best feature within 10 %, share": self.close_values,
        }


def rebuild(anchors: FloatArray, images: FloatArray, rows: FloatArray) -> FloatArray:
    """Run the attack: return a guess (n, m) of rows, given their images (n, width).

    anchors: float64 (r, m).
    images: float64 (r, width); images of the anchors under the private map.
    rows: float64 (n, width); images of the rows.
    """
    image_mean, anchor_mean = images.mean(axis=0), anchors.mean(axis=0)
    B = maths.least_squares(images - image_mean, anchors - anchor_mean)
    guess: FloatArray = anchor_mean + (rows - image_mean) @ B
    return guess


def score(X: FloatArray, guess: FloatArray) -> RebuildScore:
    """Measure how closely a guess (n, m) matches the rows X (n, m)."""
    spread = X.std(axis=0)
    varies = spread > 0
    Z = (X - X.mean(axis=0))[:, varies] / spread[varies]
    error = (guess - X)[:, varies] / spread[varies]
    r2 = 1.0 - np.mean(np.square(error), axis=0)
    close = np.linalg.norm(error, axis=1) <= _CLOSE * np.linalg.norm(Z, axis=1)
    return RebuildScore(
        largest_r2=float(r2.max(initial=0.0)),
        median_r2=float(np.median(r2)) if r2.size else 0.0,
        close_rows=float(np.mean(close)),
        close_values=float((np.abs(error) <= _CLOSE).mean(axis=0).max(initial=0.0)),
    )


_LIMIT: Final = 0.5  # above this fraction, the operator must confirm an upload with dimensions 'all'


def compare(
    context: DcContext,
    data: DataSource,
    X_anc: FloatArray,
    upload: FittedMap,
    rebuilt: RebuildScore,
) -> tuple[dict[str, str], str]:
    """Compare this upload with one under the other setting of ``dimensions``.

    Returns notes for the operator, and a question that the operator must answer before
    the upload; the question is empty if there is nothing to ask.

    X_anc: float64 (r, m); the anchors.
    upload, rebuilt: the map used for this upload, and the score of the attack on it.
    """
    params = context.session.params
    if "transformer" in context.choices:
        return {}, ""  # ``dimensions`` has no effect on the party's own transformer
    attack = (
        f"an analyst with one party of your column group rebuilds {rebuilt.wording}"
    )
    if params.drops_one_dimension:
        if upload.width >= upload.rank:
            return {}, ""  # one-dimensional data, whose upload the operator has allowed
        note = (
            f"one dimension (dimensions 'all_but_one'), {upload.left_out:.1%} of the "
            f"variance of your rows: {attack}; with 'all' it would be every row."
        )
        return {"  left out": note}, ""
    fewer = _rebuild_with_one_dimension_less(context, data, X_anc)
    other = (
        f"with 'all_but_one' it would be {fewer.wording}"
        if fewer
        else "with 'all_but_one' such data would be refused: they have one dimension"
    )
    notes = {"  left out": f"nothing (dimensions 'all'): {attack}; {other}."}
    if rebuilt.worst <= _LIMIT or "rebuild_limit" in context.choices:
        return notes, ""
    question = (
        f"The terms drop no dimension: {attack}; {other}. Nothing was sent yet. "
        "To send it, run again with --choice rebuild_limit=1."
    )
    return notes, question


def _rebuild_with_one_dimension_less(
    context: DcContext, data: DataSource, X_anc: FloatArray
) -> RebuildScore | None:
    """Score the attack on an upload with one fewer dimension, or None if none remains."""
    if len(data.columns) < LEAST_WIDTH:
        return None
    all_but_one = {"dimensions": "all_but_one"}
    params = context.session.params.model_copy(update=all_but_one)
    try:
        f = fit(context, params, measure_moments(data), data).function
    except GuardRefused:
        return None
    rows = maths.map_rows(f, data)
    return score(matrix(data), rebuild(X_anc, f(X_anc), rows))


class Projector(
    PartyRole[DataCollaboration, messages.Project, Record, messages.RowGroupLabels]
):
    """Sends the projections X̃_ij and X̃^anc_ij in a single round, and receives labels.

    The operator's choices are ``transformer`` (a fitted scikit-learn transformer of the
    party's own), ``allow_full_width`` and ``rebuild_limit``. ``rebuild_limit`` is the
    largest acceptable fraction of rows that the self-check reconstructs to within 10 %,
    either whole or in one feature. If no limit is set and ``dimensions`` is ``all``,
    the operator must confirm a fraction above one half.
    """

    def reply(
        self, context: DcContext, task: messages.Project, data: DataSource
    ) -> Reply:
        """Return the projections; rows are in the row group's secret order."""
        if context.memory.get(messages.Reduction) is not None:
            raise ProtocolFailed("The analyst asks for a second upload.")
        params = context.session.params
        # one thread, because the last bits depend on how BLAS divides work among threads,
        # and because several threads wait for each other longer than they compute
        with threadpool_limits(1, "blas"):
            own = measure_moments(data)
            f_ij = fit(context, params, own, data)
            X_anc = _anchors(context, params, own)
            rows, images = maths.map_rows(f_ij.function, data), f_ij.function(X_anc)
            rebuilt = score(matrix(data), rebuild(X_anc, images, rows))
            limit = context.choices.get("rebuild_limit")
            if limit is not None and rebuilt.worst > float(limit):
                raise GuardRefused(
                    f"The self-check rebuilds {rebuilt.wording}; 'rebuild_limit' is "
                    f"{float(limit):.1%}."
                )
            notes, question = compare(context, data, X_anc, f_ij, rebuilt)
            dominant = dominance.check_dominance(
                context,
                data.columns,
                lambda: (batch / f_ij.scale for batch in data.batches()),
            )
        order = context.recall(RowOrder).order
        return Reply(
            contribution=messages.Projections(rows=rows[order], anchors=images),
            remember=[
                messages.Reduction(width=f_ij.width, rank=f_ij.rank),
                *([_linear_map(f_ij)] if params.predictor else []),
            ],
            notes={
                **rebuilt.notes(),
                **notes,
                **dominant.notes,
                **_one_dimension_warning(f_ij.rank),
            },
            asks=" ".join(filter(None, (question, dominant.asks))),
        )

    def conclude(
        self,
        context: DcContext,
        result: messages.RowGroupLabels,
        data: DataSource | None,
    ) -> Outcome:
        """Return the labels in the order of the rows in the party's table."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        outcome = Outcome(
            labels=order.restore_own_order(result.labels),
            cluster_sizes=result.cluster_sizes,
            report=_report(context),
        )
        if not isinstance(result, messages.RowGroupModel):
            return outcome
        coordinates = None
        if len(result.coordinates):
            _check_nearest(result)
            coordinates = order.restore_own_order(result.coordinates)
        f_ij = context.memory.get(messages.KeptMap)
        return replace(
            outcome,
            centroids=result.centroids,
            coordinates=coordinates,
            predict=None if f_ij is None else partial(_label_new_rows, f_ij, result),
        )


def _label_new_rows(
    f_ij: messages.KeptMap, model: messages.RowGroupModel, data: DataSource
) -> Placement:
    """Label new rows locally: apply f_ij and g_i, and choose the nearest centroid."""
    check_column_count(data, len(f_ij.offset))
    Z = maths.map_rows(f_ij, data) @ model.map_matrix + model.map_offset
    squares = squared_distances(Z, model.centroids)
    # a tie goes to the lower-numbered centroid, as in the session
    return Placement(labels=squares.argmin(axis=1), distances=np.sqrt(squares))


def _anchors(context: DcContext, params: DataCollaboration, own: Moments) -> FloatArray:
    n_rows = count_session_anchors(context.session)
    stream = group_stream(context, "column", "anchors")
    if params.anchor.kind != "uniform":
        return anchors.draw(
            params, n_rows, recall_moments(context, lambda: own), stream
        )
    if params.anchor.ranges == "declared":
        ranges = context.session.bounds(context.slot.name)
    else:
        pooled = context.recall(PooledRanges)
        ranges = Ranges(pooled.minimum, pooled.maximum)
    return anchors.uniform(ranges, n_rows, stream)


def _linear_map(f_ij: FittedMap) -> messages.KeptMap:
    if not isinstance(f_ij.function, messages.KeptMap):
        raise GuardRefused(
            "The terms ask for a predictor, which needs a linear reduction, but this "
            "party uses its own transformer."
        )
    return f_ij.function


def _check_nearest(model: messages.RowGroupModel) -> None:
    """Raise ProtocolFailed if a row does not have the label of its nearest centroid.

    The analyst ignores small differences of squared distances, in units of the spread
    of all rows (:mod:`clustering_protocols.algorithms.lloyd`). The party knows only its
    own rows, so it allows ten times as much, in units of the squared diagonal of the
    box around these rows and the centroids.
    """
    labels = nearest_centroids(model.coordinates, model.centroids)
    rows = np.flatnonzero(labels != model.labels)
    squares = squared_distances(model.coordinates[rows], model.centroids)
    at = np.arange(len(rows))
    excess = squares[at, model.labels[rows]] - squares[at, labels[rows]]
    box = np.ptp(np.vstack([model.coordinates, model.centroids]), axis=0)
    if (excess > 10 * TIE * np.square(box).sum()).any():
        raise ProtocolFailed("The labels are not those of the nearest centroids.")


def _one_dimension_warning(rank: int) -> dict[str, object]:
    if rank > 1:
        return {}
    return {"warning": "The data have one dimension: it is sent up to shift and scale."}


def _report(context: DcContext) -> dict[str, object]:
    reduction = context.recall(messages.Reduction)
    report: dict[str, object] = {
        "dimensions sent": reduction.width,
        "dimensions of the data": reduction.rank,
    }
    report |= _one_dimension_warning(reduction.rank)
    if not context.session.layout.is_regular:
        report["ragged lattice"] = (
            "Row groups that lack columns stand at the anchors' mean there: distances "
            "between row groups with different columns are not kept."
        )
    n_rows = sum(context.session.row_counts)
    if context.session.params.samples_rows(n_rows):
        report |= build_grouping_note(n_rows)
    return report

"""The party role: reduce the rows and the anchors by a private map, send both."""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.common.errors import GuardRefused, InvalidData, ProtocolFailed
from clustering_protocols.common.limits import told_of_groups
from clustering_protocols.contract import Outcome, PartyRole, Placement, Reply
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_stream
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from clustering_protocols.terms.preparation import Ranges

from . import (
    anchors,
    dimension_checks,
    kernels,
    layouts,
    messages,
    private_map,
    selfcheck,
)
from .params import DataCollaboration, DcContext
from .shared_anchors import AnchorRows


class Projector(
    PartyRole[DataCollaboration, messages.Project, Record, messages.RowGroupLabels]
):
    """One round: X̃_ij and X̃^anc_ij out, labels back.

    Knows the choices ``transformer`` (a fitted scikit-learn transformer of the party's
    own), ``allow_full_width`` and ``rebuild_limit`` (the largest share of rows that the
    self-check may find rebuilt within 10 %, or of which it may so find some one feature;
    under ``dimensions: all`` the operator is asked above a half, unless there is one).
    """

    def reply(
        self, context: DcContext, task: messages.Project, data: DataSource
    ) -> Reply:
        """Return the projections, rows in the row group's secret order."""
        if context.memory.get(messages.Reduction) is not None:
            raise ProtocolFailed("The analyst asks for a second upload.")
        params = context.session.params
        fitted = private_map.fit(context, params, data)
        drawn = _anchors(context, params)
        rows, images = fitted.function.rows(data), fitted.function(drawn)
        rebuilt = selfcheck.score(matrix(data), selfcheck.rebuild(drawn, images, rows))
        _check_limit(context, rebuilt)
        compared = dimension_checks.compare(context, data, drawn, fitted, rebuilt)
        asked = dominance.check(
            context,
            data.columns,
            lambda: (batch / fitted.scale for batch in data.batches()),
        )
        order = context.recall(RowOrder).order
        return Reply(
            contribution=messages.Projections(rows=rows[order], anchors=images),
            remember=[
                messages.Reduction(width=fitted.width, rank=fitted.rank),
                *(_kept_map(fitted) if params.predictor else []),
            ],
            notes={
                **rebuilt.notes(),
                **compared.notes,
                **asked.notes,
                **_one_dimension(fitted.rank),
            },
            asks=" ".join(filter(None, (compared.asks, asked.asks))),
        )

    def conclude(
        self,
        context: DcContext,
        result: messages.RowGroupLabels,
        data: DataSource | None,
    ) -> Outcome:
        """Return the labels in the order of the party's own rows."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        report = _report(context)
        if not isinstance(result, messages.RowGroupModel):
            return Outcome(
                labels=order.restore(result.labels),
                cluster_sizes=result.cluster_sizes,
                report=report,
            )
        coordinates = None
        if len(result.coordinates):
            _check_nearest(result)
            coordinates = order.restore(result.coordinates)
        kept = context.memory.get(messages.KeptMap)
        return Outcome(
            labels=order.restore(result.labels),
            cluster_sizes=result.cluster_sizes,
            centroids=result.centroids,
            coordinates=coordinates,
            predict=None if kept is None else _Predictor(kept, result),
            report=report,
        )


class _Predictor:
    """Places new rows at home: f_ij, then g_i, then the distances to the centroids."""

    def __init__(self, kept: messages.KeptMap, model: messages.RowGroupModel) -> None:
        self._map = kernels.Affine(offset=kept.offset, scale=kept.scale, F=kept.axes)
        self._model = model

    def __call__(self, data: DataSource) -> Placement:
        """Return where new rows with the same columns are."""
        if len(data.columns) != len(self._map.offset):
            raise InvalidData(
                f"{len(data.columns)} columns; the session had {len(self._map.offset)}."
            )
        Z = self._map.rows(data) @ self._model.map_matrix + self._model.map_offset
        squares = squared_distances(Z, self._model.centroids)
        # of equals the centre of the lowest number, as in the session
        return Placement(labels=squares.argmin(axis=1), distances=np.sqrt(squares))


def _anchors(context: DcContext, params: DataCollaboration) -> FloatArray:
    if params.synthesises_anchors:
        return context.recall(AnchorRows).rows
    n_rows = layouts.n_anchors(context.session)
    stream = group_stream(context, "column", "anchors")
    if params.anchor.kind == "uniform":
        return anchors.uniform(_ranges(context, params), n_rows, stream)
    return anchors.draw(params, n_rows, context.recall(PooledMoments), stream)


def _ranges(context: DcContext, params: DataCollaboration) -> Ranges:
    """Return the ranges of the features, as the dictionary or all parties have them."""
    if params.anchor.ranges == "declared":
        return context.session.bounds(context.slot.name)
    pooled = context.recall(PooledMoments)
    return Ranges(pooled.minimum, pooled.maximum)


def _check_limit(context: DcContext, rebuilt: selfcheck.Rebuilt) -> None:
    limit = context.choices.get("rebuild_limit")
    if limit is not None and rebuilt.worst > float(limit):
        raise GuardRefused(
            f"The self-check rebuilds {rebuilt.sentence}; 'rebuild_limit' is "
            f"{float(limit):.1%}."
        )


def _kept_map(fitted: private_map.FittedMap) -> list[Record]:
    if not isinstance(fitted.function, kernels.Affine):
        raise GuardRefused(
            "The terms ask for a predictor, which needs a linear reduction; this party "
            "brought a transformer of its own."
        )
    f = fitted.function
    return [messages.KeptMap(offset=f.offset, scale=f.scale, axes=f.F)]


def _check_nearest(given: messages.RowGroupModel) -> None:
    """Refuse labels that are not those of the nearest centroids."""
    found = nearest(given.coordinates, given.centroids)
    for other in np.flatnonzero(found != given.labels):
        away = given.coordinates[other] - given.centroids
        distances = np.linalg.norm(away, axis=1)
        if distances[given.labels[other]] > distances[found[other]] * (1 + 1e-9):
            raise ProtocolFailed("The labels are not those of the nearest centroids.")


def _one_dimension(rank: int) -> dict[str, object]:
    """Return the warning that such data bring."""
    if rank > 1:
        return {}
    return {"warning": "The data have one dimension: it is sent up to shift and scale."}


def _report(context: DcContext) -> dict[str, object]:
    reduction = context.recall(messages.Reduction)
    report: dict[str, object] = {
        "dimensions sent": reduction.width,
        "dimensions of the data": reduction.rank,
    }
    report |= _one_dimension(reduction.rank)
    if not context.session.layout.regular:
        report["ragged lattice"] = (
            "Row groups that lack columns stand at the anchors' mean there: distances "
            "between row groups with different columns are not kept."
        )
    n_rows = sum(context.session.row_counts)
    if context.session.params.samples_rows(n_rows):
        report |= told_of_groups(n_rows)
    return report

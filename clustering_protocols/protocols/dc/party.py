"""The party role: reduce the rows and the anchors by a private map, send both."""

from __future__ import annotations

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import Outcome, PartyRole, Reply, View
from clustering_protocols.data import DataSource
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.preparation.secrets import group_stream
from clustering_protocols.preparation.statistics import PooledMoments, measure
from clustering_protocols.records import Record

from . import anchors, kernels, messages
from .params import DataCollaboration


class Projector(PartyRole):
    """One round: X̃_ij and X̃^anc_ij out, labels back."""

    def reply(self, view: View, task: Record, data: DataSource) -> Reply:
        """Return the projections, rows in the row group's secret order."""
        n_anchors = messages.Project.narrow(task).n_anchors
        params = DataCollaboration.model_validate(view.plan.params)
        reduce, rank = _fit(view, params, data)
        drawn = anchors.draw(
            params.anchor,
            n_anchors,
            moments_of(view, params),
            group_stream(view, "column", "anchors"),
        )
        order = view.recall(RowOrder).order
        return Reply(
            contribution=messages.Projections(
                rows=reduce.rows(data)[order], anchors=reduce(drawn)
            ),
            remember=[messages.Reduction(width=reduce.F.shape[1], rank=rank)],
        )

    def conclude(self, view: View, result: Record) -> Outcome:
        """Return the labels in the order of the party's own rows."""
        given = messages.RowGroupLabels.narrow(result)
        order = view.recall(RowOrder).order
        labels = np.empty_like(given.labels)
        labels[order] = given.labels
        return Outcome(
            labels=labels,
            cluster_sizes=given.cluster_sizes,
            report=_report(view.recall(messages.Reduction)),
        )


def moments_of(view: View, params: DataCollaboration) -> PooledMoments:
    """Return the column group's statistics, declared or pooled."""
    if params.features is None:
        return view.recall(PooledMoments)
    declared = params.features[view.slot.column]
    return PooledMoments(
        n_rows=1,
        mean=np.array([feature.mean for feature in declared]),
        deviations=np.array([feature.spread**2 for feature in declared]),
        minimum=np.array([feature.minimum for feature in declared]),
        maximum=np.array([feature.maximum for feature in declared]),
    )


def _fit(
    view: View, params: DataCollaboration, data: DataSource
) -> tuple[kernels.Affine, int]:
    """Return f_ij and the rank of the data that it reduces by one."""
    own = measure(data, moments=True, ranges=False)
    own_spread = np.sqrt(own.deviations / own.n_rows)
    offset, scale = _scaling(view, params, own.mean, own_spread)
    R = kernels.triangular_factor(data, own.mean, scale)
    axes, rank = kernels.principal_axes(R, data.n_rows)
    width = kernels.reduced_width(rank, data.n_rows)
    rotation = view.stream("rotation").rotation(width)
    return kernels.Affine(
        offset=offset, scale=scale, F=axes[:, :width] @ rotation
    ), rank


def _scaling(
    view: View, params: DataCollaboration, mean: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return offset and scale of the features (PROTOCOLS: ``scaling``)."""
    ones = np.ones_like(mean)
    if params.scaling == "none":
        return np.zeros_like(mean), ones
    if params.scaling == "center":
        return mean, ones
    if params.scaling == "local":
        return mean, kernels.spread_or_one(spread)
    shared = moments_of(view, params)
    return shared.mean, kernels.spread_or_one(shared.spread)


def _report(reduction: messages.Reduction) -> dict[str, object]:
    report: dict[str, object] = {
        "dimensions sent": reduction.width,
        "dimensions of the data": reduction.rank,
    }
    if reduction.rank <= 1:
        report["warning"] = (
            "The data have one dimension: it was sent up to sign, shift and scale."
        )
    return report

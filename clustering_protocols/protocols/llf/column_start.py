"""Stage for split columns: agree on a start without a row that the analyst can name.

| round | task → contribution |
|---|---|
| 1 | `measure-groups` → `group-distances` |
| 2 | `start-from` → `confirmed` |

The first rows that travel, in their secret order, are dealt out to groups. Parties measure
these rows to the means of the groups, shifted alike in each row and masked as in every
update. The analyst clusters what it reads and tells the clusters; each starts from the
mean of its rows, of which parties see to it that there are five.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    PartyRole,
    Reopen,
    Reply,
    all_of,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_all
from clustering_protocols.shared_stages.alignment.digests import RowOrder

from . import kernels, messages, starts
from .column_distances import build_distance_encoding, check_first, hide, subtract_first
from .column_sample import Sample, least_rows, sample_of
from .features import scaler_of
from .params import LlfContext, LlfSession, LosslessFederated

_Task = messages.MeasureGroups | messages.StartFrom


class ColumnStartAnalyst(AnalystRole[LosslessFederated, Record]):
    """Clusters some rows, of which it reads differences of distances."""

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask for the distances to the means of the groups."""
        n_rows, n_groups = _sample_of_session(session)
        dims = {slot: {"n": n_rows, "groups": n_groups} for slot in session.slots}
        return Ask.everybody(session, messages.MeasureGroups(), dims=dims)

    def step(
        self, session: LlfSession, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Reopen | Finish:
        """Tell the clusters to start from, or finish."""
        if isinstance(next(iter(contributions.values())), messages.StartKept):
            return Finish()
        from . import column_geometry  # not above: a party needs no k-means

        given = all_of(messages.GroupDistances, contributions)
        total = add_all(each.words for each in given.values())
        encoding = build_distance_encoding(session)
        differences = encoding.decode(subtract_first(encoding, total))
        groups = _sample_of_session(session).groups
        Y = column_geometry.rows_from_differences(
            differences, groups, 1.0 / float(encoding.unit)
        )
        rng = session.generator("llf", "column-start")
        labels = column_geometry.partition(Y, session.params.n_clusters, rng)
        return Ask.everybody(session, messages.StartFrom(labels=labels))


class ColumnStartParty(PartyRole[LosslessFederated, _Task, Record, Record]):
    """Measures some rows to means of groups; keeps the means of clusters of them."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Return masked squared distances, or keep the start."""
        sample = _sample_of_session(context.session)
        k = context.session.params.n_clusters
        if isinstance(task, messages.StartFrom):
            _check_clusters(task.labels, sample, k)
            V = _means(_scale_sample(context, data, sample), task.labels, k)
            kept = messages.StartCentroids(centroids=V)
            return Reply(contribution=messages.StartKept(), remember=[kept])
        scale = scaler_of(context)
        asked = check_first(context, data, scale)
        starts.check_enough_rows(data, k)
        rows = starts.take(data, _own_numbers(context, sample))
        V = _means(scale(rows), sample.groups, sample.n_groups)
        words = np.empty(sample, dtype=np.uint64)
        places = np.arange(sample.n_rows)
        unit = float(build_distance_encoding(context.session).unit)
        kernels.distance_units(rows, *scale.affine, V, unit, places, words)
        hide(context, words, "groups", shifted=True)
        return Reply(
            contribution=messages.GroupDistances(words=words),
            notes=asked.notes,
            asks=asked.asks,
        )


def _sample_of_session(session: LlfSession) -> Sample:
    return sample_of(session.n_rows(session.slots[0]), sum(session.column_widths))


def _own_numbers(context: LlfContext, sample: Sample) -> IntArray:
    """Return the numbers of the party's own rows that are measured."""
    return context.recall(RowOrder).order[: sample.n_rows]


def _scale_sample(context: LlfContext, data: DataSource, sample: Sample) -> FloatArray:
    rows = starts.take(data, _own_numbers(context, sample))
    return scaler_of(context)(rows)


def _check_clusters(labels: IntArray, sample: Sample, k: int) -> None:
    """Refuse clusters from which no start follows, or one whose centre may be a row."""
    if len(labels) != sample.n_rows or labels.max() >= k:
        raise ProtocolFailed("The analyst names clusters of other rows to start from.")
    if np.bincount(labels, minlength=k).min() < least_rows(sample.n_rows, k):
        raise ProtocolFailed(
            "The analyst starts a cluster from the mean of too few rows."
        )


def _means(rows: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Return the mean (k, m) of the rows of each label."""
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.bincount(labels, minlength=k)[:, None]

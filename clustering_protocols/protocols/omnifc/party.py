"""The party role of the last stage: distances between shares out, labels back."""

from __future__ import annotations

from typing import Any

import numpy as np

from clustering_protocols.common.limits import told_of_groups
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import RowOrder

from . import lagrange, landmarks, messages, rosters, zero_sum
from .distances import field_distances
from .params import OmniContext, OmniFC


class Comparer(PartyRole[OmniFC, messages.Compare, Record, messages.RowGroupLabels]):
    """One round: w_j D^(j) + μ_j, or D^(j), out; labels back."""

    def reply(
        self, context: OmniContext, task: messages.Compare, data: DataSource
    ) -> Reply:
        """Return the condensed distances between this party's shares of all rows.

        With landmarks the rows of these come first, and theirs alone are the distances.
        """
        params = context.session.params
        held = context.recall(messages.HeldShares)
        if params.distances == "landmarks":
            ours = landmarks.shares(context, held.bits)
            both = np.concatenate([ours, held.shares])
            distances = field_distances(both, context.engine, first=len(ours))
        else:
            distances = field_distances(held.shares, context.engine)
        if params.hide_segments:
            streams = zero_sum.pairwise_streams(context)
            zero_sum.hide(distances, _weight(context), streams)
        return Reply(
            contribution=messages.EncodedDistances(bits=held.bits, distances=distances)
        )

    def conclude(
        self,
        context: OmniContext,
        result: messages.RowGroupLabels,
        data: DataSource | None,
    ) -> Outcome:
        """Return the labels in the order of the party's own rows."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        report: dict[str, Any] = {
            "binary digits after the point": context.recall(messages.OwnShares).bits
        }
        n_rows = rosters.n_rows(context.session)
        if context.session.params.samples_rows(n_rows):
            report |= told_of_groups(n_rows)
        memberships = None
        if isinstance(result, messages.RowGroupMemberships):
            memberships = order.restore(result.memberships)
            report["n_coinciding"] = result.n_coinciding
        return Outcome(
            labels=order.restore(result.labels),
            cluster_sizes=result.cluster_sizes,
            memberships=memberships,
            report=report,
        )


def _weight(context: OmniContext) -> int:
    """Return w_j, where all parties are interpolation nodes."""
    session = context.session
    points = lagrange.share_points(len(session.slots))
    weights = lagrange.build_decoding_weights(session.params.segments, points)
    return weights[session.slots.index(context.slot.name)]

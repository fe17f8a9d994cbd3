"""The party role of the last stage: distances between shares out, labels back."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Outcome, PartyContext, PartyRole, Reply
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.records import Record

from . import lagrange, messages, rosters, zero_sum
from .distances import field_distances

_Rows = TypeVar("_Rows", FloatArray, IntArray)


class Comparer(PartyRole):
    """One round: w_j D^(j) + μ_j, or D^(j), out; labels back."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Return the condensed distances between this party's shares of all rows."""
        messages.Compare.narrow(task)
        params = rosters.params_of(context.session)
        held = context.recall(messages.HeldShares)
        distances = field_distances(held.shares)
        if params.hide_segments:
            streams = zero_sum.pairwise_streams(context)
            zero_sum.hide(distances, _weight(context), streams)
        return Reply(contribution=messages.Answer(bits=held.bits, distances=distances))

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return the labels in the order of the party's own rows."""
        given = messages.RowGroupLabels.narrow(result)
        order = context.recall(RowOrder).order
        given.require({"n": len(order)})
        if (given.labels >= len(given.cluster_sizes)).any():
            raise ProtocolFailed("A label names no cluster.")
        report = {
            "binary digits after the point": context.recall(messages.HeldShares).bits
        }
        memberships = None
        if isinstance(given, messages.RowGroupMemberships):
            memberships = _restore(given.memberships, order)
            report["n_coinciding"] = given.n_coinciding
        return Outcome(
            labels=_restore(given.labels, order),
            cluster_sizes=given.cluster_sizes,
            memberships=memberships,
            report=report,
        )


def _weight(context: PartyContext) -> int:
    """Return w_j, where all parties are interpolation nodes."""
    session = context.session
    points = lagrange.share_points(len(session.slots))
    weights = lagrange.decoding(rosters.params_of(session).segments, points)
    return weights[session.slots.index(context.slot.name)]


def _restore(travelled: _Rows, order: IntArray) -> _Rows:
    """Return per-row values in the order of the party's own rows."""
    own = np.empty_like(travelled)
    own[order] = travelled
    return own

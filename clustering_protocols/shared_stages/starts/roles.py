"""The role of a party in the stage in which parties agree on a start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clustering_protocols.common.errors import EnvelopeRefused, ProtocolFailed
from clustering_protocols.common.limits import FEW_ROWS
from clustering_protocols.contract import (
    Params,
    PartyContext,
    PartyRole,
    PeerMessage,
    Reply,
    leader_content,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges, scaler_of
from clustering_protocols.shared_stages.secrets import Scope, group_stream
from clustering_protocols.shared_stages.statistics import magnitudes
from clustering_protocols.terms.session_risks import GIVEN_START

from . import clusters, messages


def compute_start_alone(context: PartyContext[Any], scale: Scaler) -> FloatArray:
    """Return initial centroids that each party can compute without any message.

    They are the given centroids, or uniform random points within the declared ranges.
    """
    session, column = context.session, context.slot.column
    params = session.params
    if params.init == "given":
        ends = np.cumsum(session.column_widths)
        centroids = np.array(params.initial_centroids, dtype=np.float64)
        return scale(np.split(centroids, ends, axis=1)[column])
    # Each column group has a stream, since parties of a row group differ in their columns.
    scope: Scope = "column" if session.layout.n_column_groups == 1 else "row"
    stream = group_stream(context, scope, f"start/{column}")
    shares = stream.uniform(params.n_clusters, scale.offset.size)
    low, high = scale.ranges
    V = scale(low + (high - low) * shares)
    # ranges may be much wider than the data
    return np.clip(V, -scale.limit, scale.limit)


def ask_about_given_start(
    context: PartyContext[Any], label: Callable[[], IntArray]
) -> str:
    """Return a question to the operator if a given centroid has few rows near it.

    The result is empty if the start is not given, or if the operator has agreed.

    label: a function that returns, for each of the party's rows, the cluster (n,) to
        which the given centroids assign it.
    """
    if context.session.params.start != "given" or context.choices.get(GIVEN_START):
        return ""
    sizes = np.bincount(label())
    few = sizes[(sizes > 0) & (sizes < FEW_ROWS)]
    if not few.size:
        return ""
    rows = "a single row" if few.min() == 1 else f"only {few.min()} rows"
    return (
        "The coordinator chose the points around which the clusters start, and near one of "
        f"them you have {rows}. All parties read the sum of the rows near each point, and "
        "so read this data exactly if no other party has rows there. A coordinator who "
        "knows one value of a person can obtain all others in this way. Ask the "
        "coordinator where the points come from. Nothing was sent yet. To send the sums, "
        f"run again with --choice {GIVEN_START}=true."
    )


_Task = messages.Propose | messages.Settle | messages.KeepStart
_Content = messages.Candidates | messages.StartCentroids


class StartParty(PartyRole[Params, _Task, _Content]):
    """Sends candidates to the leader; as leader, determines the start from them."""

    def reply(self, context: PartyContext[Any], task: _Task, data: DataSource) -> Reply:
        """Seal candidates to the leader or, as leader, the start to all parties."""
        leader, *members = context.session.slots
        if isinstance(task, messages.Propose):
            return _propose_candidates(context, data)
        if isinstance(task, messages.KeepStart):
            return Reply(contribution=messages.StartKept())
        if context.slot.name != leader:
            check_ranges(context, data)
            return Reply(contribution=messages.StartSettled())
        settled = messages.StartCentroids(centroids=_draw_start(context, data))
        return Reply(
            contribution=messages.StartSettled(),
            envelopes=[PeerMessage(peer=slot, content=settled) for slot in members],
            remember=[settled],
        )

    def receive(
        self, context: PartyContext[Any], envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Store the start or, as leader, the candidates of all parties."""
        leader, *members = context.session.slots
        if context.slot.name != leader:
            start = leader_content(leader, envelopes, "A start")
            if not isinstance(start, messages.StartCentroids):
                raise EnvelopeRefused("The leader may send only the start.")
            return [_check_content(context, start)]
        contents = {envelope.peer: envelope.content for envelope in envelopes}
        if set(contents) != set(members):
            raise ProtocolFailed("The candidates of a party are missing.")
        proposals: list[messages.Candidates] = [context.recall(messages.ProposedByAll)]
        for slot in members:
            proposal = _check_content(context, contents[slot])
            if not isinstance(proposal, messages.Candidates):
                raise EnvelopeRefused(
                    "A party may send only centroids of its own clusters."
                )
            proposals.append(proposal)
        return [
            messages.ProposedByAll(
                centroids=np.concatenate([part.centroids for part in proposals]),
                sizes=np.concatenate([part.sizes for part in proposals]),
            )
        ]


def _draw_start(context: PartyContext[Any], data: DataSource) -> FloatArray:
    """Return V(0) (k, m), as the leader."""
    if context.session.params.start == "careful":
        return _merge_candidates(context)
    k = context.session.params.n_clusters
    clusters.check_enough_rows(data, k)
    rows = _sample_rows(context, data)
    return clusters.draw_random_centroids(rows, k, context.lasting_stream("start"))


def _merge_candidates(context: PartyContext[Any]) -> FloatArray:
    session, k = context.session, context.session.params.n_clusters
    proposed = context.recall(messages.ProposedByAll)
    shape = (len(session.slots), clusters.DESCRIBED * k)
    if proposed.sizes.size != np.prod(shape):
        raise ProtocolFailed("The candidates of a party are missing.")
    by_party = proposed.sizes.reshape(shape).astype(np.float64)
    rows = np.array([session.member(slot).n_rows for slot in session.slots])
    # Sizes refer to a sample of a party's rows; weights refer to all of its rows.
    sampled = np.maximum(by_party.sum(axis=1, keepdims=True), 1.0)
    weights = (by_party / sampled * rows[:, None]).ravel()
    stream = context.lasting_stream("merge")
    return clusters.merge_centroids(proposed.centroids, weights, k, stream)


def _sample_rows(context: PartyContext[Any], data: DataSource) -> FloatArray:
    """Draw rows (s, m) and scale them, without loading the others."""
    check_ranges(context, data)
    drawn = context.lasting_stream("sample").permutation(data.n_rows)
    rows = np.sort(drawn[: clusters.SAMPLE_ROWS])
    return scaler_of(context)(clusters.take_rows(data, rows))


def _propose_candidates(context: PartyContext[Any], data: DataSource) -> Reply:
    k, rows = context.session.params.n_clusters, _sample_rows(context, data)
    own = clusters.local_centroids(rows, k, context.lasting_stream("candidates"))
    leader = context.session.slots[0]
    if context.slot.name == leader:
        remembered = messages.ProposedByAll(**dict(own))
        return Reply(contribution=messages.StartProposal(), remember=[remembered])
    sealed = PeerMessage(peer=leader, content=own)
    return Reply(contribution=messages.StartProposal(), envelopes=[sealed])


def _check_content(context: PartyContext[Any], record: _Content) -> _Content:
    width = context.session.member(context.slot.name).n_columns
    k = context.session.params.n_clusters
    if isinstance(record, messages.Candidates):
        k *= clusters.DESCRIBED
        if record.sizes.min(initial=0) < 0:
            raise EnvelopeRefused("A cluster has a negative number of rows.")
    record.require({"k": k, "m": width})
    magnitudes.check_magnitudes("A start", record.centroids)
    return record

"""Stage for split rows: agree on a start that comes from rows of parties.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the leader |
| 2 | `settle` → `settled` | the leader's to all: `start-centroids`, or `lane-starts` |
| 3 | `confirm` → `confirmed` | |

Starts that race come as `lane-starts`. Once all have confirmed, all have the start,
whoever is asked for the first update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    PartyRole,
    PeerMessage,
    Reopen,
    Reply,
    content_of,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import EnvelopeRefused, ProtocolFailed
from clustering_protocols.preparation.statistics import magnitudes
from clustering_protocols.randomness import KeyedStream
from clustering_protocols.records import Record

from . import messages, starts
from .features import check_ranges, scaler_of
from .params import LlfContext, LlfSession, LosslessFederated

_Asked = Literal["propose", "settle", "confirm"]


class StartAnalyst(AnalystRole[LosslessFederated, Record, messages.Starting]):
    """Relays; it learns nothing but that the parties answered."""

    state = messages.Starting

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask for candidates, or straight for the start."""
        if session.params.start(rows_split=True) == "careful":
            return _ask(session, "propose")
        return _ask(session, "settle")

    def step(
        self,
        session: LlfSession,
        state: messages.Starting,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Have the leader settle, the others keep what it sealed; then go on."""
        if state.asked == "confirm":
            return Finish()
        return _ask(session, "settle" if state.asked == "propose" else "confirm")


_TASKS: Mapping[_Asked, Record] = {
    "propose": messages.Propose(),
    "settle": messages.Settle(),
    "confirm": messages.Confirm(),
}


def _ask(session: LlfSession, asked: _Asked) -> Ask:
    state = messages.Starting(asked=asked)
    return Ask.everybody(session, _TASKS[asked], state=state)


_Task = messages.Propose | messages.Settle | messages.Confirm
_Settled = messages.StartCentroids | messages.LaneStarts
_Content = messages.Candidates | _Settled


class StartParty(PartyRole[LosslessFederated, _Task, _Content]):
    """Proposes; settles where it is the leader."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Seal candidates to the leader, or the start to all."""
        leader, *others = context.session.slots
        if isinstance(task, messages.Propose):
            return _propose(context, data)
        if isinstance(task, messages.Confirm):
            return Reply(contribution=messages.Confirmed())
        if context.slot.name != leader:
            check_ranges(context, data)
            return Reply(contribution=messages.Settled())
        settled = _settled(context, data)
        return Reply(
            contribution=messages.Settled(),
            envelopes=[PeerMessage(peer=slot, content=settled) for slot in others],
            remember=[settled],
        )

    def receive(
        self, context: LlfContext, envelopes: Sequence[PeerMessage[_Content]]
    ) -> Sequence[Record]:
        """Keep the start, or collect the candidates of all."""
        leader, *others = context.session.slots
        if context.slot.name != leader:
            start = content_of(leader, envelopes, "A start")
            if not isinstance(start, _kind(context)):
                raise EnvelopeRefused("The leader sends the start, nothing else.")
            return [_checked(context, start)]
        contents = {envelope.peer: envelope.content for envelope in envelopes}
        if set(contents) != set(others):
            raise ProtocolFailed("The candidates of a party are missing.")
        own = context.recall(messages.ProposedByAll)
        all_of_them = [own, *(_checked(context, contents[slot]) for slot in others)]
        centroids = np.concatenate([each.centroids for each in all_of_them])
        return [messages.ProposedByAll(centroids=centroids)]


def _kind(context: LlfContext) -> type[_Settled]:
    """Return what the leader settles: one start, or several that are to race."""
    several = context.session.params.n_init > 1
    return messages.LaneStarts if several else messages.StartCentroids


def _settled(context: LlfContext, data: DataSource) -> _Settled:
    """Return what the leader seals to all: every start drawn for itself."""
    params = context.session.params
    if params.start(rows_split=True) == "careful":
        lanes = _merged(context)
    else:
        rows = _sample(context, data)
        streams = _streams(context, "start")
        lanes = [starts.random_means(rows, params.n_clusters, s) for s in streams]
    if params.n_init > 1:
        return messages.LaneStarts(centroids=np.array(lanes))
    return messages.StartCentroids(centroids=lanes[0])


def _merged(context: LlfContext) -> list[FloatArray]:
    params, n_parties = context.session.params, len(context.session.slots)
    proposed = context.recall(messages.ProposedByAll).centroids
    shape = (n_parties, params.n_init, params.n_clusters, proposed.shape[1])
    if proposed.size != np.prod(shape):
        raise ProtocolFailed("The candidates of a party are missing.")
    by_lane = np.swapaxes(proposed.reshape(shape), 0, 1)
    return [
        starts.merge(np.concatenate(candidates), params.n_clusters, stream)
        for candidates, stream in zip(by_lane, _streams(context, "merge"), strict=True)
    ]


def _sample(context: LlfContext, data: DataSource) -> FloatArray:
    check_ranges(context, data)
    starts.check_enough_rows(data, context.session.params.n_clusters)
    return starts.sample(data, scaler_of(context), context.lasting_stream("sample"))


def _streams(context: LlfContext, purpose: str) -> list[KeyedStream]:
    """Return a stream for each start."""
    lanes = range(context.session.params.n_init)
    return [context.lasting_stream(starts.of_lane(purpose, lane)) for lane in lanes]


def _propose(context: LlfContext, data: DataSource) -> Reply:
    k, rows = context.session.params.n_clusters, _sample(context, data)
    streams = _streams(context, "candidates")
    V = np.concatenate([starts.careful_candidates(rows, k, s) for s in streams])
    leader = context.session.slots[0]
    if context.slot.name == leader:
        return Reply(
            contribution=messages.Proposed(),
            remember=[messages.ProposedByAll(centroids=V)],
        )
    sealed = PeerMessage(peer=leader, content=messages.Candidates(centroids=V))
    return Reply(contribution=messages.Proposed(), envelopes=[sealed])


def _checked(context: LlfContext, record: _Content) -> _Content:
    params = context.session.params
    width = context.session.member(context.slot.name).n_columns
    k = params.n_clusters
    if isinstance(record, messages.Candidates):
        k *= params.n_init
    record.require({"k": k, "m": width, "lanes": params.n_init})
    magnitudes.check("A start", record.centroids)
    return record

"""Stage for split rows: agree on a start that comes from rows of parties.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the leader |
| 2 | `settle` → `settled` | `start-centroids` from the leader to all |
| 3 | `confirm` → `confirmed`: all have the start, whoever the first update asks |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

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
_Content = messages.Candidates | messages.StartCentroids


class StartParty(PartyRole[LosslessFederated, _Task, _Content]):
    """Proposes; settles where it is the leader."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Seal candidates to the leader, or the start to all."""
        params = context.session.params
        leader, *others = context.session.slots
        scale = scaler_of(context)
        if isinstance(task, messages.Propose):
            return _propose(context, data)
        if isinstance(task, messages.Confirm):
            return Reply(contribution=messages.Confirmed())
        if context.slot.name != leader:
            check_ranges(context, data)
            return Reply(contribution=messages.Settled())
        if params.start(rows_split=True) == "careful":
            proposed = context.recall(messages.ProposedByAll).centroids
            if len(proposed) != params.n_clusters * len(context.session.slots):
                raise ProtocolFailed("The candidates of a party are missing.")
            V = starts.merge(
                proposed, params.n_clusters, context.lasting_stream("merge")
            )
        else:
            check_ranges(context, data)
            starts.check_enough_rows(data, params.n_clusters)
            rows = starts.sample(data, scale, context.lasting_stream("sample"))
            V = starts.random_means(
                rows, params.n_clusters, context.lasting_stream("start")
            )
        settled = messages.StartCentroids(centroids=V)
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
            if not isinstance(start, messages.StartCentroids):
                raise EnvelopeRefused("The leader sends the start, nothing else.")
            return [_checked(context, start)]
        contents = {envelope.peer: envelope.content for envelope in envelopes}
        if set(contents) != set(others):
            raise ProtocolFailed("The candidates of a party are missing.")
        own = context.recall(messages.ProposedByAll)
        all_of_them = [own, *(_checked(context, contents[slot]) for slot in others)]
        centroids = np.concatenate([each.centroids for each in all_of_them])
        return [messages.ProposedByAll(centroids=centroids)]


def _propose(context: LlfContext, data: DataSource) -> Reply:
    params = context.session.params
    scale = scaler_of(context)
    check_ranges(context, data)
    starts.check_enough_rows(data, params.n_clusters)
    rows = starts.sample(data, scale, context.lasting_stream("sample"))
    V = starts.careful_candidates(
        rows, params.n_clusters, context.lasting_stream("candidates")
    )
    leader = context.session.slots[0]
    if context.slot.name == leader:
        return Reply(
            contribution=messages.Proposed(),
            remember=[messages.ProposedByAll(centroids=V)],
        )
    sealed = PeerMessage(peer=leader, content=messages.Candidates(centroids=V))
    return Reply(contribution=messages.Proposed(), envelopes=[sealed])


def _checked(
    context: LlfContext, record: messages.Candidates | messages.StartCentroids
) -> messages.Candidates | messages.StartCentroids:
    width = context.session.member(context.slot.name).n_columns
    record.require({"k": context.session.params.n_clusters, "m": width})
    magnitudes.check("A start", record.centroids)
    return record

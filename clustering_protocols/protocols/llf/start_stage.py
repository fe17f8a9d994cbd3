"""Stage for split rows: agree on a start that comes from rows of parties.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the first party |
| 2 | `settle` → `settled` | `start-centroids` from the first party to all |
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
    Incoming,
    Outgoing,
    PartyContext,
    PartyRole,
    Reopen,
    Reply,
    SessionContext,
    ask_all,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import EnvelopeRefused, ProtocolFailed
from clustering_protocols.records import Record

from . import messages, starts
from .features import check_ranges, check_widths, params_of, scaler_of

_Asked = Literal["propose", "settle", "confirm"]


class StartAnalyst(AnalystRole):
    """Relays; it learns nothing but that the parties answered."""

    state = messages.Starting

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask for candidates, or straight for the start."""
        check_widths(session)
        if params_of(session).start(rows_split=True) == "careful":
            return _ask(session, "propose")
        return _ask(session, "settle")

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Have the first party settle, the others keep what it sealed; then go on."""
        asked = messages.Starting.narrow(state).asked
        if asked == "confirm":
            return Finish()
        return _ask(session, "settle" if asked == "propose" else "confirm")


_ROUNDS: Mapping[_Asked, tuple[type[Record], type[Record]]] = {
    "propose": (messages.Propose, messages.Proposed),
    "settle": (messages.Settle, messages.Settled),
    "confirm": (messages.Confirm, messages.Confirmed),
}


def _ask(session: SessionContext, asked: _Asked) -> Ask:
    task, contribution = _ROUNDS[asked]
    state = messages.Starting(asked=asked)
    return ask_all(session, task(), expects=contribution, state=state)


class StartParty(PartyRole):
    """Proposes; settles where it is the first party."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Seal candidates to the first party, or the start to all."""
        params = params_of(context.session)
        first, *others = context.session.slots
        scale = scaler_of(context)
        if isinstance(task, messages.Propose):
            return _propose(context, data)
        if isinstance(task, messages.Confirm):
            return Reply(contribution=messages.Confirmed())
        if context.slot.name != first:
            check_ranges(scale, data)
            return Reply(contribution=messages.Settled())
        if params.start(rows_split=True) == "careful":
            proposed = context.recall(messages.ProposedByAll).centroids
            V = starts.merge(proposed, params.n_clusters, context.stream("merge"))
        else:
            check_ranges(scale, data)
            starts.check_enough_rows(data, params.n_clusters)
            rows = starts.sample(data, scale, context.stream("sample"))
            V = starts.random_means(rows, params.n_clusters, context.stream("start"))
        settled = messages.StartCentroids(centroids=V)
        return Reply(
            contribution=messages.Settled(),
            envelopes=[Outgoing(receiver=slot, content=settled) for slot in others],
            remember=[settled],
        )

    def receive(
        self, context: PartyContext, envelopes: Sequence[Incoming]
    ) -> Sequence[Record]:
        """Keep the start, or collect the candidates of all."""
        first, *others = context.session.slots
        if context.slot.name != first:
            if [envelope.sender for envelope in envelopes] != [first]:
                raise EnvelopeRefused("A start came from a party that does not lead.")
            return [
                _checked(context, messages.StartCentroids.narrow(envelopes[0].content))
            ]
        contents = {e.sender: messages.Candidates.narrow(e.content) for e in envelopes}
        if set(contents) != set(others):
            raise ProtocolFailed("The candidates of a party are missing.")
        own = context.recall(messages.ProposedByAll)
        all_of_them = [own, *(_checked(context, contents[slot]) for slot in others)]
        centroids = np.concatenate([each.centroids for each in all_of_them])
        return [messages.ProposedByAll(centroids=centroids)]


def _propose(context: PartyContext, data: DataSource) -> Reply:
    params = params_of(context.session)
    scale = scaler_of(context)
    check_ranges(scale, data)
    starts.check_enough_rows(data, params.n_clusters)
    rows = starts.sample(data, scale, context.stream("sample"))
    V = starts.careful_candidates(rows, params.n_clusters, context.stream("candidates"))
    first = context.session.slots[0]
    if context.slot.name == first:
        return Reply(
            contribution=messages.Proposed(),
            remember=[messages.ProposedByAll(centroids=V)],
        )
    sealed = Outgoing(receiver=first, content=messages.Candidates(centroids=V))
    return Reply(contribution=messages.Proposed(), envelopes=[sealed])


def _checked(
    context: PartyContext, record: messages.Candidates | messages.StartCentroids
) -> messages.Candidates | messages.StartCentroids:
    width = context.session.member(context.slot.name).n_columns
    record.require({"k": params_of(context.session).n_clusters, "m": width})
    return record

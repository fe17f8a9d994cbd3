"""The party roles of the dummy protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, PeerMessage, Reply
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.record import Record

from . import messages
from .params import Dummy, DummyContext


class Greeter(PartyRole[Dummy, messages.Greet, messages.Word]):
    """Sends a random word to the next slot, in the first stage."""

    def reply(
        self, context: DummyContext, task: messages.Greet, data: DataSource
    ) -> Reply:
        """Draw a random word, send it to the next slot, and remember it."""
        word = context.stream("word").words(1)
        slots = context.session.slots
        next_slot = slots[(slots.index(context.slot.name) + 1) % len(slots)]
        envelope = PeerMessage(peer=next_slot, content=messages.Word(word=word))
        return Reply(
            contribution=messages.Greeted(),
            envelopes=[envelope] if next_slot != context.slot.name else [],
            remember=[messages.OwnWord(word=word)],
        )

    def receive(
        self, context: DummyContext, envelopes: Sequence[PeerMessage[messages.Word]]
    ) -> Sequence[Record]:
        """Remember the received word and its sender."""
        return [
            messages.HeardWord(
                sender=envelope.peer,
                word=envelope.content.word,
            )
            for envelope in envelopes
        ]


_Counting = messages.Count | messages.Confirm


class Counter(PartyRole[Dummy, _Counting, messages.Word, messages.Labels]):
    """Counts its rows, echoes the word, and confirms the total, in the second stage."""

    def reply(self, context: DummyContext, task: _Counting, data: DataSource) -> Reply:
        """Send row indices and the echo, or confirm the total."""
        session = context.session
        if isinstance(task, messages.Confirm):
            if task.total != sum(session.row_counts):
                raise ProtocolFailed("The analyst's total is not the number of rows.")
            return Reply(contribution=messages.Confirmed(total=task.total))
        positions = messages.Counted(positions=np.arange(data.n_rows, dtype=np.int64))
        if len(session.slots) == 1:
            return Reply(contribution=positions)
        greeting = context.memory.get(messages.HeardWord)
        if greeting is None:
            raise ProtocolFailed("The word of the previous slot is missing.")
        echo = messages.Word(word=greeting.word)
        envelope = PeerMessage(peer=greeting.sender, content=echo)
        return Reply(contribution=positions, envelopes=[envelope])

    def receive(
        self, context: DummyContext, envelopes: Sequence[PeerMessage[messages.Word]]
    ) -> Sequence[Record]:
        """Raise ProtocolFailed if the echo is not the word that this party sent."""
        own = context.recall(messages.OwnWord)
        for envelope in envelopes:
            if envelope.content.word[0] != own.word[0]:
                raise ProtocolFailed("The echo is not the word that was sent.")
        return ()

    def conclude(
        self, context: DummyContext, result: messages.Labels, data: DataSource | None
    ) -> Outcome:
        """Return the outcome, which consists of the labels."""
        return Outcome(labels=result.labels)

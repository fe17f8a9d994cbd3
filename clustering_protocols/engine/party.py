"""A party's side of a session: envelopes opened, tasks answered, results read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from typing_extensions import Buffer

from clustering_protocols import packets
from clustering_protocols.contract import (
    Incoming,
    Memory,
    Outcome,
    Outgoing,
    PartyContext,
    Selection,
    SessionContext,
    Stage,
)
from clustering_protocols.contract.selection import put_back
from clustering_protocols.data import DataSource, keep_rows
from clustering_protocols.engine.journal import Admission, Journal
from clustering_protocols.engine.stages import check_roster, load, stage_of
from clustering_protocols.errors import (
    AgreementMismatch,
    EnvelopeRefused,
    ProtocolFailed,
    TaskRefused,
)
from clustering_protocols.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.records import Record
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import PartyKeys, party_keys

FINAL = (TaskRefused, EnvelopeRefused, ProtocolFailed)
"""Errors after which a party answers nothing more: the analyst did not keep to the rules."""


class Position(Record):
    """The last round that a party answered; kept in its memory."""

    kind = "position"

    round: int
    attempt: int


class Answer(NamedTuple):
    """What follows from a task: memory, bytes to send, and notes for the operator."""

    memory: Memory
    contribution: bytes
    notes: Mapping[str, Any]
    inputs: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyEngine:
    """One party of a session, between rounds: everything but memory and data.

    Parameters
    ----------
    agreement : bytes
        The exact bytes; the caller has checked terms, roster and marks.
    slot : str
    entropy : bytes
        32 bytes from which every private draw follows.
    choices : mapping, optional
        What this party decides alone; see :class:`~clustering_protocols.contract.PartyContext`.
    """

    agreement: bytes = field(repr=False)
    slot: str
    entropy: bytes = field(repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict)

    def admit(self, journal: Journal, memory: Memory, task: Buffer) -> Journal:
        """Return the journal after a task, to be kept before the answer is sent.

        Parameters
        ----------
        memory : Memory
            As before the round, like that of :meth:`reply`.

        Raises
        ------
        TaskRefused
            If the task may not follow what the journal says was answered.
        """
        session, stages = load(self.agreement)
        check_roster(session)
        asked = packets.read(task)
        self._check_address(session, asked)
        stage = stage_of(stages, asked)
        context = self._context(session, stage.name, asked, memory)
        admission = Admission(stages=stages, context=context)
        return admission.admit(journal, asked, asked.read(stage.tasks))

    def reply(self, memory: Memory, task: Buffer, data: DataSource) -> Answer:
        """Return the memory after this round, the contribution's bytes, and notes.

        The caller writes both to disk before it sends the first byte; for a new attempt
        of the same round it calls again with the memory before the round.

        Raises
        ------
        AgreementMismatch, EnvelopeRefused, Malformed, InvalidArray
            If the task is not for this party, or not what the protocol declares.
        """
        session, stages = load(self.agreement)
        asked = packets.read(task)
        self._check_address(session, asked)
        memory = self._receive(session, stages, memory, asked)
        stage = stage_of(stages, asked)
        context = self._context(session, stage.name, asked, memory)
        record = asked.read(stage.tasks)
        reply = stage.party().reply(context, record, _taking_part(memory, data))
        contribution = packets.write(
            asked.address,
            reply.contribution,
            envelopes=[self._seal(session, asked, item) for item in reply.envelopes],
        )
        packets.check_answers(asked, packets.read(contribution), stage)
        position = Position(round=asked.address.round, attempt=asked.address.attempt)
        after = memory.remember([*reply.remember, position])
        return Answer(after, contribution, reply.notes, reply.inputs)

    def admit_result(self, journal: Journal, memory: Memory, result: Buffer) -> None:
        """Refuse a result that comes before all that has to be asked was asked."""
        session, stages = load(self.agreement)
        packet = packets.read(result)
        context = self._context(session, stages[-1].name, packet, memory)
        Admission(stages=stages, context=context).check_complete(journal)

    def conclude(
        self, memory: Memory, result: Buffer, data: DataSource | None
    ) -> Outcome:
        """Return what the operator gets from this party's result.

        Without data :class:`NotReady` where labels are computed from the rows.
        Rows that a stage has not selected get the label -1.
        """
        session, stages = load(self.agreement)
        packet = packets.read(result)
        self._check_address(session, packet)
        context = self._context(session, stages[-1].name, packet, memory)
        rows = None if data is None else _taking_part(memory, data)
        outcome = (
            stages[-1].party().conclude(context, packet.read(stages[-1].results), rows)
        )
        selection = memory.get(Selection)
        if selection is None:
            return outcome
        return put_back(outcome, selection, session.member(self.slot).n_rows)

    def _check_address(self, session: SessionContext, packet: Packet) -> None:
        expected = (session.terms.session, session.agreement_digest, self.slot)
        address = packet.address
        if (address.session, address.agreement, address.slot) != expected:
            raise AgreementMismatch("The analyst sent a message of another session.")

    def _context(
        self, session: SessionContext, stage: str, packet: Packet, memory: Memory
    ) -> PartyContext:
        selection = memory.get(Selection)
        return PartyContext(
            session=session
            if selection is None
            else session.with_rows(selection.n_rows),
            slot=session.layout.slot(self.slot),
            stage=stage,
            round=packet.address.round,
            attempt=packet.address.attempt,
            memory=memory,
            entropy=self.entropy,
            choices=self.choices,
        )

    def _keys(self, session: SessionContext) -> PartyKeys:
        return party_keys(self.entropy, session.terms.session, self.slot)

    def _seal(self, session: SessionContext, asked: Packet, item: Outgoing) -> Envelope:
        when = dict(asked.address.when)
        label = EnvelopeLabel(peer=item.receiver, kind=item.content.kind, **when)
        bound = _bound(session, label, sender=self.slot, receiver=item.receiver)
        peer = session.member(item.receiver).keys
        content = item.content.encode()
        return Envelope(
            label=label, sealed=sealing.seal(content, bound, self._keys(session), peer)
        )

    def _receive(
        self,
        session: SessionContext,
        stages: Sequence[Stage],
        memory: Memory,
        asked: Packet,
    ) -> Memory:
        """Open the envelopes that came with a task and let their stages keep them."""
        if not asked.envelopes:
            return memory
        self._check_freshness(memory, asked)
        name = asked.envelopes[0].label.stage  # one round belongs to one stage
        stage = next((stage for stage in stages if stage.name == name), None)
        if stage is None:
            raise EnvelopeRefused(f"Stage {name!r} is not part of this session.")
        opened = [self._open(session, stage, envelope) for envelope in asked.envelopes]
        context = self._context(session, name, asked, memory)
        return memory.remember(stage.party().receive(context, opened))

    def _check_freshness(self, memory: Memory, asked: Packet) -> None:
        """Refuse envelopes of another round than the last, or of a void attempt."""
        last = memory.get(Position)
        sealed = {(e.label.round, e.label.attempt) for e in asked.envelopes}
        before = asked.address.round - 1
        answered = last is not None and last.round == before
        if len(sealed) > 1 or any(round_ != before for round_, _ in sealed):
            raise EnvelopeRefused("It was not sealed in the round before this one.")
        if answered and last is not None and sealed - {(before, last.attempt)}:
            raise EnvelopeRefused("It was sealed under an attempt that was void.")

    def _open(
        self, session: SessionContext, stage: Stage, envelope: Envelope
    ) -> Incoming:
        label = envelope.label
        kind = next((e for e in stage.envelopes if e.kind == label.kind), None)
        if kind is None or label.peer not in session.slots:
            raise EnvelopeRefused("Its label names no known sender or kind.")
        bound = _bound(session, label, sender=label.peer, receiver=self.slot)
        peer = session.member(label.peer).keys
        content = sealing.open_envelope(
            envelope.sealed, bound, self._keys(session), peer
        )
        return Incoming(sender=label.peer, content=kind.decode(content))


def _taking_part(memory: Memory, data: DataSource) -> DataSource:
    """Return the rows that roles may see: all, or those that a stage has selected."""
    selection = memory.get(Selection)
    return data if selection is None else keep_rows(data, selection.rows)


def _bound(
    session: SessionContext, label: EnvelopeLabel, *, sender: str, receiver: str
) -> sealing.Binding:
    return sealing.Binding(
        agreement=session.agreement_digest,
        session=session.terms.session,
        sender=sender,
        receiver=receiver,
        kind=label.kind,
        **dict(label.when),
    )

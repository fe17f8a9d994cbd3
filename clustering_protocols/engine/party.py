"""A party's side of a session: it opens envelopes, answers tasks and reads results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from typing_extensions import Buffer

from clustering_protocols.common.errors import (
    AgreementMismatch,
    EnvelopeRefused,
    Equivocation,
    InvalidArray,
    Malformed,
    ProtocolFailed,
    TaskRefused,
)
from clustering_protocols.contract import (
    Outcome,
    PartyContext,
    PeerMessage,
    Placement,
    SessionContext,
    Stage,
)
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import (
    Assignment,
    Selection,
    add_participation_note,
    restore_placement,
    restore_row_order,
)
from clustering_protocols.engine import packets
from clustering_protocols.engine.analyst import check_answer
from clustering_protocols.engine.cluster_numbers import renumber_outcome
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.engine.stages import (
    find_stage,
    last_stage_of_each_run,
    load_checked_session,
    load_session,
)
from clustering_protocols.engine.task_checks import Admission
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import PartyKeys, party_keys
from clustering_protocols.shared_stages.profiles.messages import profiles_in_memory
from clustering_protocols.terms.preparation import (
    check_field_order,
    find_usable_rows,
    select_clustered_columns,
)

FINAL = (
    TaskRefused,
    EnvelopeRefused,
    ProtocolFailed,
    Malformed,
    InvalidArray,
    AgreementMismatch,
    Equivocation,
)
"""Errors that make a party stop for good, because the analyst broke the rules.

They do not include errors in the party's own data or policy (InvalidData and
GuardRefused), which can be corrected so that the task can then be answered.
"""


class ExpectedSenders(Record):
    """A record in memory of the slots whose envelopes must come with the next task."""

    kind = "awaited"

    slots: list[str]


class TaskOutcome(NamedTuple):
    """The new journal and memory after a task, the bytes to send, and notes.

    asks: the question to the operator, who has to agree before the bytes are sent.
    doubts: a question to the operator about rows of the party that look wrong.
    records: the kinds of record in the contribution.
    """

    journal: Journal
    memory: Memory
    contribution: bytes
    notes: Mapping[str, Any]
    asks: str = ""
    doubts: str = ""
    records: tuple[type[Record], ...] = ()

    @property
    def question(self) -> str:
        """Return all questions to the operator as one text; empty if there are none."""
        return " ".join(filter(None, (self.doubts, self.asks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyEngine:
    """The engine of one party, which holds everything except its memory and data.

    agreement: the exact bytes of the agreement, whose terms and roster the caller has
        checked.
    entropy: 32 bytes from which every private draw is derived.
    choices: settings that this party makes alone; see :class:`.PartyContext`.
    engine: the engine that runs kernels over blocks of rows; one thread by default.
    """

    agreement: bytes = field(repr=False)
    slot: str
    entropy: bytes = field(repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict)
    engine: Engine = ONE_THREAD

    def reply(
        self,
        journal: Journal,
        memory: Memory,
        task: Buffer | Packet,
        data: DataSource,
        *,
        acknowledged: bool = True,
    ) -> TaskOutcome:
        """Answer a task.

        The caller must write journal, memory and contribution to disk before it sends
        the first byte. For a new attempt of the same round, the caller passes the
        journal as it is after the round, and the memory as it was before the round.

        acknowledged: whether the analyst has acknowledged the last answer. If so, the
            analyst cannot report this party as absent from that round.

        Raises TaskRefused if the task may not follow the last answers, or differs from
            the transcript.
        Raises AgreementMismatch, EnvelopeRefused, Malformed, InvalidArray if the task
            is not for this party, or is not as the protocol declares it.
        """
        journal.check_not_stopped()  # do not parse the task of a stopped session
        session, stages = load_checked_session(self.agreement)
        packet = task if isinstance(task, Packet) else packets.parse(task)
        self._check_address(session, packet)
        stage = find_stage(stages, packet)
        record = packet.read(stage.tasks)
        admission = self._admission(acknowledged=acknowledged)
        journal = admission.admit_task(
            admission.follow_transcript(journal, packet), packet, record
        )
        memory = self._open_envelopes(stages, memory, packet, journal)
        context = self._packet_context(packet, memory, journal)
        fields = stage.exchange_of(record.kind).fields
        rows = visible_rows(session, self.slot, memory, data, fields=fields)
        reply = stage.party().reply(context, record, rows)
        contribution = packets.write_packet(
            packet.address,
            reply.contribution,
            envelopes=[seal_envelope(context, packet, m) for m in reply.envelopes],
        )
        check_answer(packet, packets.parse(contribution), stage)
        senders = ExpectedSenders(slots=list(reply.awaits))
        memory = _remember_records(memory, stage, reply.remember).remember([senders])
        records = (reply.contribution, *(m.content for m in reply.envelopes))
        return TaskOutcome(
            journal,
            memory,
            contribution,
            reply.notes,
            reply.asks,
            reply.doubts,
            tuple(dict.fromkeys(map(type, records))),
        )

    def conclude(
        self,
        journal: Journal,
        memory: Memory,
        result: Buffer,
        data: DataSource | None,
        *,
        acknowledged: bool = True,
    ) -> Outcome:
        """Return the outcome that follows from this party's result.

        Rows that no stage selected get the label -1. Without data, a role that computes
        labels from the rows raises :class:`NotReady`.

        Raises TaskRefused, ProtocolFailed if the result comes before a required task,
            or the participants have not signed it.
        """
        journal.check_not_stopped()
        session, stages = load_session(self.agreement)
        packet = packets.parse(result)
        self._check_address(session, packet)
        stage = stages[-1]
        record = packet.read(stage.results)
        admission = self._admission(acknowledged=acknowledged)
        journal = admission.follow_transcript(journal, packet)
        admission.check_result(journal, packet)
        assignment = memory.get(Assignment)
        if assignment and assignment.result != sha256(record.encode()).hexdigest():
            raise ProtocolFailed("The result does not belong to these labels.")
        context = self._packet_context(packet, memory, journal)
        rows = None if data is None else visible_rows(session, self.slot, memory, data)
        outcome = stage.party().conclude(context, record, rows)
        outcome = wrap_predict(session, self.slot, memory, outcome)
        outcome = replace(outcome, profiles=profiles_in_memory(memory))
        selection = memory.get(Selection)
        if selection is None:
            return outcome
        n_rows = session.member(self.slot).n_rows
        whole = restore_row_order(outcome, selection.rows, n_rows)
        return add_participation_note(whole, len(selection.rows), n_rows)

    def early_outcomes(self, journal: Journal, memory: Memory) -> list[Outcome | None]:
        """Return the outcome of each run from the party's memory, before one is chosen.

        The outcome is None for a run that is not complete, or whose labels come with
        the result.
        """
        session, stages = load_session(self.agreement)
        selection, outcomes = memory.get(Selection), []
        for last in last_stage_of_each_run(stages):
            context = self.context(journal, memory, last.name, journal.round, 1)
            outcome = last.party().early_outcome(context)
            if outcome is not None:
                outcome = renumber_outcome(session, outcome)
                if selection is not None:
                    n_rows = session.member(self.slot).n_rows
                    outcome = restore_row_order(outcome, selection.rows, n_rows)
            outcomes.append(outcome)
        return outcomes

    def follow_transcript(self, journal: Journal, task: Buffer) -> Journal:
        """Return the journal extended by the transcript lines of a task.

        Raises TaskRefused if the lines do not continue those in the journal.
        """
        admission = self._admission(acknowledged=False)
        return admission.follow_transcript(journal, packets.parse(task))

    def context(
        self, journal: Journal, memory: Memory, stage: str, round_: int, attempt: int
    ) -> PartyContext:
        """Return the context that this party's roles receive in a round."""
        session, stages = load_session(self.agreement)
        session = replace(session, engine=self.engine)
        selection = memory.get(Selection)
        if selection is not None:
            session = session.with_rows(selection.n_rows)
        run = next((s.run for s in stages if s.name == stage), None)
        return PartyContext(
            session=session,
            slot=session.layout.slot(self.slot),
            stage=stage,
            round=round_,
            attempt=attempt,
            memory=memory,
            entropy=self.entropy,
            choices=self.choices,
            announced_rounds=journal.told,
            transcripts=journal.transcript_by_attempt,
        ).for_run(run)

    def _admission(self, *, acknowledged: bool) -> Admission:
        session, stages = load_session(self.agreement)
        return Admission(
            session=session, stages=stages, slot=self.slot, acknowledged=acknowledged
        )

    def _packet_context(
        self, packet: Packet, memory: Memory, journal: Journal, stage: str = ""
    ) -> PartyContext:
        address = packet.address
        return self.context(
            journal, memory, stage or address.stage, address.round, address.attempt
        )

    def _check_address(self, session: SessionContext, packet: Packet) -> None:
        expected = (session.terms.session, session.agreement_digest, self.slot)
        address = packet.address
        if (address.session, address.agreement, address.slot) != expected:
            raise AgreementMismatch("The analyst sent a message of another session.")

    def _open_envelopes(
        self, stages: Sequence[Stage], memory: Memory, packet: Packet, journal: Journal
    ) -> Memory:
        """Open a task's envelopes, and remember the records that the roles return."""
        expected = memory.get(ExpectedSenders)
        senders = {envelope.label.peer for envelope in packet.envelopes}
        for slot in () if expected is None else expected.slots:
            if slot not in senders:
                raise EnvelopeRefused(
                    f"The analyst withholds the envelope of {slot!r}."
                )
        by_round: dict[int, list[Envelope]] = {}
        for envelope in sorted(packet.envelopes, key=lambda e: e.label.round):
            by_round.setdefault(envelope.label.round, []).append(envelope)
        for round_, envelopes in by_round.items():
            check_envelopes_fresh(journal, packet, round_, envelopes)
            name = envelopes[0].label.stage  # a round belongs to a single stage
            stage = next((stage for stage in stages if stage.name == name), None)
            if stage is None:
                raise EnvelopeRefused(f"Stage {name!r} is not part of this session.")
            context = self._packet_context(packet, memory, journal, name)
            opened = [open_envelope(context, stage, sealed) for sealed in envelopes]
            records = stage.party().receive(context, opened)
            memory = _remember_records(memory, stage, records)
        return memory


def _remember_records(
    memory: Memory, stage: Stage, records: Sequence[Record]
) -> Memory:
    return memory.scope_to_run(stage.run).remember(records).scope_to_run(None)


def visible_rows(
    session: SessionContext,
    slot: str,
    memory: Memory,
    data: DataSource,
    *,
    fields: bool = False,
) -> DataSource:
    """Return the rows that the roles of a slot see at this point of a session.

    fields: whether to return the dictionary's fields instead of the clustered columns.
    """
    if not fields:
        plan, schema = session.terms.plan(slot), session.terms.dictionary_of(slot)
        data = select_clustered_columns(data, schema, plan)
        if plan is not None:  # a late import: few sessions need it
            from clustering_protocols.shared_stages.imputation import prepare_rows

            data = prepare_rows(plan, data, memory)
    selection = memory.get(Selection)
    return data if selection is None else keep_rows(data, selection.rows)


def wrap_predict(
    session: SessionContext, slot: str, memory: Memory, outcome: Outcome
) -> Outcome:
    """Return an outcome whose ``predict`` prepares new rows as the session did.

    Rows that would not have taken part get the label -1.
    """
    plan, predict = session.terms.plan(slot), outcome.predict
    schema = session.terms.dictionary_of(slot)
    if predict is None or (plan is None and schema is None):
        return outcome

    def place_fields(data: DataSource) -> Placement:
        data = select_clustered_columns(data, schema, plan)
        if plan is None:
            return predict(data)
        from clustering_protocols.shared_stages.imputation import prepare_rows

        check_field_order(data, plan.fields)
        rows = find_usable_rows(data, plan)
        if rows is None:
            return predict(prepare_rows(plan, data, memory))
        placement = predict(prepare_rows(plan, keep_rows(data, rows), memory))
        return restore_placement(placement, rows, data.n_rows)

    return replace(outcome, predict=place_fields)


def seal_envelope(
    context: PartyContext, packet: Packet, message: PeerMessage
) -> Envelope:
    """Encrypt a record for its receiver, and add a label for the analyst."""
    when = dict(packet.address.when)
    label = EnvelopeLabel(peer=message.peer, kind=message.content.kind, **when)
    binding = _binding(context, label, sender=context.slot.name, receiver=message.peer)
    peer = context.session.member(message.peer).keys
    content = message.content.encode()
    return Envelope(
        label=label, sealed=sealing.seal(content, binding, _own_keys(context), peer)
    )


def open_envelope(
    context: PartyContext, stage: Stage, envelope: Envelope
) -> PeerMessage:
    """Decrypt the record in an envelope of a stage.

    Raises EnvelopeRefused if the sender, receiver or round differs from the label.
    """
    label, session = envelope.label, context.session
    kind = next((e for e in stage.envelopes if e.kind == label.kind), None)
    if kind is None or label.peer not in session.slots:
        raise EnvelopeRefused("Its label names no known sender or kind.")
    binding = _binding(context, label, sender=label.peer, receiver=context.slot.name)
    peer = session.member(label.peer).keys
    content = sealing.open_envelope(envelope.sealed, binding, _own_keys(context), peer)
    return PeerMessage(peer=label.peer, content=kind.decode(content))


def check_envelopes_fresh(
    journal: Journal, packet: Packet, round_: int, envelopes: Sequence[Envelope]
) -> None:
    """Raise :class:`EnvelopeRefused` if envelopes are out of date.

    They are out of date if they were sealed before the party's last answer, or in a
    void attempt.
    """
    current = packet.address.round
    answered = max((r for r in journal.recent if r < current), default=0)
    attempts = (a for r, a in journal.transcript_by_attempt if r == round_)
    last = max(attempts, default=0)
    if not answered <= round_ < current or any(
        envelope.label.attempt != last for envelope in envelopes
    ):
        raise EnvelopeRefused(
            "It is older than the last answer, or belongs to a void attempt."
        )


def _own_keys(context: PartyContext) -> PartyKeys:
    session = context.session.terms.session
    return party_keys(context.entropy, session, context.slot.name)


def _binding(
    context: PartyContext, label: EnvelopeLabel, *, sender: str, receiver: str
) -> sealing.Binding:
    return sealing.Binding(
        transcript=context.transcript_at(label.round, label.attempt),
        session=context.session.terms.session,
        sender=sender,
        receiver=receiver,
        kind=label.kind,
        **dict(label.when),
    )

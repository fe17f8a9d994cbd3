"""A party's side of a session: envelopes opened, tasks answered, results read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
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
    OUTSIDE,
    Assignment,
    Selection,
    add_participation_note,
    put_back,
)
from clustering_protocols.engine import packets
from clustering_protocols.engine.analyst import check_answer
from clustering_protocols.engine.cluster_numbers import number_outcome
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.engine.stages import (
    last_stages,
    load,
    load_checked,
    shows_rows,
    stage_of,
)
from clustering_protocols.engine.task_checks import Admission
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import PartyKeys, party_keys
from clustering_protocols.shared_stages.profiles.messages import profiles_in
from clustering_protocols.terms.preparation import (
    check_fields,
    clustered_columns,
    whole_rows,
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
"""Errors after which a party answers nothing more: the analyst did not keep to the rules.

They come of what the analyst sent. What comes of the party's own data, policy or operator
(InvalidData, GuardRefused) is none of them: that may be mended, and the task answered.
"""


class ExpectedSenders(Record):
    """Memory: the slots of which envelopes have to come with the next task."""

    kind = "awaited"

    slots: list[str]


class TaskOutcome(NamedTuple):
    """What follows from a task: journal, memory, bytes to send, notes for the operator.

    ``asks`` is why the operator has to agree before the bytes are sent, if that is so;
    ``doubts`` why own rows look wrong. ``records``: the kinds in the contribution.
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
        """Return all that the operator has to agree to; nothing is asked where empty."""
        return " ".join(filter(None, (self.doubts, self.asks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyEngine:
    """One party of a session, between rounds: everything but memory and data.

    agreement: the exact bytes; the caller has checked terms and roster.
    entropy: 32 bytes from which every private draw follows.
    choices: what this party decides alone; see
        :class:`~clustering_protocols.contract.PartyContext`.
    engine: runs kernels over blocks of rows; on one thread by default.
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
        """Return what follows from a task.

        The caller writes journal, memory and contribution to disk before it sends the
        first byte; for a new attempt of the same round it calls again with the journal
        after the round, and the memory before it.

        acknowledged: whether the analyst has acknowledged the last answer: it then
            cannot say that this party was absent.

        Raises TaskRefused if the task may not follow what was answered, or others were
            told otherwise.
        Raises AgreementMismatch, EnvelopeRefused, Malformed, InvalidArray if the task
            is not for this party, or not what the protocol declares.
        """
        journal.check_going()  # before a byte of the task is read
        session, stages = load_checked(self.agreement)
        asked = task if isinstance(task, Packet) else packets.read(task)
        self._check_address(session, asked)
        stage = stage_of(stages, asked)
        record = asked.read(stage.tasks)
        admission = self._admission(asked, memory, journal, acknowledged=acknowledged)
        journal = admission.admit(admission.follow(journal, asked), asked, record)
        memory = self._receive(stages, memory, asked, journal)
        context = self._context(asked, memory, journal)
        fields = stage.exchange_of(record.kind).fields
        rows = rows_of(session, self.slot, memory, data, fields=fields)
        reply = stage.party().reply(context, record, rows)
        doubts = [
            *self._review_envelopes(stages, memory, asked, journal, data),
            reply.doubts,
        ]
        contribution = packets.write(
            asked.address,
            reply.contribution,
            envelopes=[seal_envelope(context, asked, item) for item in reply.envelopes],
        )
        check_answer(asked, packets.read(contribution), stage)
        awaited = ExpectedSenders(slots=list(reply.awaits))
        memory = _remember_records(memory, stage, reply.remember).remember([awaited])
        doubt = " ".join(filter(None, doubts))
        sent = (reply.contribution, *(item.content for item in reply.envelopes))
        return TaskOutcome(
            journal,
            memory,
            contribution,
            reply.notes,
            reply.asks,
            doubt,
            tuple(dict.fromkeys(map(type, sent))),
        )

    def shows_rows(self, task: Packet) -> bool:
        """Return whether rows were shown to those outside once a task is answered."""
        return shows_rows(load(self.agreement)[1], task)

    def conclude(
        self,
        journal: Journal,
        memory: Memory,
        result: Buffer,
        data: DataSource | None,
        *,
        acknowledged: bool = True,
    ) -> Outcome:
        """Return what the operator gets from this party's result.

        Without data :class:`NotReady` where labels are computed from the rows.
        Rows that a stage has not selected get the label -1; those that were left out as
        another party has the same people are labelled as new rows are.

        Raises TaskRefused, ProtocolFailed if the result comes before all that has to be
            asked was asked, or those who took part have not signed it.
        """
        journal.check_going()
        session, stages = load(self.agreement)
        packet = packets.read(result)
        self._check_address(session, packet)
        stage = stages[-1]
        record = packet.read(stage.results)
        admission = self._admission(packet, memory, journal, acknowledged=acknowledged)
        journal = admission.follow(journal, packet)
        admission.check_result(journal, packet)
        assigned = memory.get(Assignment)
        if (
            assigned is not None
            and assigned.result != sha256(record.encode()).hexdigest()
        ):
            raise ProtocolFailed("The result is another than labels were given of.")
        context = self._context(packet, memory, journal)
        rows = None if data is None else rows_of(session, self.slot, memory, data)
        outcome = stage.party().conclude(context, record, rows)
        outcome = wrap_predict(session, self.slot, memory, outcome)
        outcome = replace(outcome, profiles=profiles_in(memory))
        selection = memory.get(Selection)
        if selection is None:
            return outcome
        n_rows = session.member(self.slot).n_rows
        whole = put_back(outcome, selection.rows, n_rows)
        return add_participation_note(whole, len(selection.rows), n_rows)

    def foresee(self, journal: Journal, memory: Memory) -> list[Outcome | None]:
        """Return what this party knows of each run by itself, before one is chosen.

        None of runs that are not done, or whose labels come with the result.
        """
        session, stages = load(self.agreement)
        selection, found = memory.get(Selection), []
        for last in last_stages(stages):
            context = self.context(journal, memory, last.name, journal.round, 1)
            outcome = last.party().foresee(context)
            if outcome is not None:
                outcome = number_outcome(session, outcome)
                if selection is not None:
                    n_rows = session.member(self.slot).n_rows
                    outcome = put_back(outcome, selection.rows, n_rows)
            found.append(outcome)
        return found

    def follow_transcript(
        self, journal: Journal, memory: Memory, task: Buffer
    ) -> Journal:
        """Return the journal with what a task says that everybody was told.

        Raises TaskRefused if that does not follow what was told before.
        """
        asked = packets.read(task)
        admission = self._admission(asked, memory, journal, acknowledged=False)
        return admission.follow(journal, asked)

    def context(
        self, journal: Journal, memory: Memory, stage: str, round_: int, attempt: int
    ) -> PartyContext:
        """Return where this party stands in a round, as its roles see it."""
        session, stages = load(self.agreement)
        session = session.with_engine(self.engine)
        selection = memory.get(Selection)
        if selection is not None:
            session = session.with_rows(selection.n_rows)
        run = next((each.run for each in stages if each.name == stage), None)
        shared = PartyContext(
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
        )
        return shared.of_run(run)

    def _admission(
        self, asked: Packet, memory: Memory, journal: Journal, *, acknowledged: bool
    ) -> Admission:
        _, stages = load(self.agreement)
        return Admission(
            stages=stages,
            context=self._context(asked, memory, journal),
            acknowledged=acknowledged,
        )

    def _context(
        self, packet: Packet, memory: Memory, journal: Journal, stage: str = ""
    ) -> PartyContext:
        here = packet.address
        return self.context(
            journal, memory, stage or here.stage, here.round, here.attempt
        )

    def _check_address(self, session: SessionContext, packet: Packet) -> None:
        expected = (session.terms.session, session.agreement_digest, self.slot)
        address = packet.address
        if (address.session, address.agreement, address.slot) != expected:
            raise AgreementMismatch("The analyst sent a message of another session.")

    def _receive(
        self, stages: Sequence[Stage], memory: Memory, asked: Packet, journal: Journal
    ) -> Memory:
        """Open the envelopes that came with a task and let their stages keep them."""
        awaited = memory.get(ExpectedSenders)
        came = {envelope.label.peer for envelope in asked.envelopes}
        for slot in () if awaited is None else awaited.slots:
            if slot not in came:
                raise EnvelopeRefused(
                    f"The analyst withholds the envelope of {slot!r}."
                )
        for round_, sealed in group_by_round(asked.envelopes).items():
            check_fresh(journal, asked, round_, sealed)
            name = sealed[0].label.stage  # one round belongs to one stage
            stage = next((stage for stage in stages if stage.name == name), None)
            if stage is None:
                raise EnvelopeRefused(f"Stage {name!r} is not part of this session.")
            context = self._context(asked, memory, journal, name)
            opened = [open_envelope(context, stage, each) for each in sealed]
            received = stage.party().receive(context, opened)
            memory = _remember_records(memory, stage, received)
        return memory

    def _review_envelopes(
        self,
        stages: Sequence[Stage],
        memory: Memory,
        asked: Packet,
        journal: Journal,
        data: DataSource,
    ) -> Iterator[str]:
        """Yield the doubts of the stages of which envelopes have come with this task."""
        session, _ = load(self.agreement)
        came = {envelope.label.stage for envelope in asked.envelopes}
        for stage in stages:
            if stage.name in came:
                context = self._context(asked, memory, journal, stage.name)
                rows = rows_of(session, self.slot, memory, data)
                yield stage.party().review(context, rows)


def _remember_records(
    memory: Memory, stage: Stage, records: Sequence[Record]
) -> Memory:
    """Return a memory with what a stage's role wants kept: its run's, if it has one."""
    return memory.scope_to_run(stage.run).remember(records).scope_to_run(None)


def rows_of(
    session: SessionContext,
    slot: str,
    memory: Memory,
    data: DataSource,
    *,
    fields: bool = False,
) -> DataSource:
    """Return the rows that the roles of a slot see at this point of a session.

    ``fields``: as the dictionary describes them, not as the columns that are clustered.
    """
    selection = memory.get(Selection)
    rows = data if fields else _take_clustered(session, slot, memory, data)
    return rows if selection is None else keep_rows(rows, selection.rows)


def _take_clustered(
    session: SessionContext, slot: str, memory: Memory, data: DataSource
) -> DataSource:
    plan, schema = session.terms.plan(slot), session.terms.dictionary_of(slot)
    rows = clustered_columns(data, schema, plan)
    if plan is None:
        return rows
    # not above: most sessions have no gaps
    from clustering_protocols.shared_stages.imputation import prepare_rows

    return prepare_rows(plan, rows, memory)


def wrap_predict(
    session: SessionContext, slot: str, memory: Memory, outcome: Outcome
) -> Outcome:
    """Return an outcome that prepares new rows as those of the session were.

    Rows that would not have taken part get the label -1.
    """
    plan, predict = session.terms.plan(slot), outcome.predict
    schema = session.terms.dictionary_of(slot)
    if predict is None or (plan is None and schema is None):
        return outcome

    def place_fields(data: DataSource) -> Placement:
        data = clustered_columns(data, schema, plan)
        if plan is None:
            return predict(data)
        from clustering_protocols.shared_stages.imputation import prepare_rows

        check_fields(data, plan.fields)
        rows = whole_rows(data, plan)
        if rows is None:
            return predict(prepare_rows(plan, data, memory))
        found = predict(prepare_rows(plan, keep_rows(data, rows), memory))
        labels = np.full(data.n_rows, OUTSIDE, dtype=np.int64)
        labels[rows] = found.labels
        if found.distances is None:
            return Placement(labels=labels)
        distances = np.full((data.n_rows, found.distances.shape[1]), np.nan)
        distances[rows] = found.distances
        return Placement(labels=labels, distances=distances)

    return replace(outcome, predict=place_fields)


def seal_envelope(
    context: PartyContext, asked: Packet, message: PeerMessage
) -> Envelope:
    """Return a record that its receiver alone can read, with a label for the analyst."""
    when = dict(asked.address.when)
    label = EnvelopeLabel(peer=message.peer, kind=message.content.kind, **when)
    bound = _bound(context, label, sender=context.slot.name, receiver=message.peer)
    peer = context.session.member(message.peer).keys
    content = message.content.encode()
    return Envelope(
        label=label, sealed=sealing.seal(content, bound, _keys(context), peer)
    )


def open_envelope(
    context: PartyContext, stage: Stage, envelope: Envelope
) -> PeerMessage:
    """Return the record in an envelope of a stage.

    Raises EnvelopeRefused if another sealed it, for another, or for another moment.
    """
    label, session = envelope.label, context.session
    kind = next((e for e in stage.envelopes if e.kind == label.kind), None)
    if kind is None or label.peer not in session.slots:
        raise EnvelopeRefused("Its label names no known sender or kind.")
    bound = _bound(context, label, sender=label.peer, receiver=context.slot.name)
    peer = session.member(label.peer).keys
    content = sealing.open_envelope(envelope.sealed, bound, _keys(context), peer)
    return PeerMessage(peer=label.peer, content=kind.decode(content))


def group_by_round(envelopes: Sequence[Envelope]) -> dict[int, list[Envelope]]:
    """Return the envelopes of each round in which some were sealed, in that order."""
    found: dict[int, list[Envelope]] = {}
    for envelope in sorted(envelopes, key=lambda each: each.label.round):
        found.setdefault(envelope.label.round, []).append(envelope)
    return found


def check_fresh(
    journal: Journal, asked: Packet, round_: int, envelopes: Sequence[Envelope]
) -> None:
    """Refuse envelopes but those of rounds since this party's last answer.

    Each round's last attempt counts alone: what was sealed in the others was in vain.
    """
    answered = [each for each in journal.recent if each < asked.address.round]
    is_new = max(answered, default=0) <= round_ < asked.address.round
    last = max(
        (att for told, att in journal.transcript_by_attempt if told == round_),
        default=0,
    )
    if not is_new or any(each.label.attempt != last for each in envelopes):
        raise EnvelopeRefused("It was not sealed since the last answer, or in vain.")


def _keys(context: PartyContext) -> PartyKeys:
    session = context.session.terms.session
    return party_keys(context.entropy, session, context.slot.name)


def _bound(
    context: PartyContext, label: EnvelopeLabel, *, sender: str, receiver: str
) -> sealing.Binding:
    return sealing.Binding(
        transcript=context.transcript_of(label.round, label.attempt),
        session=context.session.terms.session,
        sender=sender,
        receiver=receiver,
        kind=label.kind,
        **dict(label.when),
    )

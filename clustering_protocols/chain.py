"""The chain of stages, run by either side on bytes.

The analyst service, the party SDK and the simulation all run these functions and no
others. They turn agreement, state, tasks and contributions (bytes that a database, a
disk or a network hold) into the next bytes; they relay envelopes, number rounds through
all stages and open a round again where a step declares it void.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from typing_extensions import Buffer

from clustering_protocols import packets, registry
from clustering_protocols.arrays import ByteArray, Spec
from clustering_protocols.contract import (
    Again,
    Ask,
    Finish,
    Incoming,
    Memory,
    Outcome,
    Outgoing,
    Plan,
    Stage,
    View,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import (
    AgreementMismatch,
    EnvelopeRefused,
    Malformed,
    ProtocolFailed,
)
from clustering_protocols.packets import (
    Address,
    Envelope,
    EnvelopeLabel,
    Expectation,
    Packet,
)
from clustering_protocols.records import Record
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import PartyKeys

MAX_ATTEMPTS = 5


@lru_cache(maxsize=64)
def load(agreement: bytes) -> tuple[Plan, tuple[Stage, ...]]:
    """Return plan and stages of an agreement, given its exact bytes."""
    plan = registry.plan(agreement)
    known = registry.protocol(plan.terms.protocol.name)
    return plan, tuple(known.stages(plan.params, plan.layout))


# The analyst's side


class AnalystState(Record):
    """Where the analyst stands between two rounds."""

    kind = "analyst-state"

    stage: int
    round: int
    attempt: int
    quorum: int
    stage_state: Annotated[ByteArray, Spec("bytes")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A round is open: keep the state, hand out the tasks, wait for contributions."""

    round: int
    attempt: int
    stage: str
    stage_index: int
    n_stages: int
    quorum: int
    state: bytes = field(repr=False)
    tasks: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The session is complete."""

    results: Mapping[str, bytes] = field(repr=False)
    summary: bytes | None = field(repr=False)


def begin(agreement: bytes) -> Opened | Closed:
    """Return the first round of a session whose parties have all joined."""
    plan, stages = load(agreement)
    return _enter(plan, stages, index=0, last_round=0, relay=[])


def advance(
    agreement: bytes,
    state: Buffer,
    tasks: Mapping[str, Buffer],
    contributions: Mapping[str, Buffer],
) -> Opened | Closed:
    """Return what follows from a complete round.

    Deterministic: equal bytes in, equal bytes out, whichever machine runs it and in
    whichever order the contributions came.

    Parameters
    ----------
    agreement : bytes
    state : buffer
        ``Opened.state`` of this round.
    tasks, contributions : mapping of slot to buffer
        Tasks as handed out; contributions of at least the quorum.

    Raises
    ------
    CoterieError
        If the session cannot go on; its problem is the reason of the end.
    """
    plan, stages = load(agreement)
    current = AnalystState.decode(state)
    stage = stages[current.stage]
    given = {
        s: packets.read(contributions[s]) for s in plan.slots if s in contributions
    }
    records = {
        slot: packets.check_answers(packets.read(tasks[slot]), packet, stage)
        for slot, packet in given.items()
    }
    stage_state = stage.analyst.state.decode(current.stage_state.data)
    move = stage.analyst.step(plan, stage_state, records)
    if isinstance(move, Again):
        return _open_again(current, stages, tasks, move)
    relay = [
        _relayed(slot, envelope)
        for slot, packet in given.items()
        for envelope in packet.envelopes
    ]
    return _follow(plan, stages, current.stage, current.round, move, relay)


def check_contribution(agreement: bytes, task: Buffer, contribution: Buffer) -> None:
    """Refuse bytes that do not answer a task; see :func:`packets.check_answers`."""
    plan, stages = load(agreement)
    asked, given = packets.read(task), packets.read(contribution)
    stage = _stage_of(stages, asked)
    packets.check_answers(asked, given, stage)
    here = given.address
    for label in (envelope.label for envelope in given.envelopes):
        sealed_now = (label.stage, label.round, label.attempt) == (
            here.stage,
            here.round,
            here.attempt,
        )
        if not sealed_now or label.peer not in plan.slots or label.peer == here.slot:
            raise Malformed("An envelope's label names another round or no other slot.")


def read_result(agreement: bytes, result: Buffer) -> Record:
    """Return the record in a result or summary of the last stage."""
    _, stages = load(agreement)
    return packets.read(result).read(stages[-1])


def _enter(
    plan: Plan,
    stages: Sequence[Stage],
    index: int,
    last_round: int,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened | Closed:
    move = stages[index].analyst.start(plan)
    return _follow(plan, stages, index, last_round, move, relay)


def _follow(
    plan: Plan,
    stages: Sequence[Stage],
    index: int,
    last_round: int,
    move: Ask | Finish,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened | Closed:
    """Go on in this stage, in the next one, or close."""
    if isinstance(move, Ask):
        return _open(plan, stages, index, last_round + 1, move, relay)
    if index + 1 < len(stages):
        return _enter(plan, stages, index + 1, last_round, relay)
    return _close(plan, stages, index, max(last_round, 1), move)


def _open(
    plan: Plan,
    stages: Sequence[Stage],
    index: int,
    round_: int,
    ask: Ask,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened:
    state = AnalystState(
        stage=index,
        round=round_,
        attempt=1,
        quorum=ask.quorum or len(ask.tasks),
        stage_state=np.frombuffer(ask.state.encode(), np.uint8),
    )
    tasks = {
        slot: packets.write(
            _address(plan, slot, stages[index], round_),
            task,
            expects=Expectation(
                kind=ask.expects.kind, dims=dict(ask.dims.get(slot, {}))
            ),
            envelopes=[envelope for receiver, envelope in relay if receiver == slot],
        )
        for slot, task in ask.tasks.items()
    }
    return Opened(
        round=round_,
        attempt=1,
        stage=stages[index].name,
        stage_index=index,
        n_stages=len(stages),
        quorum=state.quorum,
        state=state.encode(),
        tasks=tasks,
    )


def _open_again(
    current: AnalystState,
    stages: Sequence[Stage],
    tasks: Mapping[str, Buffer],
    move: Again,
) -> Opened:
    attempt = current.attempt + 1
    if attempt > MAX_ATTEMPTS:
        raise ProtocolFailed(
            f"Round {current.round} was void {MAX_ATTEMPTS} times: {move.reason}"
        )
    state = AnalystState(
        stage=current.stage,
        round=current.round,
        attempt=attempt,
        quorum=current.quorum,
        stage_state=np.frombuffer(move.state.encode(), np.uint8),
    )
    return Opened(
        round=current.round,
        attempt=attempt,
        stage=stages[current.stage].name,
        stage_index=current.stage,
        n_stages=len(stages),
        quorum=current.quorum,
        state=state.encode(),
        tasks={slot: packets.restamp(task, attempt) for slot, task in tasks.items()},
    )


def _close(
    plan: Plan, stages: Sequence[Stage], index: int, round_: int, move: Finish
) -> Closed:
    def packet(slot: str, record: Record) -> bytes:
        return packets.write(_address(plan, slot, stages[index], round_), record)

    return Closed(
        results={slot: packet(slot, record) for slot, record in move.results.items()},
        summary=packet("", move.summary) if move.summary else None,
    )


def _address(plan: Plan, slot: str, stage: Stage, round_: int) -> Address:
    return Address(
        session=plan.terms.session,
        agreement=plan.agreement_digest,
        slot=slot,
        stage=stage.name,
        round=round_,
        attempt=1,
    )


def _relayed(sender: str, envelope: Envelope) -> tuple[str, Envelope]:
    """Return the receiver, and the envelope with its sender on the label."""
    label = envelope.label.model_copy(update={"peer": sender})
    return envelope.label.peer, Envelope(label=label, sealed=envelope.sealed)


def _stage_of(stages: Sequence[Stage], packet: Packet) -> Stage:
    for stage in stages:
        if stage.name == packet.address.stage:
            return stage
    raise Malformed("The message names a stage that this session does not have.")


# The party's side


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyChain:
    """One party of a session, between rounds: everything but memory and data.

    Parameters
    ----------
    agreement : bytes
        The exact bytes; the caller has checked terms, roster and marks.
    slot : str
    entropy : bytes
        32 bytes from which every private draw follows.
    choices : mapping, optional
        What this party decides alone; see :class:`~clustering_protocols.contract.View`.
    """

    agreement: bytes = field(repr=False)
    slot: str
    entropy: bytes = field(repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict)

    def reply(self, memory: Memory, task: Buffer, data: DataSource) -> Answer:
        """Return the memory after this round, the contribution's bytes, and notes.

        The caller writes both to disk before it sends the first byte; for a new attempt
        of the same round it calls again with the memory before the round.

        Raises
        ------
        AgreementMismatch, EnvelopeRefused, Malformed, InvalidArray
            If the task is not for this party, or not what the protocol declares.
        """
        plan, stages = load(self.agreement)
        asked = packets.read(task)
        self._check_address(plan, asked)
        memory = self._receive(plan, stages, memory, asked)
        stage = _stage_of(stages, asked)
        view = self._view(plan, stage.name, asked, memory)
        reply = stage.party.reply(view, asked.read(stage), data)
        contribution = packets.write(
            asked.address,
            reply.contribution,
            envelopes=[self._seal(plan, asked, item) for item in reply.envelopes],
        )
        packets.check_answers(asked, packets.read(contribution), stage)
        position = Position(round=asked.address.round, attempt=asked.address.attempt)
        after = memory.remember([*reply.remember, position])
        return Answer(after, contribution, reply.notes)

    def conclude(self, memory: Memory, result: Buffer) -> Outcome:
        """Return what the operator gets from this party's result."""
        plan, stages = load(self.agreement)
        packet = packets.read(result)
        self._check_address(plan, packet)
        view = self._view(plan, stages[-1].name, packet, memory)
        return stages[-1].party.conclude(view, packet.read(stages[-1]))

    def _check_address(self, plan: Plan, packet: Packet) -> None:
        expected = (plan.terms.session, plan.agreement_digest, self.slot)
        address = packet.address
        if (address.session, address.agreement, address.slot) != expected:
            raise AgreementMismatch("The analyst sent a message of another session.")

    def _view(self, plan: Plan, stage: str, packet: Packet, memory: Memory) -> View:
        return View(
            plan=plan,
            slot=plan.layout.slot(self.slot),
            stage=stage,
            round=packet.address.round,
            attempt=packet.address.attempt,
            memory=memory,
            entropy=self.entropy,
            choices=self.choices,
        )

    def _keys(self, plan: Plan) -> PartyKeys:
        return PartyKeys(self.entropy, plan.terms.session, self.slot)

    def _seal(self, plan: Plan, asked: Packet, item: Outgoing) -> Envelope:
        here = asked.address
        label = EnvelopeLabel(
            peer=item.receiver,
            kind=item.content.kind,
            stage=here.stage,
            round=here.round,
            attempt=here.attempt,
        )
        bound = _bound(plan, label, sender=self.slot, receiver=item.receiver)
        peer = plan.member(item.receiver).keys
        content = item.content.encode()
        return Envelope(
            label=label, sealed=sealing.seal(content, bound, self._keys(plan), peer)
        )

    def _receive(
        self, plan: Plan, stages: Sequence[Stage], memory: Memory, asked: Packet
    ) -> Memory:
        """Open the envelopes that came with a task and let their stages keep them."""
        if not asked.envelopes:
            return memory
        self._check_freshness(memory, asked)
        name = asked.envelopes[0].label.stage  # one round belongs to one stage
        stage = next((stage for stage in stages if stage.name == name), None)
        if stage is None:
            raise EnvelopeRefused(f"Stage {name!r} is not part of this session.")
        opened = [self._open(plan, stage, envelope) for envelope in asked.envelopes]
        view = self._view(plan, name, asked, memory)
        return memory.remember(stage.party.receive(view, opened))

    def _check_freshness(self, memory: Memory, asked: Packet) -> None:
        """Refuse envelopes of another round than the last, or of a void attempt."""
        last = memory.recall(Position)
        sealed = {(e.label.round, e.label.attempt) for e in asked.envelopes}
        before = asked.address.round - 1
        answered = last is not None and last.round == before
        if len(sealed) > 1 or any(round_ != before for round_, _ in sealed):
            raise EnvelopeRefused("It was not sealed in the round before this one.")
        if answered and last is not None and sealed - {(before, last.attempt)}:
            raise EnvelopeRefused("It was sealed under an attempt that was void.")

    def _open(self, plan: Plan, stage: Stage, envelope: Envelope) -> Incoming:
        label = envelope.label
        kind = stage.record(label.kind)
        if kind is None or label.peer not in plan.slots:
            raise EnvelopeRefused("Its label names no known sender or kind.")
        bound = _bound(plan, label, sender=label.peer, receiver=self.slot)
        peer = plan.member(label.peer).keys
        content = sealing.open_envelope(envelope.sealed, bound, self._keys(plan), peer)
        return Incoming(sender=label.peer, content=kind.decode(content))


def _bound(
    plan: Plan, label: EnvelopeLabel, *, sender: str, receiver: str
) -> sealing.Address:
    return sealing.Address(
        agreement=plan.agreement_digest,
        session=plan.terms.session,
        stage=label.stage,
        round=label.round,
        attempt=label.attempt,
        sender=sender,
        receiver=receiver,
        kind=label.kind,
    )

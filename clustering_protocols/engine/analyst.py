"""The analyst's side of a session: rounds opened, contributions checked, closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple

import numpy as np
from typing_extensions import Buffer, TypeVar

from clustering_protocols import packets
from clustering_protocols.arrays import ByteArray, Spec
from clustering_protocols.contract import Ask, Finish, Reopen, SessionContext, Stage
from clustering_protocols.engine.stages import check_roster, load, stage_of
from clustering_protocols.errors import Malformed, ProtocolFailed
from clustering_protocols.packets import Address, Envelope, Expectation
from clustering_protocols.records import Record

MAX_ATTEMPTS = 5


class AnalystState(Record):
    """Where the analyst stands between two rounds."""

    kind = "analyst-state"

    stage: int
    round: int
    attempt: int
    quorum: int
    n_rows: dict[str, int]  # of slots of which a stage has selected rows
    stage_state: Annotated[ByteArray, Spec("bytes")]


Payload = TypeVar("Payload", default=bytes)
Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Generic[Payload]):
    """A round is open: keep the state, hand out the tasks, wait for contributions.

    Generic in what stands for state and tasks: their bytes, or the digests under which
    they are stored.
    """

    round: int
    attempt: int
    stage: str
    stage_index: int
    n_stages: int
    quorum: int
    state: Payload = field(repr=False)
    tasks: Mapping[str, Payload] = field(repr=False)
    progress: Mapping[str, Any] | None = None  # None: as before

    def stored(self, put: Callable[[Payload], Stored]) -> Opened[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Opened(
            round=self.round,
            attempt=self.attempt,
            stage=self.stage,
            stage_index=self.stage_index,
            n_stages=self.n_stages,
            quorum=self.quorum,
            state=put(self.state),
            tasks={slot: put(task) for slot, task in self.tasks.items()},
            progress=self.progress,
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return state and tasks."""
        return [self.state, *self.tasks.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Generic[Payload]):
    """The session is complete."""

    results: Mapping[str, Payload] = field(repr=False)
    summary: Payload | None = field(repr=False)

    def stored(self, put: Callable[[Payload], Stored]) -> Closed[Stored]:
        """Return the same with what ``put`` returns for each payload."""
        return Closed(
            results={slot: put(result) for slot, result in self.results.items()},
            summary=None if self.summary is None else put(self.summary),
        )

    @property
    def payloads(self) -> list[Payload]:
        """Return results and summary."""
        summary = [] if self.summary is None else [self.summary]
        return [*self.results.values(), *summary]


def begin(agreement: bytes) -> Opened | Closed:
    """Return the first round of a session whose parties have all joined."""
    session, stages = load(agreement)
    check_roster(session)
    return _enter(session, stages, index=0, last_round=0, relay=[])


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
    session, stages = load(agreement)
    current = AnalystState.decode(state)
    session = session.with_rows(current.n_rows)
    stage = stages[current.stage]
    given = {
        s: packets.read(contributions[s]) for s in session.slots if s in contributions
    }
    records = {
        slot: packets.check_answers(packets.read(tasks[slot]), packet, stage)
        for slot, packet in given.items()
    }
    role = stage.analyst()
    stage_state = role.state.decode(current.stage_state.data)
    move = role.step(session, stage_state, records)
    if isinstance(move, Reopen):
        return _open_again(session, current, stages, tasks, move)
    relay = [
        _relayed(slot, envelope)
        for slot, packet in given.items()
        for envelope in packet.envelopes
    ]
    return _follow(session, stages, current.stage, current.round, move, relay)


def prepare(agreement: bytes) -> None:
    """Import what the steps of a session need, so that none of them waits for it."""
    _, stages = load(agreement)
    for stage in stages:
        stage.analyst()


def check_contribution(agreement: bytes, task: Buffer, contribution: Buffer) -> None:
    """Refuse bytes that do not answer a task; see :func:`packets.check_answers`."""
    session, stages = load(agreement)
    asked, given = packets.read(task), packets.read(contribution)
    stage = stage_of(stages, asked)
    packets.check_answers(asked, given, stage)
    here = given.address
    for label in (envelope.label for envelope in given.envelopes):
        others = set(session.slots) - {here.slot}
        if label.when != here.when or label.peer not in others:
            raise Malformed("An envelope's label names another round or no other slot.")


def read_result(agreement: bytes, result: Buffer) -> Record:
    """Return the record in a result or summary of the last stage."""
    _, stages = load(agreement)
    return packets.read(result).read(stages[-1].results)


def _enter(
    session: SessionContext,
    stages: Sequence[Stage],
    index: int,
    last_round: int,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened | Closed:
    move = stages[index].analyst().start(session)
    return _follow(session, stages, index, last_round, move, relay)


def _follow(
    session: SessionContext,
    stages: Sequence[Stage],
    index: int,
    last_round: int,
    move: Ask | Finish,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened | Closed:
    """Go on in this stage, in the next one, or close."""
    if isinstance(move, Ask):
        return _open(session, stages, index, last_round + 1, move, relay)
    if move.n_rows:
        session = session.with_rows(move.n_rows)
        check_roster(session)
    if index + 1 < len(stages):
        return _enter(session, stages, index + 1, last_round, relay)
    return _close(session, stages, index, max(last_round, 1), move)


def _open(
    session: SessionContext,
    stages: Sequence[Stage],
    index: int,
    round_: int,
    ask: Ask,
    relay: Sequence[tuple[str, Envelope]],
) -> Opened:
    place = _Place(stage=index, round=round_, attempt=1)
    packed = _packed(session, stages, place, ask, relay)
    return _opened(session, place, ask, packed, stages)


def _open_again(
    session: SessionContext,
    current: AnalystState,
    stages: Sequence[Stage],
    tasks: Mapping[str, Buffer],
    move: Reopen,
) -> Opened:
    attempt = current.attempt + 1
    if attempt > MAX_ATTEMPTS:
        raise ProtocolFailed(
            f"Round {current.round} was void {MAX_ATTEMPTS} times: {move.reason}"
        )
    place = _Place(stage=current.stage, round=current.round, attempt=attempt)
    if move.ask is not None:
        relay = [
            (slot, envelope)
            for slot, task in tasks.items()
            for envelope in packets.read(task).envelopes
        ]
        packed = _packed(session, stages, place, move.ask, relay)
        return _opened(session, place, move.ask, packed, stages)
    same = {slot: packets.restamp(task, attempt) for slot, task in tasks.items()}
    return _opened(session, place, _Kept(move.state, current.quorum), same, stages)


class _Kept(NamedTuple):
    """An Ask that keeps the tasks."""

    state: Record
    quorum: int
    progress: None = None


class _Place(NamedTuple):
    """Where a round stands: index of its stage, number, attempt."""

    stage: int
    round: int
    attempt: int


def _packed(
    session: SessionContext,
    stages: Sequence[Stage],
    place: _Place,
    ask: Ask,
    relay: Sequence[tuple[str, Envelope]],
) -> dict[str, bytes]:
    """Return the tasks of a round as bytes, each with the envelopes for its slot."""
    stage = stages[place.stage]
    return {
        slot: packets.write(
            _address(session, slot, stage, place.round, place.attempt),
            task,
            expects=Expectation(
                kind=stage.answer_to(task.kind).kind, dims=dict(ask.dims.get(slot, {}))
            ),
            envelopes=[envelope for receiver, envelope in relay if receiver == slot],
        )
        for slot, task in ask.tasks.items()
    }


def _opened(
    session: SessionContext,
    place: _Place,
    ask: Ask | _Kept,
    tasks: Mapping[str, bytes],
    stages: Sequence[Stage],
) -> Opened:
    state = AnalystState(
        stage=place.stage,
        round=place.round,
        attempt=place.attempt,
        quorum=ask.quorum or len(tasks),
        n_rows=dict(session.selected),
        stage_state=np.frombuffer(ask.state.encode(), np.uint8),
    )
    return Opened(
        round=place.round,
        attempt=place.attempt,
        stage=stages[place.stage].name,
        stage_index=place.stage,
        n_stages=len(stages),
        quorum=state.quorum,
        state=state.encode(),
        tasks=tasks,
        progress=ask.progress,
    )


def _close(
    session: SessionContext,
    stages: Sequence[Stage],
    index: int,
    round_: int,
    move: Finish,
) -> Closed:
    def packet(slot: str, record: Record) -> bytes:
        return packets.write(_address(session, slot, stages[index], round_), record)

    return Closed(
        results={slot: packet(slot, record) for slot, record in move.results.items()},
        summary=packet("", move.summary) if move.summary else None,
    )


def _address(
    session: SessionContext, slot: str, stage: Stage, round_: int, attempt: int = 1
) -> Address:
    return Address(
        session=session.terms.session,
        agreement=session.agreement_digest,
        slot=slot,
        stage=stage.name,
        round=round_,
        attempt=attempt,
    )


def _relayed(sender: str, envelope: Envelope) -> tuple[str, Envelope]:
    """Return the receiver, and the envelope with its sender on the label."""
    label = envelope.label.model_copy(update={"peer": sender})
    return envelope.label.peer, Envelope(label=label, sealed=envelope.sealed)

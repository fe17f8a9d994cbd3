"""Handing out tasks and taking contributions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy.orm import Session as Transaction
from typing_extensions import Buffer

from analyst_service.audit import Audit
from analyst_service.auth.service import AuthService, Caller, Role, ended
from analyst_service.blobs import Draft
from analyst_service.blobs.trimming import trimmed
from analyst_service.clock import Clock
from analyst_service.contributions.repository import (
    AskedOf,
    ContributionRepository,
    OpenTask,
)
from analyst_service.models import Contribution, Session
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.together import outcomes
from clustering_protocols import hash_chain
from clustering_protocols.engine import check_contribution
from clustering_protocols.errors import (
    ContributionDiffers,
    CoterieError,
    Forbidden,
    NotReady,
    RoundClosed,
)
from clustering_protocols.wire.states import SessionState


@dataclass(frozen=True, slots=True)
class Place:
    """Which answer is meant: the slot comes from the credential, never from the path.

    The session is named as its parties do.
    """

    session: str
    round: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What an upload is checked against."""

    session_id: str
    agreement: bytes
    task_digest: str


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for a task, and of which session."""

    caller: Caller
    session: str


@dataclass(frozen=True, slots=True)
class Arriving:
    """Bytes that have been announced."""

    caller: Caller
    place: Place
    digest: str


@dataclass(frozen=True, slots=True)
class Arrived(Arriving):
    """Checked bytes that are to be stored; ``keep`` makes them a blob."""

    size: int
    keep: Callable[[], None]


Stored = tuple[Contribution, bool]  # and whether it is new


class ContributionService:
    """Tasks and contributions in one transaction.

    Requests that come together share it: each session is read once for all of them.
    """

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._sessions = SessionService(transaction, clock)
        self._rows = ContributionRepository(transaction)
        self._audit = Audit(transaction)
        self._auth = AuthService(transaction, clock)
        self._clock = clock

    def tasks(self, asking: Sequence[Asking]) -> list[OpenTask | CoterieError | None]:
        """Return each one's open task, None if it has to wait, or why it is refused."""
        valid = self._auth.still_valid(each.caller for each in asking)
        opened: dict[tuple[str | None, str], dict[str, OpenTask]] = {}

        def task(each: Asking) -> OpenTask | None:
            caller = each.caller
            _check_valid(caller, valid)
            where = (caller.session_id, each.session)
            if where not in opened:
                opened[where] = self._opened(each)
            return opened[where].get(_slot(caller))

        return outcomes(task, asking)

    def _opened(self, asking: Asking) -> dict[str, OpenTask]:
        session = self._sessions.visible(asking.caller, asking.session)
        _slot(asking.caller)
        require_alive(session)
        if session.state != SessionState.COLLECTING:
            return {}
        return self._rows.unanswered(session)

    def note_sent(self, tasks: Iterable[OpenTask]) -> None:
        """Write into the audits which slots are given their tasks, the first time."""
        now = self._clock.now()
        ordered = sorted(tasks, key=_attempt)  # of sessions too: see store
        for _, group in groupby(ordered, key=_attempt):
            if marked := self._rows.mark_sent(list(group), now):
                said = [
                    {name: getattr(task, name) for name in _SAID} for task in marked
                ]
                self._audit.extend(marked[0].session_id, "task-sent", now, said)

    def admit(
        self, arriving: Sequence[Arriving]
    ) -> list[Contribution | Asked | CoterieError]:
        """Return what each is asked; or, of a repeat, what is stored; or the refusal.

        ContributionDiffers if other bytes are stored; NotReady, RoundClosed or
        SessionOver if nothing is, and this attempt is not open for the caller.
        """
        sessions: dict[tuple[str, str], Session] = {}

        def admitted(each: Arriving) -> Contribution | Asked:
            if (where := _session(each)) not in sessions:
                found = self._sessions.visible(each.caller, each.place.session)
                _slot(each.caller)  # only a party's session is what its id says
                sessions[where] = found
            session, place = sessions[where], each.place
            here = (session.id, place.round, place.attempt, _slot(each.caller))
            asked = self._rows.asked(*here)
            if asked is None or asked.is_answered:
                stored = self._rows.contribution(*here)
                if stored is not None:
                    return _same(stored, each.digest)
            return _asked(session, place, asked)

        return outcomes(admitted, arriving)

    def is_complete(self, session_id: str) -> bool:
        """Return whether every slot that was asked has answered."""
        return self._rows.is_complete(session_id)

    def store(self, arrived: Sequence[Arrived]) -> list[Stored | CoterieError]:
        """Store checked contributions; return each, or why it is refused.

        Sessions are locked in one order for all: transactions that wait for each other
        could wait in a circle.
        """
        valid = self._auth.still_valid(each.caller for each in arrived)
        order = sorted(range(len(arrived)), key=lambda i: _session(arrived[i]))
        found: dict[int, Stored | CoterieError] = {}
        for _, indices in groupby(order, key=lambda i: _session(arrived[i])):
            here = list(indices)
            try:
                stored = self._store([arrived[i] for i in here], valid)
            except CoterieError as refused:  # of them all: their session is gone
                stored = [refused] * len(here)
            found.update(zip(here, stored, strict=True))
        return [found[i] for i in range(len(arrived))]

    def _store(
        self, arrived: Sequence[Arrived], valid: Container[str]
    ) -> list[Stored | CoterieError]:
        """Store what came for one session, behind one lock."""
        first, now = arrived[0], self._clock.now()
        session = self._sessions.visible(first.caller, first.place.session, lock=True)
        answers = self._rows.answers(session)
        fresh: list[Contribution] = []

        def stored(each: Arrived) -> Stored:
            _check_valid(each.caller, valid)
            slot, place = _slot(each.caller), each.place
            is_open = (place.round, place.attempt) == (session.round, session.attempt)
            known = (
                answers.get(slot)
                if is_open
                else self._rows.contribution(
                    session.id, place.round, place.attempt, slot
                )
            )
            if known is not None:
                return _same(known, each.digest), False
            _check_open(session, place)
            each.keep()
            answers[slot] = _contribution(session, each, now)
            fresh.append(answers[slot])
            return answers[slot], True

        found = outcomes(stored, arrived)
        self._note_stored(session.id, fresh, now)
        return found

    def _note_stored(
        self, session_id: str, fresh: Sequence[Contribution], now: datetime
    ) -> None:
        if not fresh:
            return
        said = [{name: getattr(each, name) for name in _SAID} for each in fresh]
        noted = self._audit.extend(session_id, "contribution", now, said)
        for each, line in zip(fresh, noted, strict=True):
            each.sequence, each.entry = line.number, hash_chain.digest(line.line)
        self._rows.add_all(fresh)


_SAID = ("slot", "round", "attempt", "digest")


def _attempt(task: OpenTask) -> tuple[str, int, int]:
    return task.session_id, task.round, task.attempt


def _session(arrived: Arriving) -> tuple[str, str]:
    return arrived.caller.session_id or "", arrived.place.session


def _check_valid(caller: Caller, valid: Container[str]) -> None:
    if caller.credential_id not in valid:
        raise ended()


def _same(found: Contribution, digest: str) -> Contribution:
    """Return what is stored, if it is the same bytes."""
    if found.digest != digest:
        raise ContributionDiffers(
            f"Round {found.round}, attempt {found.attempt} was answered before."
        )
    return found


def _contribution(session: Session, arrived: Arrived, now: datetime) -> Contribution:
    return Contribution(
        session_id=session.id,
        slot=_slot(arrived.caller),
        round=arrived.place.round,
        attempt=arrived.place.attempt,
        digest=arrived.digest,
        size=arrived.size,
        received_at=now,
    )


def check_draft(asked: Asked, draft: Draft, read: Callable[[str], Buffer]) -> None:
    """Refuse bytes that do not answer the task, before anything is kept."""
    content = draft.map()
    with trimmed(content):
        check_contribution(asked.agreement, read(asked.task_digest), content)


def _slot(caller: Caller) -> str:
    caller.require(Role.PARTY)
    if caller.slot is None:
        raise Forbidden("It needs the token of a party.")
    return caller.slot


def _asked(session: Session, place: Place, task: AskedOf | None) -> Asked:
    """Return what is asked, if this round and attempt are open."""
    _check_open(session, place)
    if task is None or session.agreement is None:
        raise RoundClosed(_where(session))
    return Asked(session.id, session.agreement, task.digest)


def _check_open(session: Session, place: Place) -> None:
    require_alive(session)
    if session.state == SessionState.RECRUITING:
        raise NotReady("The session is recruiting; no round is open yet.")
    if (session.state, session.round, session.attempt) != (
        SessionState.COLLECTING,
        place.round,
        place.attempt,
    ):
        raise RoundClosed(_where(session))


def _where(session: Session) -> str:
    if session.state == SessionState.COLLECTING:
        return f"Open is round {session.round}, attempt {session.attempt}."
    return f"The session is {session.state}; no round is open."

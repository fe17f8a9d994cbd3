"""Handing out tasks and taking contributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session as Transaction
from typing_extensions import Buffer

from analyst_service.audit import Audit
from analyst_service.auth.service import AuthService, Caller, Role
from analyst_service.blobs import Draft
from analyst_service.blobs.trimming import trimmed
from analyst_service.clock import Clock
from analyst_service.contributions.repository import ContributionRepository
from analyst_service.models import Contribution, Session, Task
from analyst_service.sessions.service import SessionService, require_alive
from clustering_protocols import hash_chain
from clustering_protocols.engine import check_contribution
from clustering_protocols.errors import (
    ContributionDiffers,
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


class ContributionService:
    """Tasks and contributions in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._sessions = SessionService(transaction, clock)
        self._rows = ContributionRepository(transaction)
        self._audit = Audit(transaction)
        self._auth = AuthService(transaction, clock)
        self._clock = clock

    def task(self, caller: Caller, session_id: str) -> Task | None:
        """Return the caller's open task, or None if it has to wait."""
        self._auth.confirm(caller)
        session = self._sessions.visible(caller, session_id)
        slot = _slot(caller)
        require_alive(session)
        if session.state != SessionState.COLLECTING:
            return None
        here = (session.id, session.round, session.attempt, slot)
        if self._rows.contribution(*here) is not None:
            return None
        return self._rows.task(*here)

    def note_sent(self, task: Task) -> None:
        """Write into the audit that a slot was given its task, the first time."""
        now = self._clock.now()
        if self._rows.mark_sent(task, now):
            here = {"slot": task.slot, "round": task.round, "attempt": task.attempt}
            self._audit.append(
                task.session_id, "task-sent", now, **here, digest=task.digest
            )

    def admit(
        self, caller: Caller, place: Place, digest: str, *, lock: bool = False
    ) -> Contribution | Asked:
        """Return what is asked; or, of a repeat, what is stored.

        Raises
        ------
        ContributionDiffers
            If other bytes are stored.
        NotReady, RoundClosed, SessionOver
            If nothing is stored, and this attempt is not open for the caller.
        """
        session = self._sessions.visible(caller, place.session, lock=lock)
        here = (session.id, place.round, place.attempt, _slot(caller))
        found = self._rows.contribution(*here)
        if found is None:
            return _asked(session, place, self._rows.task(*here))
        if found.digest != digest:
            raise ContributionDiffers(
                f"Round {place.round}, attempt {place.attempt} was answered before."
            )
        return found

    def is_complete(self, session_id: str) -> bool:
        """Return whether every slot that was asked has answered."""
        return self._rows.is_complete(session_id)

    def store(
        self, caller: Caller, place: Place, digest: str, size: int
    ) -> tuple[Contribution, bool]:
        """Store a checked contribution; return it and whether it is new."""
        self._auth.confirm(caller)
        asked = self.admit(caller, place, digest, lock=True)
        if isinstance(asked, Contribution):
            return asked, False
        now = self._clock.now()
        here = {"slot": _slot(caller), "round": place.round, "attempt": place.attempt}
        noted = self._audit.append(
            asked.session_id, "contribution", now, **here, digest=digest
        )
        contribution = Contribution(
            session_id=asked.session_id,
            **here,
            digest=digest,
            size=size,
            received_at=now,
            sequence=noted.number,
            entry=hash_chain.digest(noted.line),
        )
        self._rows.add(contribution)
        return contribution, True


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


def _asked(session: Session, place: Place, task: Task | None) -> Asked:
    """Return what is asked, if this round and attempt are open."""
    require_alive(session)
    if session.state == SessionState.RECRUITING:
        raise NotReady("The session is recruiting; no round is open yet.")
    is_open = (session.state, session.round, session.attempt) == (
        SessionState.COLLECTING,
        place.round,
        place.attempt,
    )
    if task is None or not is_open or session.agreement is None:
        raise RoundClosed(_where(session))
    return Asked(session.id, session.agreement, task.digest)


def _where(session: Session) -> str:
    if session.state == SessionState.COLLECTING:
        return f"Open is round {session.round}, attempt {session.attempt}."
    return f"The session is {session.state}; no round is open."

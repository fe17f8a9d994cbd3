"""Handing out tasks and taking contributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session as Unit
from typing_extensions import Buffer

from analyst_service.auth.service import Caller, Role
from analyst_service.blobs import Draft
from analyst_service.clock import Clock
from analyst_service.contributions.repository import ContributionRepository
from analyst_service.models import Contribution, Session
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.sessions.states import State
from clustering_protocols.chain import check_contribution
from clustering_protocols.errors import ContributionDiffers, Forbidden, RoundClosed


@dataclass(frozen=True, slots=True)
class Place:
    """Which answer is meant: the slot comes from the credential, never from the path."""

    session_id: str
    round: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What an upload is checked against."""

    agreement: bytes
    task_digest: str


class ContributionService:
    """Tasks and contributions in one transaction."""

    def __init__(self, unit: Unit, clock: Clock) -> None:
        self._sessions = SessionService(unit, clock)
        self._rows = ContributionRepository(unit)
        self._clock = clock

    def task_digest(self, caller: Caller, session_id: str) -> str | None:
        """Return the blob of the caller's open task, or None if it has to wait."""
        session = self._sessions.visible(caller, session_id)
        slot = _slot(caller)
        require_alive(session)
        if session.state != State.COLLECTING:
            return None
        here = (session.id, session.round, session.attempt, slot)
        if self._rows.contribution(*here) is not None:
            return None
        task = self._rows.task(*here)
        return task.digest if task else None

    def stored(self, caller: Caller, place: Place, digest: str) -> Contribution | None:
        """Return what is stored already, if it is the same; refuse if it differs."""
        self._sessions.visible(caller, place.session_id)
        found = self._find(caller, place)
        if found is not None and found.digest != digest:
            raise ContributionDiffers(
                f"Round {place.round}, attempt {place.attempt} was answered before."
            )
        return found

    def require_open(self, caller: Caller, place: Place) -> Asked:
        """Return what is asked, if this round and attempt are open for the caller."""
        session = self._sessions.visible(caller, place.session_id, lock=True)
        require_alive(session)
        task = self._rows.task(session.id, place.round, place.attempt, _slot(caller))
        is_open = (session.state, session.round, session.attempt) == (
            State.COLLECTING,
            place.round,
            place.attempt,
        )
        if task is None or not is_open or session.agreement is None:
            raise RoundClosed(_where(session))
        return Asked(session.agreement, task.digest)

    def store(
        self, caller: Caller, place: Place, digest: str, size: int
    ) -> tuple[Contribution, bool]:
        """Store a checked contribution; return it and whether it is new."""
        self.require_open(caller, place)
        found = self.stored(caller, place, digest)
        if found is not None:
            return found, False
        contribution = Contribution(
            session_id=place.session_id,
            round=place.round,
            attempt=place.attempt,
            slot=_slot(caller),
            digest=digest,
            size=size,
            received_at=self._clock.now(),
        )
        self._rows.add(contribution)
        return contribution, True

    def _find(self, caller: Caller, place: Place) -> Contribution | None:
        return self._rows.contribution(
            place.session_id, place.round, place.attempt, _slot(caller)
        )


def check_draft(asked: Asked, draft: Draft, read: Callable[[str], Buffer]) -> None:
    """Refuse bytes that do not answer the task, before anything is kept."""
    check_contribution(asked.agreement, read(asked.task_digest), draft.map())


def _slot(caller: Caller) -> str:
    caller.require(Role.PARTY)
    if caller.slot is None:
        raise Forbidden("It needs the token of a party.")
    return caller.slot


def _where(session: Session) -> str:
    if session.state == State.COLLECTING:
        return f"Open is round {session.round}, attempt {session.attempt}."
    return f"The session is {session.state}; no round is open."

"""Parties that stop for good, and what becomes of their sessions."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.clock import Clock
from analyst_service.sessions.repository import SessionRepository
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.storage.models import Session
from analyst_service.transactions.audit import Audit
from clustering_protocols.catalogue import protocol
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.session_terms import check_terms
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import Event, SessionState, StopReason
from clustering_protocols.wire.stop_reasons import describe_stop


class PartyStops:
    """Stops of parties in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._service = SessionService(transaction, clock)
        self._sessions = SessionRepository(transaction)
        self._audit = Audit(transaction)
        self._clock = clock

    def stop(self, caller: Caller, session_id: str, reason: StopReason) -> None:
        """Note that the caller's own party stopped for good; a repeat changes nothing.

        Raises PartyStopped if it stopped already, and gave another reason.
        Raises SessionOver if the session ended before.
        """
        session = self._service.visible(caller, session_id, lock=True)
        caller.require(Role.PARTY)
        [own] = (m for m in self._service.members(session) if m.slot == caller.slot)
        if own.stopped == reason:
            return
        self._service.require_going(session, own.slot)
        require_alive(session)
        own.stopped = reason.value
        now = self._clock.now()
        self._audit.append(
            session.id, "stopped", now, slot=own.slot, reason=reason.value
        )
        self.go_on_without(session.id)

    def go_on_without(self, session_id: str) -> None:
        """Ask nothing more of parties that stopped; end a session that needs them."""
        stopped = self._sessions.find_stopped(session_id)
        if not stopped:
            return
        session = self._sessions.get(session_id, lock=True)
        if session is None:
            return
        self._sessions.withdraw_tasks(session, stopped)
        if self._needs(session, stopped):
            self._sessions.move(
                session,
                Event.PARTY_STOPPED,
                self._clock.now(),
                reason=Problem.PARTY_STOPPED.slug,
                detail=" ".join(
                    describe_stop(slot, StopReason(word))
                    for slot, word in stopped.items()
                ),
            )

    def _needs(self, session: Session, stopped: Mapping[str, str]) -> bool:
        """Return whether a session cannot go on without the parties that stopped.

        While the analyst works nobody is needed: the next round decides.
        """
        if session.state == SessionState.STEPPING:
            return False
        if session.state == SessionState.COLLECTING:
            return len(self._sessions.find_asked(session)) < session.quorum
        if session.state == SessionState.CHOOSING:
            terms = read_terms(session.terms)
            known, params = protocol(terms.protocol.name), check_terms(terms)
            n_left = len(terms.layout.slots) - len(stopped)
            return n_left < known.quorum(params, terms.layout)
        return True

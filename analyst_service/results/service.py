"""Who may read which result."""

from __future__ import annotations

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.clock import Clock
from analyst_service.results.repository import ResultRepository
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.storage.models import Session
from analyst_service.transactions.audit import Audit
from clustering_protocols.common.errors import NotFound, NotReady
from clustering_protocols.wire.states import SessionState


class ResultService:
    """Results in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._sessions = SessionService(transaction, clock)
        self._results = ResultRepository(transaction)
        self._audit = Audit(transaction)
        self._clock = clock

    def hand_out(self, caller: Caller, session_id: str) -> str:
        """Return the digest of the caller's result, and audit the first delivery."""
        session = self._sessions.visible(caller, session_id)
        digest = self._digest(caller, session)
        now = self._clock.now()
        if self._results.mark_sent(session.id, caller.slot, now):
            self._audit.append(
                session.id, "result-sent", now, slot=caller.slot, digest=digest
            )
        return digest

    def _digest(self, caller: Caller, session: Session) -> str:
        """Return the blob of the party's own result, or of the coordinator's summary."""
        if session.state != SessionState.COMPLETED:
            require_alive(session)
            raise NotReady("The session is not complete.")
        if caller.role is Role.PARTY:
            digest = self._results.digest(session.id, caller.slot or "")
        else:
            digest = session.summary_digest
        if digest is None:
            raise NotFound("This session has no result for this credential.")
        return digest

"""Open sessions that this release cannot continue with.

A protocol whose version has risen, a risk that is gone: no party of this release takes
part, and no step could be taken. They would wait until their deadline.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session as Transaction

from analyst_service.clock import Clock
from analyst_service.sessions.repository import SessionRepository
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.session_terms import check_terms, check_version
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import Event


class OutdatedSession(NamedTuple):
    """A session that was ended, the state that it was in, and the reason."""

    session_id: str
    state: str
    reason: str


def end_outdated(transaction: Transaction, clock: Clock) -> list[OutdatedSession]:
    """End the open sessions whose terms this release refuses; return them by id.

    Parties and coordinator read the reason: version-mismatch, and what is refused.
    """
    sessions = SessionRepository(transaction)
    ended = []
    for session in sessions.alive():
        refused = _refusal(session.terms)
        if refused is None:
            continue
        here = OutdatedSession(session.id, session.state, refused)
        if sessions.move(
            session,
            Event.CANCEL,
            clock.now(),
            reason=Problem.VERSION_MISMATCH.slug,
            detail=refused,
        ):
            ended.append(here)
    return ended


def _refusal(terms: bytes) -> str | None:
    """Return why this release refuses terms; None where it continues with them."""
    try:
        read = read_terms(terms)
        check_version(read)
        check_terms(read)
    except CoterieError as error:
        return error.detail
    return None

"""From what the service knows to what its pages show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from analyst_service.auth.service import Caller, Role
from analyst_service.dashboard.service import Visitor, visit_id
from analyst_service.sessions.session_lists import STATES, ListedSession, Page
from analyst_service.storage.models import BrowserVisit, Credential, Session
from clustering_protocols.common.errors import AuditBroken, CoterieError
from clustering_protocols.numerics.profiles import Profiles
from clustering_protocols.records import hash_chain
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.identities import Institution, fingerprint
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import OVER, SessionState
from coterie_pages.models import SessionReport, TermsSheet
from coterie_pages.models.screens import (
    Chain,
    KeyRow,
    Keys,
    OneSession,
    SessionFilter,
    SessionRow,
    Sessions,
    VisitRow,
    Visits,
)
from coterie_pages.views.result_views import n_clusters_of, result_of
from coterie_pages.views.session_progress import (
    describe_status,
    line_of,
    seats_shown,
    standing_of,
)
from coterie_pages.views.terms_sheet import sheet_of, versions_of
from coterie_pages.views.timelines import timeline_of

_MOST_NAMES: Final = 3
_MOST_LINES: Final = 200


def sessions_page(
    caller: Caller, found: Page, filter_: SessionFilter, now: datetime, *, after: str
) -> Sessions:
    """Return a page of a list of sessions, which began behind a cursor."""
    query = {name: value for name, value in filter_ if value}
    following = urlencode({**query, "after": found.following})
    return Sessions(
        rows=tuple(map(_row, found.lines)),
        states=STATES,
        filter=filter_,
        by_owner=caller.role is Role.ADMINISTRATOR,
        first=f"?{urlencode(query)}" if after else "",
        following=f"?{following}" if found.following else "",
        now=now,
    )


def _row(listed: ListedSession) -> SessionRow:
    session = listed.session
    return SessionRow(
        id=listed.name,
        title=session.title,
        owner=listed.owner,
        protocol=listed.protocol,
        state=session.state,
        reason=session.reason or "",
        round=session.round,
        awaited=listed.awaited[:_MOST_NAMES],
        n_awaited=len(listed.awaited),
        since=session.changed_at,
        deadline=session.deadline,
        created_at=session.created_at,
        over=SessionState(session.state) in OVER,
    )


def session_page(
    session: Session,
    status: SessionStatus,
    lines: Sequence[str],
    summary: Record | None,
    analyst: Institution,
    now: datetime,
) -> OneSession:
    """Return the page of one session.

    lines: its whole audit.
    summary: what the coordinator is told of the result, once there is one.
    """
    terms = read_terms(session.terms)
    entries, chain = _check_chain(lines)
    slots = [slot.name for slot in status.slots]
    return OneSession(
        report=report_of(session, status, entries, summary, analyst),
        standing=standing_of(status, now),
        timeline=timeline_of(entries, slots, now),
        chain=chain,
        n_clusters=() if terms.evaluation is None else terms.evaluation.n_clusters,
    )


def report_of(
    session: Session,
    status: SessionStatus,
    entries: Sequence[Mapping[str, Any]],
    summary: Record | None,
    analyst: Institution,
    *,
    most_lines: int = _MOST_LINES,
) -> SessionReport:
    """Return what a session's report says, with the last lines of its audit."""
    terms = read_terms(session.terms)
    told = {} if summary is None else result_of(summary, n_clusters_of(terms, status))
    profiles = Profiles.model_validate({"profiles": session.profiles or []})
    return SessionReport(
        **describe_status(status),
        sheet=_sheet(session.terms, terms),
        seats=tuple(seats_shown(status, terms.layout)),
        profiles=profiles.profiles,
        audit=tuple(map(line_of, entries[-most_lines:])),
        signed_by=fingerprint(analyst.key),
        versions=versions_of(terms),
        **told,
    )


def _sheet(text: bytes, terms: Terms) -> TermsSheet | None:
    """Return the sheet of terms; None for those of a release that computed otherwise."""
    known = {} if terms.identities.analyst is None else {terms.identities.analyst: ""}
    try:
        return sheet_of(text, terms, known)
    except CoterieError:
        return None


def _check_chain(lines: Sequence[str]) -> tuple[list[dict[str, Any]], Chain]:
    """Return what the lines of an audit say, up to one that does not follow."""
    entries: list[dict[str, Any]] = []
    try:
        entries.extend(hash_chain.read(lines))
    except AuditBroken as error:
        return entries, Chain(lines=len(lines), broken=error.detail)
    return entries, Chain(lines=len(lines))


def keys_page(
    found: Iterable[tuple[Credential, Role]],
    caller: Caller,
    now: datetime,
    made: tuple[str, str] = ("", ""),
) -> Keys:
    """Return the page of keys; ``made``: for whom a secret is, and the secret."""
    rows = tuple(
        KeyRow(
            id=credential.id,
            role=role.value,
            label=credential.label,
            created_at=credential.created_at,
            last_used_at=credential.last_used_at,
            expires_at=credential.expires_at,
            state=_state(credential, now),
            own=credential.id == caller.credential_id,
        )
        for credential, role in found
    )
    return Keys(rows=rows, made_for=made[0], made=made[1])


def visits_page(found: Iterable[BrowserVisit], visitor: Visitor) -> Visits:
    """Return the page of a visitor's own visits."""
    rows = tuple(
        VisitRow(
            id=visit_id(visit),
            key=visit.credential_id,
            began=visit.created_at,
            ends=visit.expires_at,
            own=visit_id(visit) == visitor.visit_id,
        )
        for visit in found
    )
    return Visits(rows=rows)


def _state(credential: Credential, now: datetime) -> Any:
    if credential.revoked_at is not None:
        return "revoked"
    return "valid" if now < credential.expires_at else "ended"

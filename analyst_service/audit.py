"""The audit of a session: a hash chain that records who sent or received which digest.

Each line is written in the same transaction as the event that it records, so that
neither can be stored without the other. A line contains no payload, token or row id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import AuditLine, Session, table
from clustering_protocols.records import hash_chain
from clustering_protocols.wire.states import Event


class AuditEntry(NamedTuple):
    """A line of a session's audit, together with its line number."""

    session_id: str
    number: int
    line: str


def state_digests(db: Transaction, session_id: str) -> set[str]:
    """Return the digests of all states that a session has had."""
    events = (Event.ROUND_OPENED.value, Event.RUNS_DONE.value)
    has_state = sa.or_(*(AuditLine.line.contains(event) for event in events))
    query = sa.select(AuditLine.line)
    lines = db.scalars(query.where(AuditLine.session_id == session_id, has_state))
    entries = [entry for entry in map(json.loads, lines) if entry["event"] in events]
    return {entry["digest"] for entry in entries if entry.get("digest")}


def add_line(
    db: Transaction, session_id: str, event: str, at: datetime, **fields: Any
) -> None:
    """Append a line to a session's audit, and lock the session's row.

    **fields: further fields of the line, such as slot, round and digest; a field that
        is None is omitted.
    """
    add_lines(db, event, at, [(session_id, fields)])


def add_lines(
    db: Transaction,
    event: str,
    at: datetime,
    entries: Sequence[tuple[str, Mapping[str, Any]]],
) -> list[AuditEntry]:
    """Append lines to the audits of sessions, and return them in the same order.

    entries: for each line the id of its session, and its fields as in :func:`add_line`.
    """
    if not entries:
        return []
    session_ids = {session_id for session_id, _ in entries}
    lock_sessions(db, session_ids)
    # Query after locking: a statement sees only what was committed before it began.
    rows = db.execute(_LAST, {"session_ids": list(session_ids)})
    last = {row.id: (row.name, row.number or 0, row.line) for row in rows}
    written = []
    for session_id, fields in entries:
        name, number, line = last[session_id]
        content = {"session": name, "event": event, "at": at.isoformat(), **fields}
        present = {key: value for key, value in content.items() if value is not None}
        line = hash_chain.write(line, number + 1, present)
        last[session_id] = name, number + 1, line
        written.append(AuditEntry(session_id, number + 1, line))
    db.execute(_INSERT, [entry._asdict() for entry in written])
    return written


def lock_sessions(db: Transaction, session_ids: Collection[str]) -> None:
    """Lock the rows of these sessions until the transaction ends.

    All transactions lock sessions in the same order, so that they cannot deadlock. On
    SQLite this does nothing, because only one transaction can write at a time.
    """
    unlocked = set(session_ids) - _locked_session_ids(db)
    if unlocked and db.connection().dialect.name == "postgresql":
        db.execute(_LOCK, {"session_ids": list(unlocked)})
        record_locked_sessions(db, unlocked)


def record_locked_sessions(db: Transaction, session_ids: Iterable[str]) -> None:
    """Record that the transaction has already locked the rows of these sessions."""
    _locked_session_ids(db).update(session_ids)


def _locked_session_ids(db: Transaction) -> set[str]:
    locked: set[str] = db.info.setdefault("coterie_locked_sessions", set())
    return locked


# These statements are built only once, because every contribution executes them.
_SESSIONS, _AUDIT = table(Session), table(AuditLine)
_INSERT = sa.insert(_AUDIT)
_OTHER = _AUDIT.alias("other")
_IN_SESSIONS = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
_LOCK = (
    sa.select(_SESSIONS.c.id)
    .where(_IN_SESSIONS)
    .order_by(_SESSIONS.c.id)
    .with_for_update()
)
_IS_LAST = sa.and_(
    _AUDIT.c.session_id == _SESSIONS.c.id,
    _AUDIT.c.number
    == sa.select(sa.func.max(_OTHER.c.number))
    .where(_OTHER.c.session_id == _SESSIONS.c.id)
    .correlate(_SESSIONS)
    .scalar_subquery(),
)
_LAST = (
    sa.select(_SESSIONS.c.id, _SESSIONS.c.name, _AUDIT.c.number, _AUDIT.c.line)
    .select_from(_SESSIONS.outerjoin(_AUDIT, _IS_LAST))
    .where(_IN_SESSIONS)
)

"""The audit of a session: who sent or received which digest when, as a chain of lines.

A line is written in the transaction of the event that it records, so neither exists
alone. It holds no payload, token or row id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import AuditLine, Session, table
from clustering_protocols.records import hash_chain


class AuditEntry(NamedTuple):
    """A line of an audit, and its number."""

    number: int
    line: str


def append(
    db: Transaction, session_id: str, event: str, at: datetime, **fields: Any
) -> None:
    """Append a line; the session is locked until the transaction ends.

    **fields: slot, round, attempt, digest, reason, …; fields that are None are omitted.
    """
    extend(db, event, at, {session_id: [fields]})


def extend(
    db: Transaction,
    event: str,
    at: datetime,
    entries: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[AuditEntry]]:
    """Append lines to the audits of several sessions; see :func:`append`."""
    if not entries:
        return {}
    lock_sessions(db, entries)
    written: dict[str, list[AuditEntry]] = {}
    # after locking, because a statement sees what was committed before it began
    rows = db.execute(_LAST, {"session_ids": list(entries)})
    for session_id, name, number, last_line in rows:
        common = {"session": name, "event": event, "at": at.isoformat()}
        last, written[session_id] = last_line, []
        for at_number, fields in enumerate(
            entries[session_id], start=1 + (number or 0)
        ):
            present = {
                name: value for name, value in fields.items() if value is not None
            }
            last = hash_chain.write(last, at_number, {**common, **present})
            written[session_id].append(AuditEntry(at_number, last))
    lines = [
        {"session_id": session_id, **entry._asdict()}
        for session_id, session_entries in written.items()
        for entry in session_entries
    ]
    db.execute(_INSERT, lines)
    return written


def lock_sessions(db: Transaction, session_ids: Collection[str]) -> None:
    """Lock these sessions' rows until the transaction ends.

    All transactions lock sessions in the same order, so that they cannot deadlock. On
    SQLite only one transaction writes at a time anyway.
    """
    unlocked = set(session_ids) - _locked_sessions(db)
    if unlocked and db.connection().dialect.name == "postgresql":
        db.execute(_LOCK, {"session_ids": list(unlocked)})
        note_locked(db, unlocked)


def note_locked(db: Transaction, session_ids: Iterable[str]) -> None:
    """Remember that a transaction has locked these sessions' rows."""
    _locked_sessions(db).update(session_ids)


def _locked_sessions(db: Transaction) -> set[str]:
    locked: set[str] = db.info.setdefault("coterie_locked_sessions", set())
    return locked


# Built once, because every contribution executes these statements.
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

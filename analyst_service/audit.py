"""The audit of a session: who sent or received which digest when, as a chain of lines.

A line is written in the transaction of what it records, so neither stands without the
other. No payload, token or id of a row is in it.
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
    """A line that was written."""

    number: int
    line: str


def append(
    db: Transaction, session_id: str, event: str, at: datetime, **fields: Any
) -> None:
    """Write what happened; the session is locked until the transaction ends.

    **fields: slot, round, attempt, digest, reason: what there is to say; None is left
        out.
    """
    extend(db, event, at, {session_id: [fields]})


def extend(
    db: Transaction,
    event: str,
    at: datetime,
    entries: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[AuditEntry]]:
    """Write what happened to several, of several sessions; see :func:`append`."""
    if not entries:
        return {}
    lock_sessions(db, entries)
    written: dict[str, list[AuditEntry]] = {}
    # behind the lock: a statement sees what was committed when it began
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
        for session_id, noted in written.items()
        for entry in noted
    ]
    db.execute(_LINES, lines)
    return written


def lock_sessions(db: Transaction, session_ids: Collection[str]) -> None:
    """Let nobody else write of these sessions until the transaction ends.

    They are locked in one order for all: transactions that wait for each other could
    wait in a circle. On SQLite one transaction writes at a time anyway.
    """
    free = set(session_ids) - _held_sessions(db)
    if free and db.connection().dialect.name == "postgresql":
        db.execute(_LOCKED, {"session_ids": list(free)})
        hold(db, free)


def hold(db: Transaction, session_ids: Iterable[str]) -> None:
    """Remember which sessions' rows a transaction has locked: once is enough."""
    _held_sessions(db).update(session_ids)


def _held_sessions(db: Transaction) -> set[str]:
    held: set[str] = db.info.setdefault("coterie_held_sessions", set())
    return held


# of every answer, so built once
_SESSIONS, _AUDIT = table(Session), table(AuditLine)
_LINES = sa.insert(_AUDIT)
_OTHER = _AUDIT.alias("other")
_HERE = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
_LOCKED = (
    sa.select(_SESSIONS.c.id).where(_HERE).order_by(_SESSIONS.c.id).with_for_update()
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
    .where(_HERE)
)

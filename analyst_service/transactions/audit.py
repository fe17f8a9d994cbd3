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

from analyst_service.storage.models import AuditLine, Session, table
from clustering_protocols.records import hash_chain


class AuditEntry(NamedTuple):
    """A line that was written."""

    number: int
    line: str


class Audit:
    """The audits of all sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(
        self, session_id: str, event: str, at: datetime, **fields: Any
    ) -> AuditEntry:
        """Write what happened; the session is locked until the transaction ends.

        **fields: slot, round, attempt, digest, reason: what there is to say; None is
            left out.
        """
        return self.extend(event, at, {session_id: [fields]})[session_id][0]

    def extend(
        self,
        event: str,
        at: datetime,
        entries: Mapping[str, Sequence[Mapping[str, Any]]],
    ) -> dict[str, list[AuditEntry]]:
        """Write what happened to several, of several sessions; see :meth:`append`."""
        if not entries:
            return {}
        self.lock(entries)
        here = {"session_ids": list(entries)}
        written: dict[str, list[AuditEntry]] = {}
        # behind the lock: a statement sees what was committed when it began
        for session_id, name, number, last in self._transaction.execute(_LAST, here):
            said = {"session": name, "event": event, "at": at.isoformat()}
            written[session_id] = _follow(number, last, said, entries[session_id])
        lines = [
            {"session_id": session_id, **noted._asdict()}
            for session_id, each in written.items()
            for noted in each
        ]
        self._transaction.execute(_LINES, lines)
        return written

    def lock(self, session_ids: Collection[str]) -> None:
        """Let nobody else write of these sessions until the transaction ends.

        They are locked in one order for all: transactions that wait for each other could
        wait in a circle. On SQLite one transaction writes at a time anyway.
        """
        free = [
            each
            for each in session_ids
            if each not in _read_held_sessions(self._transaction)
        ]
        if free and self._transaction.connection().dialect.name == "postgresql":
            self._transaction.execute(_LOCKED, {"session_ids": free})
            hold(self._transaction, free)

    def page(self, session_id: str, after: int, limit: int) -> list[AuditLine]:
        """Return lines by number, after one."""
        return list(
            self._transaction.scalars(
                sa.select(AuditLine)
                .where(AuditLine.session_id == session_id, AuditLine.number > after)
                .order_by(AuditLine.number)
                .limit(limit)
            )
        )


def hold(transaction: Transaction, session_ids: Iterable[str]) -> None:
    """Remember which sessions' rows a transaction has locked: once is enough."""
    _read_held_sessions(transaction).update(session_ids)


def _read_held_sessions(transaction: Transaction) -> set[str]:
    held: set[str] = transaction.info.setdefault(_HELD, set())
    return held


_HELD = "coterie_held_sessions"
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


def _follow(
    number: int | None,
    last: str | None,
    said: Mapping[str, Any],
    entries: Iterable[Mapping[str, Any]],
) -> list[AuditEntry]:
    """Return the lines of what happened, behind the last one of a session."""
    written = []
    for at, fields in enumerate(entries, start=1 + (number or 0)):
        known = {name: value for name, value in fields.items() if value is not None}
        last = hash_chain.write(last, at, {**said, **known})
        written.append(AuditEntry(at, last))
    return written

"""The audit of a session: who sent or received which digest when, as a chain of lines.

A line is written in the transaction of what it records, so neither stands without the
other. No payload, token or id of a row is in it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import AuditLine, Session
from clustering_protocols import hash_chain


class Audit:
    """The audits of all sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(
        self, session_id: str, event: str, at: datetime, **fields: Any
    ) -> AuditLine:
        """Write what happened; the session is locked until the transaction ends.

        Parameters
        ----------
        session_id : str
        event : str
        at : datetime
        **fields : Any
            Slot, round, attempt, digest, reason: what there is to say; None is left
            out.
        """
        here = {"session_id": session_id}
        name = self._transaction.scalars(_NAME, here).one()
        last = self._transaction.execute(_LAST, here).first()
        number = last.number + 1 if last else 1
        said = {name: value for name, value in fields.items() if value is not None}
        entry = {"session": name, "event": event, "at": at.isoformat(), **said}
        line = hash_chain.write(last.line if last else None, number, entry)
        written = AuditLine(session_id=session_id, number=number, line=line)
        self._transaction.add(written)
        self._transaction.flush()
        return written

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


_NAME = (
    sa.select(Session.name)
    .where(Session.id == sa.bindparam("session_id"))
    .with_for_update()
)
_LAST = (
    sa.select(AuditLine.number, AuditLine.line)
    .where(AuditLine.session_id == sa.bindparam("session_id"))
    .order_by(AuditLine.number.desc())
    .limit(1)
)

"""The audit of a session: who sent or received which digest when, as a chain of lines.

A line is written in the transaction of what it records, so neither stands without the
other. No payload, token or id of a row is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import AuditLine, Session
from clustering_protocols import hash_chain


class Noted(NamedTuple):
    """A line that was written."""

    number: int
    line: str


class Audit:
    """The audits of all sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(self, session_id: str, event: str, at: datetime, **fields: Any) -> Noted:
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
        return self.extend(session_id, event, at, [fields])[0]

    def extend(
        self,
        session_id: str,
        event: str,
        at: datetime,
        entries: Iterable[Mapping[str, Any]],
    ) -> list[Noted]:
        """Write what happened to several; see :meth:`append`."""
        here = {"session_id": session_id}
        name = self._transaction.scalars(_NAME, here).one()
        found = self._transaction.execute(_LAST, here).first()
        number, last = (found.number, found.line) if found else (0, None)
        written = []
        for fields in entries:
            said = {name: value for name, value in fields.items() if value is not None}
            entry = {"session": name, "event": event, "at": at.isoformat(), **said}
            number += 1
            last = hash_chain.write(last, number, entry)
            written.append(Noted(number, last))
        lines = [here | noted._asdict() for noted in written]
        self._transaction.execute(_LINES, lines)
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


# of the table, and not of the class: nothing of it is read back
_LINES = sa.insert(cast(sa.Table, AuditLine.__table__))
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

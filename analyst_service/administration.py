"""The administrative log: who did what to this analyst when, as one chain of lines.

A line is written in the transaction of what it records. It names people by the id and
the label of their principal: no key, token, row or payload is in it. What a stranger
can cause at will is tallied in memory first (:class:`Tally`), so that nobody fills the
table: the keeper writes one line a minute for each kind.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import AdministrationLine, table
from clustering_protocols import hash_chain

Field = str | int | bool | None


class Act(StrEnum):
    """What the log records; a new kind is one more name here."""

    KEY_MADE = "key-made"
    KEY_ROTATED = "key-rotated"
    KEY_REVOKED = "key-revoked"
    TOKENS_REVOKED = "tokens-revoked"
    SIGNED_IN = "signed-in"
    SIGN_IN_REFUSED = "sign-in-refused"
    BACKUP_MADE = "backup-made"
    RESTORED = "restored"
    MIGRATED = "migrated"
    SESSION_DELETED = "session-deleted"


class Actor(NamedTuple):
    """Who did it: the id of a principal, or a name below; and a label for people."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The id of whoever runs commands on the analyst's machine; the label is their login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")

_LOCK: Final = 0x636F_7465_7269_65  # one number that all processes lock
_LINES = table(AdministrationLine)
_LAST = sa.select(_LINES.c.number, _LINES.c.line).order_by(_LINES.c.number.desc())
_ALL = sa.select(_LINES.c.line).order_by(_LINES.c.number)


class AdministrationLog:
    """The administrative log in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(self, act: Act, actor: Actor, at: datetime, **fields: Field) -> None:
        """Write what happened; nobody else writes until the transaction ends.

        Parameters
        ----------
        **fields : str, int or bool
            What there is to say, under any names but those of the line itself; None is
            left out.
        """
        self._lock()
        last = self._transaction.execute(_LAST.limit(1)).first()
        number, line = (0, None) if last is None else last
        said = {
            "event": act.value,
            "at": at.isoformat(),
            "actor": actor.id,
            "label": actor.label or None,
        }
        known = {k: v for k, v in {**fields, **said}.items() if v is not None}
        written = hash_chain.write(line, number + 1, known)
        self._transaction.execute(
            sa.insert(_LINES), {"number": number + 1, "line": written}
        )

    def lines(self) -> Iterator[str]:
        """Yield all lines, the oldest first."""
        return iter(self._transaction.scalars(_ALL))

    def _lock(self) -> None:
        """Let the lines have one order; on SQLite one transaction writes at a time."""
        if self._transaction.connection().dialect.name == "postgresql":
            self._transaction.execute(
                sa.select(sa.func.pg_advisory_xact_lock(sa.literal(_LOCK)))
            )


@dataclass(frozen=True, slots=True)
class Counted:
    """How often strangers did one thing since a time."""

    act: Act
    fields: tuple[tuple[str, Field], ...]
    count: int
    since: datetime

    def write(self, log: AdministrationLog, at: datetime) -> None:
        """Write the line of it."""
        said = {**dict(self.fields), "count": self.count}
        log.append(self.act, STRANGER, at, since=self.since.isoformat(), **said)


class Tally:
    """What strangers did since the tally was last taken.

    A process that is killed loses what it counted within the minute.
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[Any, ...], Counted] = {}
        self._lock = threading.Lock()

    def note(self, act: Act, at: datetime, **fields: Field) -> None:
        """Count an act; its fields take few values, such as ids of our own."""
        kind = (act, tuple(sorted(fields.items())))
        with self._lock:
            known = self._counted.get(kind, Counted(*kind, 0, at))
            self._counted[kind] = replace(known, count=known.count + 1)

    def taken(self) -> list[Counted]:
        """Return what was counted, and begin anew."""
        with self._lock:
            taken, self._counted = self._counted, {}
        return list(taken.values())

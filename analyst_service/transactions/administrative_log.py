"""The administrative log: who did what to this analyst when, as one chain of lines.

A line is written in the transaction of what it records. It names people by the id and
the label of their principal: no key, token, row or payload is in it. What a stranger
can cause at will is tallied in memory first (:class:`StrangerCounts`), so that nobody
fills the table: the keeper writes a line of each kind within a minute, and then one an
hour.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import AdministrationLine, table
from clustering_protocols.records import hash_chain

Field = str | int | bool | None

MOST_KINDS: Final = 100
"""Kinds of strangers' acts that are told apart at once."""

_SILENCE: Final = timedelta(hours=1)


class Act(StrEnum):
    """What the log records; a new kind is one more name here."""

    KEY_MADE = "key-made"
    KEY_ROTATED = "key-rotated"
    KEY_REVOKED = "key-revoked"
    TOKENS_REVOKED = "tokens-revoked"
    SIGNED_IN = "signed-in"
    SIGN_IN_REFUSED = "sign-in-refused"
    PROOF_REFUSED = "proof-refused"
    INVITATION_REFUSED = "invitation-refused"
    BACKUP_MADE = "backup-made"
    RESTORED = "restored"
    MIGRATED = "migrated"
    ADOPTED = "adopted"
    SESSION_DELETED = "session-deleted"


class Actor(NamedTuple):
    """Who did it: the id of a principal, or a name below; and a label for people."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The id of anyone who runs commands on the analyst's machine; the label is their login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")

_LOCK: Final = 0x636F_7465_7269_65  # one number that all processes lock
_LINES = table(AdministrationLine)
_LAST = sa.select(_LINES.c.number, _LINES.c.line).order_by(_LINES.c.number.desc())
_AFTER = (
    sa.select(_LINES.c.line)
    .where(_LINES.c.number > sa.bindparam("after"))
    .order_by(_LINES.c.number)
)


class AdministrationLog:
    """The administrative log in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(self, act: Act, actor: Actor, at: datetime, **fields: Field) -> None:
        """Write what happened; nobody else writes until the transaction ends.

        **fields: what there is to say, under any names but those of the line itself;
            None is left out.
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

    def lines(self, after: int = 0) -> Iterator[str]:
        """Yield all lines behind a number, the oldest first."""
        return iter(self._transaction.scalars(_AFTER, {"after": after}))

    def _lock(self) -> None:
        """Let the lines have one order; on SQLite one transaction writes at a time."""
        if self._transaction.connection().dialect.name == "postgresql":
            self._transaction.execute(
                sa.select(sa.func.pg_advisory_xact_lock(sa.literal(_LOCK)))
            )


@dataclass(frozen=True, slots=True)
class EventCount:
    """How often strangers did one thing since a time."""

    act: Act
    fields: tuple[tuple[str, Field], ...]
    count: int
    since: datetime

    def write(self, log: AdministrationLog, at: datetime) -> None:
        """Write the line of it."""
        said = {**dict(self.fields), "count": self.count}
        log.append(self.act, STRANGER, at, since=self.since.isoformat(), **said)


_Kind = tuple[Act, tuple[tuple[str, Field], ...]]


class StrangerCounts:
    """What strangers did and is not written yet.

    The first act of a kind is due at once. Later ones of that kind are due together,
    an hour after it. Beyond a number of kinds, acts are counted without their fields.
    So a flood writes at most ``MOST_KINDS`` lines an hour, and one for each act. A
    process that is killed loses what it counted.
    """

    def __init__(self) -> None:
        self._counted: dict[_Kind, EventCount] = {}
        self._written: dict[_Kind, datetime] = {}  # within the hour
        self._lock = threading.Lock()

    def note(self, act: Act, at: datetime, **fields: Field) -> None:
        """Count an act; its fields are of our own making, such as ids, or None."""
        said = tuple(sorted((k, v) for k, v in fields.items() if v is not None))
        with self._lock:
            kind = self._kind(act, said)
            known = self._counted.get(kind, EventCount(*kind, 0, at))
            self._counted[kind] = replace(known, count=known.count + 1)

    def take_due(self, now: datetime) -> list[EventCount]:
        """Return what is due, to be written now."""
        with self._lock:
            self._written = {
                kind: at
                for kind, at in self._written.items()
                if timedelta(0) <= now - at < _SILENCE  # or the clock was put back
            }
            due = [kind for kind in self._counted if kind not in self._written]
            self._written.update(dict.fromkeys(due, now))
            return [self._counted.pop(kind) for kind in due]

    def rest(self) -> list[EventCount]:
        """Return all that was counted, due or not, to be written now."""
        with self._lock:
            rest, self._counted = self._counted, {}
        return list(rest.values())

    def _kind(self, act: Act, fields: tuple[tuple[str, Field], ...]) -> _Kind:
        known = self._counted.keys() | self._written.keys()
        is_new = (act, fields) not in known
        return (act, () if is_new and len(known) >= MOST_KINDS else fields)

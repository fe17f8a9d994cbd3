"""Lists of sessions: by last change, page by page, of those that a caller asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.sessions.service import known_as
from analyst_service.storage.models import (
    Contribution,
    Credential,
    Member,
    Session,
    Task,
    UTCDateTime,
)
from clustering_protocols.wire.states import OVER, SessionState, SlotState

CURSOR: Final = r"([0-9]{1,17})~([a-z0-9._-]{1,63})"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_GROUPS: Final[Mapping[str, Collection[SessionState]]] = {
    "open": set(SessionState) - OVER,
    "over": OVER,
    **{state.value: {state} for state in SessionState},
}
STATES: Final = tuple(_GROUPS)
"""What a list may be limited to: 'open', 'over', or one state."""


class Cursor(NamedTuple):
    """The place in a list behind one session: its last change, and what it is known as."""

    changed_at: datetime
    name: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the cursor of a text that matches :data:`CURSOR`; None of an empty one."""
        found = re.fullmatch(CURSOR, text)
        if found is None:
            return None
        return cls(_EPOCH + int(found[1]) * _MICROSECOND, found[2])

    def __str__(self) -> str:
        """Return the text that a reader sends back."""
        return f"{(self.changed_at - _EPOCH) // _MICROSECOND}~{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSessions:
    """Which sessions a list is of.

    state: one of :data:`STATES`; empty for all.
    owner: the id of a principal, or the label of its key; empty for all.
    awaited: a slot for which they wait; empty for any.
    since, before: bounds of their last change; the second is not included.
    """

    state: str = ""
    owner: str = ""
    awaited: str = ""
    since: datetime | None = None
    before: datetime | None = None


class ListedSession(NamedTuple):
    """A session in a list.

    name: what the caller knows it as.
    owner: the label of its owner's key, or the owner's id where that has none.
    awaited: slots for which it waits.
    """

    name: str
    session: Session
    owner: str
    awaited: tuple[str, ...]

    @property
    def protocol(self) -> str:
        """Return the name of its protocol.

        Terms were checked when the session was opened; to read them whole takes longer
        than all else that a line needs.
        """
        name: str = json.loads(self.session.terms)["protocol"]["name"]
        return name


class Page(NamedTuple):
    """A page of a list, and the cursor of the next one; empty on the last."""

    lines: list[ListedSession]
    following: str


class SessionListing:
    """Lists of sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def page(
        self, caller: Caller, wanted: WantedSessions, after: str, limit: int
    ) -> Page:
        """Return sessions by last change, the latest first; an administrator's are all.

        One that moves on between two pages moves to the first one; every other stands
        on one page exactly.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        key = Session.id if caller.role is Role.ADMINISTRATOR else Session.name
        query = sa.select(Session).options(orm.defer(Session.agreement))
        query = query.where(Session.deleted_at.is_(None), *_conditions(wanted))
        if caller.role is not Role.ADMINISTRATOR:
            query = query.where(Session.owner_id == caller.principal_id)
        if (cursor := Cursor.read(after)) is not None:
            query = query.where(_is_behind(key, cursor))
        ordered = query.order_by(Session.changed_at.desc(), key).limit(limit)
        lines = self._lines(caller, list(self._transaction.scalars(ordered)))
        if len(lines) < limit:
            return Page(lines, "")
        last = lines[-1]
        return Page(lines, str(Cursor(last.session.changed_at, last.name)))

    def _lines(self, caller: Caller, found: list[Session]) -> list[ListedSession]:
        awaited = self._find_awaited(found)
        labels = self._labels({each.owner_id for each in found})
        return [
            ListedSession(
                known_as(caller, each),
                each,
                labels.get(each.owner_id) or each.owner_id,
                tuple(awaited.get(each.id, ())),
            )
            for each in found
        ]

    def _labels(self, principal_ids: Collection[str]) -> dict[str, str]:
        """Return the label of each principal's first key."""
        query = (
            sa.select(Credential.principal_id, Credential.label)
            .where(Credential.principal_id.in_(principal_ids))
            .order_by(Credential.created_at.desc())
        )
        return {str(row[0]): row[1] for row in self._transaction.execute(query)}

    def _find_awaited(self, found: Iterable[Session]) -> dict[str, list[str]]:
        """Return the slots for which sessions wait, by their ids."""
        ids: dict[str, list[str]] = {}
        for each in found:
            ids.setdefault(each.state, []).append(each.id)
        joining = (
            sa.select(Member.session_id, Member.slot)
            .where(Member.session_id.in_(ids.get(SessionState.RECRUITING, [])))
            .where(_NOT_JOINED)
            .order_by(Member.row_group, Member.column_group)
        )
        asked = (
            sa.select(Task.session_id, Task.slot)
            .join(Session, _IS_OPEN)
            .where(Session.id.in_(ids.get(SessionState.COLLECTING, [])), ~_IS_ANSWERED)
            .order_by(Task.slot)
        )
        slots: dict[str, list[str]] = {}
        for query in (joining, asked):
            for session_id, slot in self._transaction.execute(query):
                slots.setdefault(session_id, []).append(slot)
        return slots


_NOT_JOINED = Member.state != SlotState.JOINED.value
_IS_OPEN = sa.and_(
    Task.session_id == Session.id,
    Task.round == Session.round,
    Task.attempt == Session.attempt,
)
_IS_ANSWERED = sa.exists().where(
    Contribution.session_id == Task.session_id,
    Contribution.round == Task.round,
    Contribution.attempt == Task.attempt,
    Contribution.slot == Task.slot,
)


def _is_behind(
    key: orm.InstrumentedAttribute[str], cursor: Cursor
) -> sa.ColumnElement[bool]:
    at = sa.literal(cursor.changed_at, UTCDateTime())
    is_same = sa.and_(Session.changed_at == at, key > cursor.name)
    return sa.and_(Session.changed_at <= at, sa.or_(Session.changed_at < at, is_same))


def _conditions(wanted: WantedSessions) -> Iterable[sa.ColumnElement[bool]]:
    if wanted.state:
        states = sorted(state.value for state in _GROUPS[wanted.state])
        yield Session.state.in_(states)
    if wanted.owner:
        labelled = sa.select(Credential.principal_id).where(
            Credential.label == wanted.owner, Credential.principal_id.is_not(None)
        )
        yield sa.or_(Session.owner_id == wanted.owner, Session.owner_id.in_(labelled))
    if wanted.awaited:
        yield _waits_for(wanted.awaited)
    if wanted.since is not None:
        yield Session.changed_at >= wanted.since
    if wanted.before is not None:
        yield Session.changed_at < wanted.before


def _waits_for(slot: str) -> sa.ColumnElement[bool]:
    joins = sa.exists().where(
        Member.session_id == Session.id, Member.slot == slot, _NOT_JOINED
    )
    answers = sa.exists().where(_IS_OPEN, Task.slot == slot, ~_IS_ANSWERED)
    return sa.or_(
        sa.and_(Session.state == SessionState.RECRUITING.value, joins),
        sa.and_(Session.state == SessionState.COLLECTING.value, answers),
    )

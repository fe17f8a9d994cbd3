"""Tasks and contributions in the database.

Simultaneous requests share a transaction, which reads each session once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from analyst_service import audit
from analyst_service.blobs import FileDraft
from analyst_service.credentials import Caller, CredentialRefused, Role, still_valid
from analyst_service.database import Transaction
from analyst_service.models import Contribution, Session, Task, UTCDateTime, table
from analyst_service.sessions import (
    check_bytes,
    require_alive,
    require_not_stopped,
    visible,
    with_ids,
)
from analyst_service.waiting import outcomes
from clustering_protocols.common.errors import (
    ContributionDiffers,
    CoterieError,
    Forbidden,
    NotReady,
    RoundClosed,
)
from clustering_protocols.records import hash_chain
from clustering_protocols.wire.states import SessionState


class SlotAttempt(NamedTuple):
    """A slot in an attempt of a round: the key of its task and of its answer."""

    session_id: str
    round: int
    attempt: int
    slot: str


class OpenTask(NamedTuple):
    """A slot's task in the open attempt of its session.

    content: the bytes of a short task; None for slots of other callers.
    """

    place: SlotAttempt
    digest: str
    sent_at: datetime | None
    is_answered: bool
    content: bytes | None = None


TaskRequest = tuple[Caller, str]
"""The caller that asks for a task, and the name of the session."""


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """A contribution being received; its slot comes from the credential, not the path.

    session: the name that its parties use.
    digest, size: the announced SHA-256 (hex) and number of bytes.
    content: the bytes of a short contribution.
    draft: the checked bytes of a long one.
    is_checked: whether ``content`` needs no further check before it is stored.
    """

    caller: Caller
    session: str
    round: int
    attempt: int
    digest: str
    size: int
    content: bytes | None = None
    draft: FileDraft | None = None
    is_checked: bool = False


class UploadRequirements(NamedTuple):
    """The agreement and the task that an upload is checked against."""

    agreement: bytes
    task: OpenTask


Stored = tuple[Contribution, bool]  # the contribution, and whether it is new
Check = Callable[[Upload, UploadRequirements | None], Exception | None]
"""Returns why an upload is refused, or None; a repeat has no requirements."""


# SQL that every answer needs, built once.
_SESSIONS, _TASKS, _CONTRIBUTIONS = map(table, (Session, Task, Contribution))
_PLACE = tuple(_TASKS.c[name] for name in SlotAttempt._fields)
_OF_SESSIONS = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))


def _is_open(rows: sa.Table) -> sa.ColumnElement[bool]:
    """Return the condition that a row belongs to the open attempt of its session."""
    return sa.and_(
        rows.c.session_id == _SESSIONS.c.id,
        rows.c.round == _SESSIONS.c.round,
        rows.c.attempt == _SESSIONS.c.attempt,
    )


def _count_open(rows: sa.Table) -> sa.ScalarSelect[int]:
    """Return the SQL for the number of a session's rows in its open attempt."""
    counted = sa.select(sa.func.count()).select_from(rows).where(_is_open(rows))
    return counted.correlate(_SESSIONS).scalar_subquery()


N_ANSWERS = _count_open(_CONTRIBUTIONS)
ALL_ANSWERED = _count_open(_TASKS) <= N_ANSWERS
"""SQL about a session's open attempt: the number of answers, and whether all are there."""

_OPEN_TASKS: sa.Select[Any] = (
    sa.select(
        *_PLACE,
        _TASKS.c.digest,
        _TASKS.c.sent_at,
        sa.exists()
        .where(_is_open(_CONTRIBUTIONS), _CONTRIBUTIONS.c.slot == _TASKS.c.slot)
        .correlate(_SESSIONS, _TASKS),
        sa.case(
            (
                sa.tuple_(*_TASKS.c["session_id", "slot"]).in_(
                    sa.bindparam("slots", expanding=True)
                ),
                _TASKS.c.content,
            )
        ),
    )
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_OF_SESSIONS)
)
_MARK_SENT = (
    sa.update(_TASKS)
    .where(
        sa.tuple_(*_PLACE).in_(sa.bindparam("places", expanding=True)),
        _TASKS.c.sent_at.is_(None),
    )
    .values(sent_at=sa.bindparam("now", type_=UTCDateTime()))
    .returning(*_PLACE)
)


def _open_tasks(
    db: Transaction, session_ids: Iterable[str], callers: Iterable[Caller]
) -> dict[SlotAttempt, OpenTask]:
    """Return the tasks of the open attempts, with bytes for the callers' slots."""
    slots = [(caller.session_id, caller.slot) for caller in callers if caller.slot]
    rows = db.execute(_OPEN_TASKS, {"session_ids": list(session_ids), "slots": slots})
    tasks = (OpenTask(SlotAttempt(*row[:4]), *row[4:]) for row in rows)
    return {task.place: task for task in tasks}


def _sessions_of(
    db: Transaction, callers: Iterable[Caller], *, lock: bool = False
) -> dict[str, Session]:
    """Return, by id, the sessions of those callers that are parties."""
    ids = {caller.session_id for caller in callers if caller.session_id}
    return with_ids(db, ids, lock=lock)


def find_tasks(
    db: Transaction, requests: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return for each request its open task, None if there is none yet, or the refusal."""
    callers = [caller for caller, _ in requests]
    valid, sessions = still_valid(db, callers), _sessions_of(db, callers)
    collecting = [
        session.id
        for session in sessions.values()
        if session.state == SessionState.COLLECTING
    ]
    tasks = _open_tasks(db, collecting, callers)

    def find_task(request: TaskRequest) -> OpenTask | None:
        caller, name = request
        _check_valid(caller, valid)
        session = visible(db, caller, name, loaded=sessions)
        slot = _slot_of(caller)
        require_alive(session)
        place = SlotAttempt(session.id, session.round, session.attempt, slot)
        task = tasks.get(place)
        return None if task is None or task.is_answered else task

    return outcomes(find_task, requests)


def record_first_sending(db: Transaction, tasks: Collection[OpenTask]) -> None:
    """Record in tasks and audit logs that tasks are handed out for the first time."""
    now = db.now()
    digests = {task.place: task.digest for task in tasks}
    audit.lock_sessions(db, {place.session_id for place in digests})
    marked = db.execute(_MARK_SENT, {"places": list(digests), "now": now})
    lines: dict[str, list[dict[str, Any]]] = {}
    for place in sorted(SlotAttempt(*row) for row in marked):
        lines.setdefault(place.session_id, []).append(_fields_of(place, digests[place]))
    audit.extend(db, "task-sent", now, lines)


def admit(
    db: Transaction, uploads: Sequence[Upload], quota: int | None
) -> list[Contribution | UploadRequirements | CoterieError]:
    """Return for each upload its requirements, the stored row of a repeat, or a refusal.

    A refusal is ContributionDiffers if other bytes are stored; NotReady, RoundClosed or
    SessionOver if nothing is stored and this attempt is not open for the caller;
    QuotaReached if the bytes exceed the quota.

    quota: bytes that the open sessions of one owner may hold; None for no limit.
    """
    callers = [upload.caller for upload in uploads]
    sessions = _sessions_of(db, callers)
    tasks = _open_tasks(db, sessions, callers)

    def admit_one(upload: Upload) -> Contribution | UploadRequirements:
        session = visible(db, upload.caller, upload.session, loaded=sessions)
        place = _place_of(session, upload)
        task = tasks.get(place)
        if task is None or task.is_answered:
            stored = db.get(Contribution, place)
            if stored is not None:
                return _require_same_bytes(stored, upload.digest)
        requirements = _require_open(db, session, place, task)
        check_bytes(db, session, upload.size, quota)
        return requirements

    return outcomes(admit_one, uploads)


def store(
    db: Transaction, uploads: Sequence[Upload], quota: int | None, check: Check
) -> tuple[list[Stored | Exception], bool]:
    """Check and store contributions; return each one or its refusal.

    The second value says whether some session now has all its answers.
    """
    callers = [upload.caller for upload in uploads]
    valid, now = still_valid(db, callers), db.now()
    sessions = _sessions_of(db, callers, lock=True)
    tasks = _open_tasks(db, sessions, callers)
    fresh: dict[SlotAttempt, Contribution] = {}

    def store_one(upload: Upload) -> Stored | Exception:
        _check_valid(upload.caller, valid)
        session = visible(db, upload.caller, upload.session, loaded=sessions)
        place = _place_of(session, upload)
        task, stored = tasks.get(place), fresh.get(place)
        if stored is None and (task is None or task.is_answered):
            stored = db.get(Contribution, place)
        if stored is not None:
            same = _require_same_bytes(stored, upload.digest)
            return check(upload, None) or (same, False)
        requirements = _require_open(db, session, place, task)
        if (refusal := check(upload, requirements)) is not None:
            return refusal
        unstored = sum(
            row.size
            for row in fresh.values()
            if sessions[row.session_id].owner_id == session.owner_id
        )
        check_bytes(db, session, upload.size, quota, unstored=unstored, lock=True)
        if upload.draft is not None:
            upload.draft.keep()
        fresh[place] = Contribution(
            **place._asdict(),
            digest=upload.digest,
            size=upload.size,
            content=upload.content,
            received_at=now,
        )
        return fresh[place], True

    stored = outcomes(store_one, uploads)
    if not fresh:
        return stored, False
    lines: dict[str, list[dict[str, Any]]] = {}
    for place, row in fresh.items():
        lines.setdefault(place.session_id, []).append(_fields_of(place, row.digest))
    entries = audit.extend(db, "contribution", now, lines)
    for place, row in fresh.items():
        entry = entries[place.session_id].pop(0)
        row.sequence, row.entry = entry.number, hash_chain.digest(entry.line)
    # a plain INSERT is faster than the ORM's, and nothing is read back
    columns = _CONTRIBUTIONS.c.keys()
    rows = ({name: getattr(row, name) for name in columns} for row in fresh.values())
    db.execute(sa.insert(_CONTRIBUTIONS), list(rows))
    missing = {
        place.session_id
        for place, task in tasks.items()
        if not task.is_answered and place not in fresh
    }
    return stored, not lines.keys() <= missing


def _fields_of(place: SlotAttempt, digest: str) -> dict[str, Any]:
    """Return the fields of an audit line about a task or a contribution."""
    fields = {name: getattr(place, name) for name in ("slot", "round", "attempt")}
    return fields | {"digest": digest}


def _place_of(session: Session, upload: Upload) -> SlotAttempt:
    slot = _slot_of(upload.caller)
    return SlotAttempt(session.id, upload.round, upload.attempt, slot)


def _slot_of(caller: Caller) -> str:
    """Return the slot of a party's token; raise Forbidden if it is not a party's."""
    if caller.slot is None:
        raise Forbidden(f"This request needs the role {Role.PARTY}.")
    return caller.slot


def _check_valid(caller: Caller, valid: Container[str]) -> None:
    """Raise CredentialRefused if a credential has ended since the request arrived."""
    if caller.credential_id not in valid:
        raise CredentialRefused(caller.credential_id)


def _require_same_bytes(stored: Contribution, digest: str) -> Contribution:
    """Return the stored contribution; raise ContributionDiffers if its bytes differ."""
    if stored.digest != digest:
        raise ContributionDiffers(
            f"Round {stored.round}, attempt {stored.attempt} was answered already, with other bytes."
        )
    return stored


def _require_open(
    db: Transaction, session: Session, place: SlotAttempt, task: OpenTask | None
) -> UploadRequirements:
    """Return the requirements of an upload; raise an error if its attempt is not open."""
    require_alive(session)
    if session.state == SessionState.RECRUITING:
        raise NotReady("The session is recruiting; no round is open yet.")
    if session.state != SessionState.COLLECTING:
        raise RoundClosed(f"The session is {session.state}; no round is open.")
    closed = RoundClosed(f"Round {session.round}, attempt {session.attempt} is open.")
    if place[1:3] != (session.round, session.attempt):
        raise closed
    if task is None or session.agreement is None:
        require_not_stopped(db, session, place.slot)
        raise closed
    return UploadRequirements(session.agreement, task)

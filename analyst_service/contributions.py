"""Read tasks from the database and store contributions in it.

Requests that arrive at the same time share one transaction, which reads each session
only once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from analyst_service import audit
from analyst_service.blobs import FileDraft
from analyst_service.credentials import Caller, CredentialRefused, Role, find_valid_ids
from analyst_service.database import Transaction
from analyst_service.models import Contribution, Session, Task, UTCDateTime, table
from analyst_service.sessions import (
    check_byte_quota,
    find_sessions,
    lock_owners,
    require_not_ended,
    require_not_stopped,
    visible_session,
)
from analyst_service.waiting import try_each
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
    """One slot in one attempt of a round: the key of a task and of its contribution."""

    session_id: str
    round: int
    attempt: int
    slot: str


class OpenTask(NamedTuple):
    """The task of one slot in the open attempt of its session.

    content: the bytes of the task; None if the task is stored as a blob, or if it is
        not for one of the callers for whom the tasks were loaded.
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
    """An upload in progress. The slot comes from the credential, not from the path.

    session: the name by which the parties know the session.
    digest, size: the announced SHA-256 (hex) and number of bytes.
    content: the bytes of a short contribution.
    draft: the file with the checked bytes of a long contribution.
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
    """The agreement and the task against which an upload is checked."""

    agreement: bytes
    task: OpenTask


Stored = tuple[Contribution, bool]  # the row of the contribution, and whether it is new
UploadCheck = Callable[[Upload, UploadRequirements | None], Exception | None]
"""Returns why an upload is refused, or None. A repeated upload has no requirements."""


# Built once, because every upload executes these statements.
_SESSIONS, _TASKS, _CONTRIBUTIONS = map(table, (Session, Task, Contribution))
_PLACE = tuple(_TASKS.c[name] for name in SlotAttempt._fields)
_OF_SESSIONS = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))


def _in_open_attempt(rows: sa.Table) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a row belongs to the open attempt of its session."""
    return sa.and_(
        rows.c.session_id == _SESSIONS.c.id,
        rows.c.round == _SESSIONS.c.round,
        rows.c.attempt == _SESSIONS.c.attempt,
    )


def _count_in_open_attempt(rows: sa.Table) -> sa.ScalarSelect[int]:
    """Return an SQL subquery that counts the rows in the open attempt of a session."""
    counted = sa.select(sa.func.count()).select_from(rows).where(_in_open_attempt(rows))
    return counted.correlate(_SESSIONS).scalar_subquery()


N_ANSWERS = _count_in_open_attempt(_CONTRIBUTIONS)
ALL_ANSWERED = _count_in_open_attempt(_TASKS) <= N_ANSWERS
"""SQL for the number of answers in a session's open attempt, and whether all are in."""

_OPEN_TASKS: sa.Select[Any] = (
    sa.select(
        *_PLACE,
        _TASKS.c.digest,
        _TASKS.c.sent_at,
        sa.exists()
        .where(_in_open_attempt(_CONTRIBUTIONS), _CONTRIBUTIONS.c.slot == _TASKS.c.slot)
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
    .join(_SESSIONS, _in_open_attempt(_TASKS))
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


def _load_open_tasks(
    db: Transaction, session_ids: Iterable[str], callers: Iterable[Caller]
) -> dict[SlotAttempt, OpenTask]:
    """Return the tasks of all open attempts, with the content of the callers' tasks."""
    slots = [(caller.session_id, caller.slot) for caller in callers if caller.slot]
    rows = db.execute(_OPEN_TASKS, {"session_ids": list(session_ids), "slots": slots})
    tasks = (OpenTask(SlotAttempt(*row[:4]), *row[4:]) for row in rows)
    return {task.place: task for task in tasks}


def _load_sessions(
    db: Transaction, callers: Iterable[Caller], *, lock: bool = False
) -> dict[str, Session]:
    ids = {caller.session_id for caller in callers if caller.session_id}
    return find_sessions(db, ids, lock=lock)


def find_open_tasks(
    db: Transaction, requests: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return the open task of each request, None if there is none yet, or the refusal."""
    callers = [caller for caller, _ in requests]
    valid, sessions = find_valid_ids(db, callers), _load_sessions(db, callers)
    collecting = [
        session.id
        for session in sessions.values()
        if session.state == SessionState.COLLECTING
    ]
    tasks = _load_open_tasks(db, collecting, callers)

    def find_task(request: TaskRequest) -> OpenTask | None:
        caller, name = request
        _require_valid_credential(caller, valid)
        session = visible_session(db, caller, name, loaded=sessions)
        slot = _require_slot(caller)
        require_not_ended(session)
        place = SlotAttempt(session.id, session.round, session.attempt, slot)
        task = tasks.get(place)
        return None if task is None or task.is_answered else task

    return try_each(find_task, requests)


def record_first_sending(db: Transaction, tasks: Collection[OpenTask]) -> None:
    """Record in the tasks and audit logs that these tasks are sent for the first time."""
    now = db.now()
    digests = {task.place: task.digest for task in tasks}
    audit.lock_sessions(db, {place.session_id for place in digests})
    marked = db.execute(_MARK_SENT, {"places": list(digests), "now": now})
    places = sorted(SlotAttempt(*row) for row in marked)
    lines = [_audit_entry(place, digests[place]) for place in places]
    audit.add_lines(db, "task-sent", now, lines)


def admit_uploads(
    db: Transaction, uploads: Sequence[Upload], quota: int | None
) -> list[Contribution | UploadRequirements | CoterieError]:
    """Check whether each upload may be stored, before its body is read.

    Returns for each upload the requirements for its body, the stored row if this is a
    repeated upload, or an error. The error is ContributionDiffers if other bytes are
    already stored, NotReady, RoundClosed or SessionOver if the attempt is not open for
    the caller, and QuotaReached if the bytes exceed the quota.

    quota: the number of bytes that the open sessions of one owner may store; None for
        no limit.
    """
    callers = [upload.caller for upload in uploads]
    sessions = _load_sessions(db, callers)
    tasks = _load_open_tasks(db, sessions, callers)

    def admit_upload(upload: Upload) -> Contribution | UploadRequirements:
        session = visible_session(db, upload.caller, upload.session, loaded=sessions)
        place = _slot_attempt_of(session, upload)
        task = tasks.get(place)
        if task is None or task.is_answered:
            stored = db.get(Contribution, place)
            if stored is not None:
                return _require_same_bytes(stored, upload.digest)
        requirements = _require_open_attempt(db, session, place, task)
        check_byte_quota(db, session, upload.size, quota)
        return requirements

    return try_each(admit_upload, uploads)


def store_uploads(
    db: Transaction, uploads: Sequence[Upload], quota: int | None, check: UploadCheck
) -> tuple[list[Stored | Exception], bool]:
    """Check and store the uploads; return the row of each, or why it is refused.

    The second returned value says whether any session has now received all its answers.
    """
    callers = [upload.caller for upload in uploads]
    valid, now = find_valid_ids(db, callers), db.now()
    sessions = _load_sessions(db, callers, lock=True)
    if quota is not None:
        lock_owners(db, {session.owner_id for session in sessions.values()})
    tasks = _load_open_tasks(db, sessions, callers)
    fresh: dict[SlotAttempt, Contribution] = {}

    def store_upload(upload: Upload) -> Stored | Exception:
        _require_valid_credential(upload.caller, valid)
        session = visible_session(db, upload.caller, upload.session, loaded=sessions)
        place = _slot_attempt_of(session, upload)
        task, stored = tasks.get(place), fresh.get(place)
        if stored is None and (task is None or task.is_answered):
            stored = db.get(Contribution, place)
        if stored is not None:
            same = _require_same_bytes(stored, upload.digest)
            return check(upload, None) or (same, False)
        requirements = _require_open_attempt(db, session, place, task)
        if (refusal := check(upload, requirements)) is not None:
            return refusal
        unstored = sum(
            row.size
            for row in fresh.values()
            if sessions[row.session_id].owner_id == session.owner_id
        )
        check_byte_quota(db, session, upload.size, quota, unstored=unstored)
        if upload.draft is not None:
            upload.draft.store_as_blob()
        fresh[place] = Contribution(
            **place._asdict(),
            digest=upload.digest,
            size=upload.size,
            content=upload.content,
            received_at=now,
        )
        return fresh[place], True

    stored = try_each(store_upload, uploads)
    if not fresh:
        return stored, False
    lines = [_audit_entry(place, row.digest) for place, row in fresh.items()]
    entries = audit.add_lines(db, "contribution", now, lines)
    for row, entry in zip(fresh.values(), entries, strict=True):
        row.sequence, row.entry = entry.number, hash_chain.digest(entry.line)
    # A plain INSERT is faster than the ORM, and nothing has to be read back.
    columns = _CONTRIBUTIONS.c.keys()
    rows = ({name: getattr(row, name) for name in columns} for row in fresh.values())
    db.execute(sa.insert(_CONTRIBUTIONS), list(rows))
    missing = {
        place.session_id
        for place, task in tasks.items()
        if not task.is_answered and place not in fresh
    }
    return stored, not {place.session_id for place in fresh} <= missing


def _audit_entry(place: SlotAttempt, digest: str) -> tuple[str, dict[str, Any]]:
    fields = place._asdict() | {"digest": digest}
    return fields.pop("session_id"), fields


def _slot_attempt_of(session: Session, upload: Upload) -> SlotAttempt:
    slot = _require_slot(upload.caller)
    return SlotAttempt(session.id, upload.round, upload.attempt, slot)


def _require_slot(caller: Caller) -> str:
    """Return the slot of a party's token; raise Forbidden if the caller is not a party."""
    if caller.slot is None:
        raise Forbidden(f"This request needs the role {Role.PARTY}.")
    return caller.slot


def _require_valid_credential(caller: Caller, valid: Container[str]) -> None:
    """Raise CredentialRefused if the credential is no longer among the valid ones."""
    if caller.credential_id not in valid:
        raise CredentialRefused(caller.credential_id)


def _require_same_bytes(stored: Contribution, digest: str) -> Contribution:
    """Return the contribution; raise ContributionDiffers if its digest differs."""
    if stored.digest != digest:
        raise ContributionDiffers(
            f"Round {stored.round}, attempt {stored.attempt} was already answered with different bytes."
        )
    return stored


def _require_open_attempt(
    db: Transaction, session: Session, place: SlotAttempt, task: OpenTask | None
) -> UploadRequirements:
    """Return the requirements of an upload; raise if its attempt is not open."""
    require_not_ended(session)
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

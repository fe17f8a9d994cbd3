"""Handing out tasks and taking contributions.

Requests that come together share a transaction: each session is read once for all.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from analyst_service import audit
from analyst_service.blobs import FileDraft
from analyst_service.credentials import Caller, Role, build_ended_refusal, still_valid
from analyst_service.database import Transaction
from analyst_service.models import Contribution, Session, Task, UTCDateTime, table
from analyst_service.sessions import (
    check_bytes,
    require_alive,
    require_going,
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

ROW_BYTES: Final = 64 << 10
"""A contribution below this size lies in its row, in place of a blob."""

_NOTED: Final = ("slot", "round", "attempt", "digest")  # in lines of the audit


class SlotAttempt(NamedTuple):
    """A slot's place in an attempt: the key of its task and of its answer."""

    session_id: str
    round: int
    attempt: int
    slot: str


class OpenTask(NamedTuple):
    """What a slot is asked in the open attempt of its session."""

    session_id: str
    round: int
    attempt: int
    slot: str
    digest: str
    sent_at: datetime | None
    is_answered: bool

    @property
    def place(self) -> SlotAttempt:
        """Return where it stands."""
        return SlotAttempt(*self[:4])


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """Who asks for a task, and of which session."""

    caller: Caller
    session: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An answer on its way: the slot comes from the credential, never from the path.

    session: its name, as its parties know it.
    digest, size: SHA-256 (hex) and bytes, as announced.
    content: the checked bytes of a short one.
    draft: the checked bytes of a long one.
    """

    caller: Caller
    session: str
    round: int
    attempt: int
    digest: str
    size: int
    content: bytes | None = None
    draft: FileDraft | None = None


@dataclass(frozen=True, slots=True)
class UploadRequirements:
    """What an upload is checked against."""

    agreement: bytes
    task_digest: str


Stored = tuple[Contribution, bool]  # and whether it is new


# of every answer, so built once
_SESSIONS, _TASKS, _CONTRIBUTIONS = map(table, (Session, Task, Contribution))
_PLACE = tuple(_TASKS.c[name] for name in SlotAttempt._fields)
_HERE = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))


def _is_open(rows: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether a row is of its session's open attempt."""
    return sa.and_(
        rows.c.session_id == _SESSIONS.c.id,
        rows.c.round == _SESSIONS.c.round,
        rows.c.attempt == _SESSIONS.c.attempt,
    )


def _count(rows: sa.Table) -> sa.ScalarSelect[int]:
    """Return the number of a session's rows in its open attempt."""
    counted = sa.select(sa.func.count()).select_from(rows).where(_is_open(rows))
    return counted.correlate(_SESSIONS).scalar_subquery()


N_ANSWERS = _count(_CONTRIBUTIONS)
ALL_ANSWERED = _count(_TASKS) <= N_ANSWERS
"""Conditions on a session."""

_ANY_COMPLETE = sa.select(
    sa.exists(sa.select(_SESSIONS.c.id).where(_HERE, ALL_ANSWERED))
)
_ANSWERS = (
    sa.select(Contribution).join(_SESSIONS, _is_open(_CONTRIBUTIONS)).where(_HERE)
)
_OPEN_TASKS: sa.Select[Any] = (
    sa.select(
        *_PLACE,
        _TASKS.c.digest,
        _TASKS.c.sent_at,
        sa.exists()
        .where(_is_open(_CONTRIBUTIONS), _CONTRIBUTIONS.c.slot == _TASKS.c.slot)
        .correlate(_SESSIONS, _TASKS),
    )
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_HERE)
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
    db: Transaction, session_ids: Iterable[str]
) -> dict[SlotAttempt, OpenTask]:
    """Return what is asked in the open attempts of sessions, and where."""
    rows = db.execute(_OPEN_TASKS, {"session_ids": list(session_ids)})
    return {SlotAttempt(*row[:4]): OpenTask(*row) for row in rows}


def _own(
    db: Transaction, callers: Iterable[Caller], *, lock: bool = False
) -> dict[str, Session]:
    """Return, by id, the sessions of those callers that are parties."""
    ids = {caller.session_id for caller in callers if caller.session_id}
    return with_ids(db, ids, lock=lock)


def find_tasks(
    db: Transaction, requests: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return each one's open task, None if it has to wait, or why it is refused."""
    valid = still_valid(db, (request.caller for request in requests))
    sessions = _own(db, (request.caller for request in requests))
    collecting = [
        session.id
        for session in sessions.values()
        if session.state == SessionState.COLLECTING
    ]
    tasks = {
        (task.session_id, task.slot): task
        for task in _open_tasks(db, collecting).values()
        if not task.is_answered
    }

    def task(request: TaskRequest) -> OpenTask | None:
        _check_valid(request.caller, valid)
        session = visible(db, request.caller, request.session, known=sessions)
        slot = _slot_of(request.caller)
        require_alive(session)
        return tasks.get((session.id, slot))

    return outcomes(task, requests)


def note_sent(db: Transaction, tasks: Collection[OpenTask]) -> None:
    """Write into the audits which slots are given their tasks, the first time."""
    now = db.now()
    audit.lock_sessions(db, {task.session_id for task in tasks})
    places = {task.place: task for task in tasks}
    marked = db.execute(_MARK_SENT, {"places": list(places), "now": now})
    sent: dict[str, list[OpenTask]] = {}
    for task in sorted(places[SlotAttempt(*row)] for row in marked):
        sent.setdefault(task.session_id, []).append(task)
    audit.extend(db, "task-sent", now, _lines(sent))


def admit(
    db: Transaction, uploads: Sequence[Upload], quota: int | None
) -> list[Contribution | UploadRequirements | CoterieError]:
    """Return what each is asked; or, of a repeat, what is stored; or the refusal.

    ContributionDiffers if other bytes are stored; NotReady, RoundClosed or SessionOver
    if nothing is, and this attempt is not open for the caller; QuotaReached if they do
    not fit.

    quota: how many bytes the open sessions of one owner may hold; None: any number.
    """
    sessions = _own(db, (upload.caller for upload in uploads))
    tasks = _open_tasks(db, sessions)

    def admit_one(upload: Upload) -> Contribution | UploadRequirements:
        session = visible(db, upload.caller, upload.session, known=sessions)
        place = _place_of(session, upload)
        task = tasks.get(place)
        if task is None or task.is_answered:
            stored = db.get(Contribution, place)
            if stored is not None:
                return _same_bytes(stored, upload.digest)
        requirements = _require_open(db, session, place, task)
        check_bytes(db, session, upload.size, quota)
        return requirements

    return outcomes(admit_one, uploads)


def store(
    db: Transaction, uploads: Sequence[Upload], quota: int | None
) -> list[Stored | CoterieError]:
    """Store checked contributions; return each, or why it is refused."""
    valid = still_valid(db, (upload.caller for upload in uploads))
    now = db.now()
    sessions = _own(db, (upload.caller for upload in uploads), lock=True)
    answers = {
        SlotAttempt(row.session_id, row.round, row.attempt, row.slot): row
        for row in db.scalars(_ANSWERS, {"session_ids": list(sessions)})
    }
    tasks = _open_tasks(db, sessions)
    fresh: dict[str, list[Contribution]] = {}

    def store_one(upload: Upload) -> Stored:
        _check_valid(upload.caller, valid)
        session = visible(db, upload.caller, upload.session, known=sessions)
        place = _place_of(session, upload)
        stored = answers.get(place)
        if stored is None and place[1:3] != (session.round, session.attempt):
            stored = db.get(Contribution, place)
        if stored is not None:
            return _same_bytes(stored, upload.digest), False
        _require_open(db, session, place, tasks.get(place))
        more = sum(
            row.size
            for session_id, rows in fresh.items()
            for row in rows
            if sessions[session_id].owner_id == session.owner_id
        )
        check_bytes(db, session, upload.size, quota, more=more, lock=True)
        if upload.draft is not None:
            upload.draft.keep()
        answers[place] = Contribution(
            **place._asdict(),
            digest=upload.digest,
            size=upload.size,
            content=upload.content,
            received_at=now,
        )
        fresh.setdefault(session.id, []).append(answers[place])
        return answers[place], True

    stored = outcomes(store_one, uploads)
    noted = audit.extend(db, "contribution", now, _lines(fresh))
    for session_id, rows in fresh.items():
        for row, line in zip(rows, noted[session_id], strict=True):
            row.sequence, row.entry = line.number, hash_chain.digest(line.line)
    db.add_all(chain.from_iterable(fresh.values()))
    db.flush()
    return stored


def any_complete(db: Transaction, session_ids: Collection[str]) -> bool:
    """Return whether one of these has an answer of every slot that was asked."""
    return bool(db.scalar(_ANY_COMPLETE, {"session_ids": list(session_ids)}))


def _lines(
    of_sessions: Mapping[str, Sequence[OpenTask | Contribution]],
) -> dict[str, list[dict[str, Any]]]:
    """Return what the audits of sessions say of tasks or contributions."""
    return {
        session_id: [{name: getattr(row, name) for name in _NOTED} for row in rows]
        for session_id, rows in of_sessions.items()
    }


def _place_of(session: Session, upload: Upload) -> SlotAttempt:
    slot = _slot_of(upload.caller)
    return SlotAttempt(session.id, upload.round, upload.attempt, slot)


def _slot_of(caller: Caller) -> str:
    """Return the slot that a party's token stands for."""
    caller.require(Role.PARTY)
    if caller.slot is None:
        raise Forbidden("It needs the token of a party.")
    return caller.slot


def _check_valid(caller: Caller, valid: Container[str]) -> None:
    """Refuse a caller whose credential has ended since the request came."""
    if caller.credential_id not in valid:
        raise build_ended_refusal()


def _same_bytes(stored: Contribution, digest: str) -> Contribution:
    """Return what is stored, if it is the same bytes."""
    if stored.digest != digest:
        raise ContributionDiffers(
            f"Round {stored.round}, attempt {stored.attempt} was answered before."
        )
    return stored


def _require_open(
    db: Transaction, session: Session, place: SlotAttempt, task: OpenTask | None
) -> UploadRequirements:
    """Return what is asked, if this round and attempt are open for the slot."""
    require_alive(session)
    if session.state == SessionState.RECRUITING:
        raise NotReady("The session is recruiting; no round is open yet.")
    if session.state != SessionState.COLLECTING:
        raise RoundClosed(f"The session is {session.state}; no round is open.")
    closed = RoundClosed(f"Open is round {session.round}, attempt {session.attempt}.")
    if place[1:3] != (session.round, session.attempt):
        raise closed
    if task is None or session.agreement is None:
        require_going(db, session, place.slot)
        raise closed
    return UploadRequirements(session.agreement, task.digest)

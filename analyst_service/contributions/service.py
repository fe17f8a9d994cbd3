"""Handing out tasks and taking contributions."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Caller, Role, build_ended_refusal
from analyst_service.blobs import BlobDraft
from analyst_service.clock import Clock
from analyst_service.sessions.service import Quotas, SessionService, require_alive
from analyst_service.storage.models import (
    Contribution,
    Session,
    Task,
    UTCDateTime,
    table,
)
from analyst_service.transactions.audit import Audit
from analyst_service.transactions.batching import outcomes
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


class SlotAttempt(NamedTuple):
    """A slot's place in an attempt: the key of its task and of its answer."""

    session_id: str
    round: int
    attempt: int
    slot: str


class OpenTask(NamedTuple):
    """What a slot is asked now."""

    session_id: str
    round: int
    attempt: int
    slot: str
    digest: str
    sent_at: datetime | None

    @property
    def slot_attempt(self) -> SlotAttempt:
        """Return where it stands."""
        return SlotAttempt(*self[:4])


class SlotTask(NamedTuple):
    """The digest of what a slot is asked, and whether it has answered."""

    digest: str
    is_answered: bool


_SESSIONS, _TASKS, _CONTRIBUTIONS = map(table, (Session, Task, Contribution))


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


# conditions on a session
N_ANSWERS = _count(_CONTRIBUTIONS)
ALL_ANSWERED = _count(_TASKS) <= N_ANSWERS


# Queries of most requests, written once: to write one costs more than to send it.
_HERE = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
_WHERE = tuple(_TASKS.c[name] for name in SlotAttempt._fields)
_IS_ANSWERED = (
    sa.exists()
    .where(_is_open(_CONTRIBUTIONS), _CONTRIBUTIONS.c.slot == _TASKS.c.slot)
    .correlate(_SESSIONS, _TASKS)
)
_ANSWERS = (
    sa.select(Contribution).join(_SESSIONS, _is_open(_CONTRIBUTIONS)).where(_HERE)
)
_UNANSWERED = (
    sa.select(*(_TASKS.c[name] for name in OpenTask._fields))
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_HERE, ~_IS_ANSWERED)
)
_ASKED = (
    sa.select(*_WHERE, _TASKS.c.digest, _IS_ANSWERED)
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_HERE)
)
_MARK_SENT = (
    sa.update(_TASKS)
    .where(
        sa.tuple_(*_WHERE).in_(sa.bindparam("places", expanding=True)),
        _TASKS.c.sent_at.is_(None),
    )
    .values(sent_at=sa.bindparam("now", type_=UTCDateTime()))
    .returning(*_WHERE)
)
_ANY_COMPLETE = sa.select(
    sa.exists(sa.select(_SESSIONS.c.id).where(_HERE, ALL_ANSWERED))
)


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
    draft: BlobDraft | None = None


@dataclass(frozen=True, slots=True)
class UploadRequirements:
    """What an upload is checked against."""

    agreement: bytes
    task_digest: str


Stored = tuple[Contribution, bool]  # and whether it is new


class ContributionService:
    """Tasks and contributions in one transaction.

    Requests that come together share it: each session is read once for all of them.

    quota: how many bytes the open sessions of one owner may hold; None: any number.
    """

    def __init__(
        self, transaction: Transaction, clock: Clock, quota: int | None = None
    ) -> None:
        self._sessions = SessionService(transaction, clock)
        self._transaction = transaction
        self._audit = Audit(transaction)
        self._auth = AuthService(transaction, clock)
        self._quotas, self._quota = Quotas(transaction), quota
        self._clock = clock

    def tasks(
        self, asking: Sequence[TaskRequest]
    ) -> list[OpenTask | CoterieError | None]:
        """Return each one's open task, None if it has to wait, or why it is refused."""
        valid = self._auth.still_valid(each.caller for each in asking)
        sessions = self._own(each.caller for each in asking)
        collecting = [
            each.id
            for each in sessions.values()
            if each.state == SessionState.COLLECTING
        ]
        opened = {
            (row.session_id, row.slot): OpenTask(*row)
            for row in self._transaction.execute(
                _UNANSWERED, {"session_ids": collecting}
            )
        }

        def task(each: TaskRequest) -> OpenTask | None:
            check_valid(each.caller, valid)
            session = self._sessions.visible(each.caller, each.session, known=sessions)
            slot = slot_of(each.caller)
            require_alive(session)
            return opened.get((session.id, slot))

        return outcomes(task, asking)

    def note_sent(self, tasks: Collection[OpenTask]) -> None:
        """Write into the audits which slots are given their tasks, the first time."""
        now = self._clock.now()
        self._audit.lock({task.session_id for task in tasks})
        said: dict[str, list[dict[str, Any]]] = {}
        places = {task.slot_attempt: task for task in tasks}
        marked = self._transaction.execute(
            _MARK_SENT, {"places": list(places), "now": now}
        )
        for task in sorted(places[SlotAttempt(*row)] for row in marked):
            fields = {name: getattr(task, name) for name in _SAID}
            said.setdefault(task.session_id, []).append(fields)
        self._audit.extend("task-sent", now, said)

    def admit(
        self, arriving: Sequence[Upload]
    ) -> list[Contribution | UploadRequirements | CoterieError]:
        """Return what each is asked; or, of a repeat, what is stored; or the refusal.

        ContributionDiffers if other bytes are stored; NotReady, RoundClosed or
        SessionOver if nothing is, and this attempt is not open for the caller;
        QuotaReached if they do not fit.
        """
        sessions = self._own(each.caller for each in arriving)
        open_here = self._find_tasks(sessions)

        def admit_one(each: Upload) -> Contribution | UploadRequirements:
            session = self._sessions.visible(each.caller, each.session, known=sessions)
            where = _where_of(session, each)
            asked = open_here.get(where)
            if asked is None or asked.is_answered:
                stored = self._transaction.get(Contribution, where)
                if stored is not None:
                    return same_bytes(stored, each.digest)
            found = self._require_open(session, where, asked)
            self._quotas.check_bytes(session, each.size, self._quota)
            return found

        return outcomes(admit_one, arriving)

    def any_complete(self, session_ids: Collection[str]) -> bool:
        """Return whether one of these has an answer of every slot that was asked."""
        here = {"session_ids": list(session_ids)}
        return bool(self._transaction.scalar(_ANY_COMPLETE, here))

    def store(self, arrived: Sequence[Upload]) -> list[Stored | CoterieError]:
        """Store checked contributions; return each, or why it is refused."""
        valid = self._auth.still_valid(each.caller for each in arrived)
        now = self._clock.now()
        sessions = self._own((each.caller for each in arrived), lock=True)
        answers = {
            SlotAttempt(each.session_id, each.round, each.attempt, each.slot): each
            for each in self._transaction.scalars(
                _ANSWERS, {"session_ids": list(sessions)}
            )
        }
        open_here = self._find_tasks(sessions)
        fresh: dict[str, list[Contribution]] = {}

        def store_one(each: Upload) -> Stored:
            check_valid(each.caller, valid)
            session = self._sessions.visible(each.caller, each.session, known=sessions)
            where = _where_of(session, each)
            known = answers.get(where) or self._stored_before(session, where)
            if known is not None:
                return same_bytes(known, each.digest), False
            self._require_open(session, where, open_here.get(where))
            more = sum(
                one.size
                for session_id, rows in fresh.items()
                for one in rows
                if sessions[session_id].owner_id == session.owner_id
            )
            self._quotas.check_bytes(
                session, each.size, self._quota, more=more, lock=True
            )
            if each.draft is not None:
                each.draft.keep()
            answers[where] = Contribution(
                **where._asdict(),
                digest=each.digest,
                size=each.size,
                content=each.content,
                received_at=now,
            )
            fresh.setdefault(session.id, []).append(answers[where])
            return answers[where], True

        found = outcomes(store_one, arrived)
        self._note_stored(fresh, now)
        return found

    def _find_tasks(self, session_ids: Collection[str]) -> dict[SlotAttempt, SlotTask]:
        """Return what is asked in the open attempts of sessions, and where."""
        found = self._transaction.execute(_ASKED, {"session_ids": list(session_ids)})
        return {SlotAttempt(*row[:4]): SlotTask(row[4], row[5]) for row in found}

    def _require_open(
        self,
        session: Session,
        where: SlotAttempt,
        task: SlotTask | None,
    ) -> UploadRequirements:
        """Return what is asked, if this round and attempt are open for the slot."""
        check_open(session, where)
        if task is None or session.agreement is None:
            self._sessions.require_going(session, where.slot)
            raise RoundClosed(_describe_open_round(session))
        return UploadRequirements(session.agreement, task.digest)

    def _stored_before(
        self, session: Session, where: SlotAttempt
    ) -> Contribution | None:
        """Return what is stored of another attempt; what is of the open one is known."""
        if (where.round, where.attempt) == (session.round, session.attempt):
            return None
        return self._transaction.get(Contribution, where)

    def _own(
        self, callers: Iterable[Caller], *, lock: bool = False
    ) -> dict[str, Session]:
        """Return, by id, the sessions of those callers that are parties."""
        ids = {caller.session_id for caller in callers if caller.session_id}
        return self._sessions.with_ids(ids, lock=lock)

    def _note_stored(
        self, fresh: Mapping[str, Sequence[Contribution]], now: datetime
    ) -> None:
        if not fresh:
            return
        noted = self._audit.extend(
            "contribution",
            now,
            {
                session_id: [
                    {name: getattr(each, name) for name in _SAID} for each in stored
                ]
                for session_id, stored in fresh.items()
            },
        )
        for session_id, stored in fresh.items():
            for each, line in zip(stored, noted[session_id], strict=True):
                each.sequence, each.entry = line.number, hash_chain.digest(line.line)
        self._transaction.add_all(chain.from_iterable(fresh.values()))
        self._transaction.flush()


_SAID = ("slot", "round", "attempt", "digest")


def _where_of(session: Session, upload: Upload) -> SlotAttempt:
    return SlotAttempt(session.id, upload.round, upload.attempt, slot_of(upload.caller))


def check_valid(caller: Caller, valid: Container[str]) -> None:
    """Refuse a caller whose credential has ended since the request came."""
    if caller.credential_id not in valid:
        raise build_ended_refusal()


def same_bytes(found: Contribution, digest: str) -> Contribution:
    """Return what is stored, if it is the same bytes."""
    if found.digest != digest:
        raise ContributionDiffers(
            f"Round {found.round}, attempt {found.attempt} was answered before."
        )
    return found


def slot_of(caller: Caller) -> str:
    """Return the slot that a party's token stands for."""
    caller.require(Role.PARTY)
    if caller.slot is None:
        raise Forbidden("It needs the token of a party.")
    return caller.slot


def check_open(session: Session, where: SlotAttempt) -> None:
    """Refuse what is for another round or attempt than the open one."""
    require_alive(session)
    if session.state == SessionState.RECRUITING:
        raise NotReady("The session is recruiting; no round is open yet.")
    if (session.state, session.round, session.attempt) != (
        SessionState.COLLECTING,
        where.round,
        where.attempt,
    ):
        raise RoundClosed(_describe_open_round(session))


def _describe_open_round(session: Session) -> str:
    if session.state == SessionState.COLLECTING:
        return f"Open is round {session.round}, attempt {session.attempt}."
    return f"The session is {session.state}; no round is open."

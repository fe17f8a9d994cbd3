"""Moving sessions on: what is ready, who steps it, and what follows from a step.

Of several drivers one runs a step, and only its outcome counts.

A lease is a random token in the session's row, and a time until which it holds. The
driver that holds it renews it while the step runs; when it has run out, any driver may
take the step under a new token. The token is the fence: what follows from a step is
stored by an UPDATE that names it, so a driver that slept through the end of its lease
stores nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from analyst_service.blobs import FileBlobStore
from analyst_service.contributions import ALL_ANSWERED, N_ANSWERS
from analyst_service.database import Transaction, claim
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.models import (
    Contribution,
    Result,
    Session,
    Task,
    UTCDateTime,
    table,
)
from analyst_service.process_context import Service
from analyst_service.sessions import (
    continue_without_stopped,
    find_awaited,
    members_of,
    move,
)
from analyst_service.worker import Failed, Followed, Job
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.engine import Choosing, Closed, Conclusion, Opened
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import CHOICE, Event, SessionState


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to step a session; ``session`` is as it was when the lease was taken."""

    session: Session
    token: str
    begun: int

    @property
    def name(self) -> str:
        """Return the id of the session."""
        return self.session.id


# of every step, so built once
_SESSIONS = table(Session)
_NOW = sa.bindparam("now", type_=UTCDateTime())
# A lease that ends later than any driver would set it was set before the clock was put
# back: nobody renews it.
IS_FREE = sa.and_(
    _SESSIONS.c.state == SessionState.STEPPING.value,
    sa.or_(
        _SESSIONS.c.lease_until.is_(None),
        _SESSIONS.c.lease_until <= _NOW,
        _SESSIONS.c.lease_until > sa.bindparam("far", type_=UTCDateTime()),
    ),
)
_NEXT = (
    sa.select(Session)
    .where(IS_FREE)
    .order_by(_SESSIONS.c.changed_at, _SESSIONS.c.id)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_TAKE = (
    sa.update(_SESSIONS)
    .where(_SESSIONS.c.id == sa.bindparam("of_id"), IS_FREE)
    .values(
        lease_token=sa.bindparam("by"),
        lease_until=sa.bindparam("until"),
        # to take over a lease that holds is no attempt: its driver lives
        step_attempts=_SESSIONS.c.step_attempts
        + sa.case((_SESSIONS.c.lease_until > _NOW, 0), else_=1),
    )
    .returning(_SESSIONS.c.step_attempts)
)


class RoundPosition(NamedTuple):
    """Where a session stands; any move changes it."""

    state: str
    round: int
    attempt: int

    @property
    def has_news(self) -> bool:
        """Return whether those who wait have something to do, or nothing ever more."""
        return self.state not in {
            SessionState.RECRUITING.value,
            SessionState.STEPPING.value,
            SessionState.CHOOSING.value,
        }


def has_rounds_to_close(db: Transaction) -> bool:
    """Return whether there is a complete or an overdue session; takes no lock."""
    return bool(db.scalar(sa.select(_ANY_WAITS_NO_LONGER), {"now": db.now()}))


def has_work(db: Transaction, span: timedelta) -> bool:
    """Return whether there is such a session, or a step to take; takes no lock.

    span: how long a lease holds without being renewed.
    """
    now = db.now()
    return bool(db.scalar(_HAS_WORK, {"now": now, "far": now + 2 * span}))


def find_positions(
    db: Transaction, session_ids: Collection[str]
) -> dict[str, RoundPosition]:
    """Return where these sessions stand; takes no lock."""
    rows = db.execute(_STANDINGS, {"session_ids": list(session_ids)})
    return {row[0]: RoundPosition(*row[1:]) for row in rows}


_STANDINGS = sa.select(*_SESSIONS.c["id", "state", "round", "attempt"]).where(
    _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
)
_IS_COMPLETE = sa.and_(
    _SESSIONS.c.state == SessionState.COLLECTING.value,
    sa.or_(
        ALL_ANSWERED,
        sa.and_(_SESSIONS.c.deadline <= _NOW, _SESSIONS.c.quorum <= N_ANSWERS),
    ),
)
_IS_OVERDUE = sa.and_(
    _SESSIONS.c.state.in_(
        (
            SessionState.RECRUITING.value,
            SessionState.COLLECTING.value,
            SessionState.CHOOSING.value,
        )
    ),
    _SESSIONS.c.deadline <= _NOW,
)
_WAITS_NO_LONGER = sa.or_(_IS_COMPLETE, _IS_OVERDUE)
_ANY_WAITS_NO_LONGER, _ANY_IS_FREE = (
    sa.exists(sa.select(_SESSIONS.c.id).where(each))
    for each in (_WAITS_NO_LONGER, IS_FREE)
)
_HAS_WORK = sa.select(sa.or_(_ANY_IS_FREE, _ANY_WAITS_NO_LONGER))
_CLOSING = (
    sa.select(Session, _IS_COMPLETE.label("is_complete"))
    .where(_WAITS_NO_LONGER)
    .with_for_update(skip_locked=True, of=Session)
)


STEP_ATTEMPTS: Final = 10
"""How often a step is begun before it fails."""


def close_rounds(db: Transaction) -> None:
    """Let complete rounds step, and expire sessions past their deadline.

    A round is complete that has all its answers, or a quorum at the deadline. Sessions
    that somebody else is changing are left out: drivers that waited for each other's
    rows could wait in a circle.
    """
    now = db.now()
    rows = db.execute(_CLOSING, {"now": now}).all()
    # PostgreSQL counts answers as of the beginning of a query, and locks as it ends:
    # the last one may have been stored in between. So they are counted again.
    late = [session.id for session, is_complete in rows if not is_complete]
    answered = sa.select(_SESSIONS.c.id).where(_SESSIONS.c.id.in_(late), _IS_COMPLETE)
    complete = set(db.scalars(answered, {"now": now})) if late else ()
    for session, is_complete in rows:
        if is_complete or session.id in complete:
            move(db, session, Event.ROUND_COMPLETE, now)
        elif session.state == SessionState.CHOOSING:
            move(db, session, Event.DEADLINE, now)
        else:
            reason, detail = Problem.DEADLINE_PASSED.slug, _describe_wait(db, session)
            move(db, session, Event.DEADLINE, now, reason=reason, detail=detail)


def _describe_wait(db: Transaction, session: Session) -> str:
    """Return where a session waited in vain, and for whom."""
    where = f"in round {session.round}" if session.round else "for parties to join"
    awaited = find_awaited(db, session)
    names = [m.slot for m in members_of(db, session.id) if m.slot in awaited]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    missing = f" Missing: {', '.join(names[:20])}{more}." if names else ""
    return f"It waited {where} until its deadline.{missing}"


def close_and_take(db: Transaction, service: Service) -> tuple[Lease, Job] | None:
    """Close rounds, and take a step if there is one."""
    close_rounds(db)
    lease = take(db, service.lease_span)
    return None if lease is None else (lease, job_of(db, service, lease.session))


def take(db: Transaction, span: timedelta) -> Lease | None:
    """Take a step; fail the sessions whose step was begun too often.

    span: how long a lease holds without being renewed.
    """
    while (lease := _take_next(db, span)) is not None:
        if lease.begun <= STEP_ATTEMPTS:
            return lease
        detail = (
            f"The step was begun {STEP_ATTEMPTS} times and never finished: its worker was "
            "killed each time, or the clocks of the analysts differ."
        )
        _fail(db, lease, Failed(reason=Problem.INTERNAL.slug, detail=detail))
    return None


def _take_next(db: Transaction, span: timedelta) -> Lease | None:
    """Take the step that waits longest; None if there is none.

    Rows that another driver is about to take are skipped instead of waited for.
    """
    now = db.now()
    free = {"now": now, "far": now + 2 * span}
    session = db.scalar(_NEXT, free)
    if session is None:
        return None
    token = secrets.token_hex(16)
    begun = db.scalar(
        _TAKE, free | {"of_id": session.id, "by": token, "until": now + span}
    )
    return None if begun is None else Lease(session, token, begun)


def renew(db: Transaction, lease: Lease, span: timedelta) -> bool:
    """Say that the step still runs; False if another driver has it now."""
    return _change(db, lease, lease_until=db.now() + span)


def give_back(
    db: Transaction, lease: Lease, seconds: float = 0, *, counts: bool
) -> None:
    """Leave a step to anyone who takes it next, in some seconds.

    counts: whether this attempt counts against the session.
    """
    _change(
        db,
        lease,
        lease_token=None,
        lease_until=db.now() + timedelta(seconds=seconds),
        step_attempts=lease.begun if counts else lease.begun - 1,
    )


def _change(db: Transaction, lease: Lease, **values: object) -> bool:
    """Write columns of a session, unless its lease is lost."""
    changed = db.execute(
        sa.update(_SESSIONS)
        .where(
            _SESSIONS.c.id == lease.session.id,
            _SESSIONS.c.lease_token == lease.token,
            _SESSIONS.c.state == SessionState.STEPPING.value,
        )
        .values(values)
        .returning(_SESSIONS.c.id)
    )
    return changed.first() is not None


def job_of(db: Transaction, service: Service, session: Session) -> Job:
    """Return what the worker needs for a session's step."""
    answers = _read_open(db, Contribution, session, Contribution.content)
    return Job(
        blobs=service.settings.blob_place,
        engine=EngineChoice.of(service.settings),
        agreement=session.agreement or b"",
        state=session.state_digest,
        tasks=dict(_read_open(db, Task, session)),
        contributions={
            slot: digest if content is None else content
            for slot, digest, content in answers
        },
        chooses=session.figures is not None and session.stage == CHOICE,
        chosen=session.chosen,
        packages=service.settings.named_packages,
    )


def _read_open(
    db: Transaction, kind: type[Task | Contribution], session: Session, *more: Any
) -> Sequence[Any]:
    """Return slot, digest and more of tasks or contributions of the open attempt."""
    query = sa.select(kind.slot, kind.digest, *more).where(
        kind.session_id == session.id,
        kind.round == session.round,
        kind.attempt == session.attempt,
    )
    return db.execute(query).all()


def follow(
    db: Transaction, blobs: FileBlobStore, lease: Lease, followed: Followed
) -> bool:
    """Store what follows from a step; False if the lease was lost meanwhile.

    Raises FileNotFoundError if a blob of it was removed before a row named it; the step
        has to run again.
    """
    digests = set(followed.payloads)
    claim(db, digests)
    if not blobs.have(digests):
        raise FileNotFoundError("a blob of the step's outcome is gone")
    if isinstance(followed, Opened):
        return _open(db, lease, followed)
    if isinstance(followed, Choosing):
        return _choose(db, lease, followed)
    if isinstance(followed, Closed):
        return _complete(db, lease, followed)
    return _fail(db, lease, followed)


def _open(db: Transaction, lease: Lease, opened: Opened[str]) -> bool:
    now, session_id = db.now(), lease.session.id
    seconds = read_terms(lease.session.terms).deadlines.round
    news: dict[str, Any] = {}
    if (runs := opened.conclusion) is not None:
        news |= {"figures": _with_sizes(runs), "chosen": runs.chosen}
    if opened.profiles is not None:
        news["profiles"] = opened.profiles
    if opened.progress is not None:
        news["progress"] = {**opened.progress, "stage": opened.stage}
    moved = move(
        db,
        lease.session,
        Event.ROUND_OPENED,
        now,
        lease.token,
        round=opened.round,
        attempt=opened.attempt,
        stage=opened.stage,
        stage_index=opened.stage_index,
        n_stages=opened.n_stages,
        quorum=opened.quorum,
        state_digest=opened.state,
        **news,
        deadline=now + timedelta(seconds=seconds),
    )
    if not moved:
        return False
    place = {
        "session_id": session_id,
        "round": opened.round,
        "attempt": opened.attempt,
    }
    # of the table, and not of the class: nothing of it is read back
    db.execute(
        sa.insert(table(Task)),
        [place | {"slot": s, "digest": digest} for s, digest in opened.tasks.items()],
    )
    continue_without_stopped(db, session_id)
    return True


def _choose(db: Transaction, lease: Lease, choosing: Choosing[str]) -> bool:
    now, evaluation = db.now(), read_terms(lease.session.terms).evaluation
    return move(
        db,
        lease.session,
        Event.RUNS_DONE,
        now,
        lease.token,
        stage=CHOICE,
        state_digest=choosing.state,
        figures=_with_sizes(choosing),
        deadline=now + timedelta(seconds=evaluation.within if evaluation else 0),
    )


def _complete(db: Transaction, lease: Lease, closed: Closed[str]) -> bool:
    session, digest = lease.session, closed.summary
    moved = move(
        db, session, Event.FINISHED, db.now(), lease.token, summary_digest=digest
    )
    if moved:
        db.add_all(
            Result(session_id=session.id, slot=slot, digest=digest)
            for slot, digest in closed.results.items()
        )
    return moved


def _fail(db: Transaction, lease: Lease, failed: Failed) -> bool:
    return move(
        db,
        lease.session,
        Event.STEP_FAILED,
        db.now(),
        lease.token,
        reason=failed.reason,
        detail=failed.detail,
    )


def _with_sizes(runs: Conclusion | Choosing[str]) -> list[dict[str, Any]]:
    """Return the figures of each run as they are stored: with sizes, where told."""
    if not runs.sizes:
        return runs.figures
    pairs = zip(runs.figures, runs.sizes, strict=True)
    return [{**figures, "sizes": sizes} for figures, sizes in pairs]

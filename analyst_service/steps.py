"""The steps of sessions: finding those that are due, leasing them, and storing results.

A lease decides which of several drivers runs a step. A lease consists of a random token
in the session's row and the time at which it expires. The driver renews the lease while
the step runs; once it has expired, any driver may take the step under a new token. The
token is a fence: results are stored by an UPDATE whose condition contains it, so a
driver that was suspended until its lease had expired stores nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from analyst_service.blobs import FileBlobStore
from analyst_service.contributions import ALL_ANSWERED, N_ANSWERS
from analyst_service.database import Transaction, lock_digests
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
    apply_event,
    awaited_slots,
    drop_stopped_parties,
    members_of,
)
from analyst_service.worker import Failed, Job, StepResult
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.engine import Choosing, Closed, Conclusion, Opened
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import CHOICE, Event, SessionState


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a step of a session.

    session: the session's row at the time when the lease was taken.
    begun: how often the step has been started, including this attempt.
    """

    session: Session
    token: str
    begun: int


# These statements are built only once, because every step executes them.
_SESSIONS = table(Session)
_NOW = sa.bindparam("now", type_=UTCDateTime())
# A lease is ignored if it expires later than any driver would set it now: it was taken
# before the clock was set back.
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
        # Replacing an ignored lease is not a new attempt: its driver did not die.
        step_attempts=_SESSIONS.c.step_attempts
        + sa.case((_SESSIONS.c.lease_until > _NOW, 0), else_=1),
    )
    .returning(_SESSIONS.c.step_attempts)
)
# The columns to change are chosen when the statement is executed.
_CHANGE = (
    sa.update(_SESSIONS)
    .where(
        _SESSIONS.c.id == sa.bindparam("of_id"),
        _SESSIONS.c.lease_token == sa.bindparam("by"),
        _SESSIONS.c.state == SessionState.STEPPING.value,
    )
    .returning(_SESSIONS.c.id)
)


class RoundPosition(NamedTuple):
    """The position of a session, which changes whenever the session moves on."""

    state: str
    round: int
    attempt: int

    @property
    def has_news(self) -> bool:
        """Whether requests that wait for the session should be answered now."""
        return self.state not in {
            SessionState.RECRUITING.value,
            SessionState.STEPPING.value,
            SessionState.CHOOSING.value,
        }


def has_rounds_to_close(db: Transaction) -> bool:
    """Return whether a round is complete or a session is overdue; takes no lock."""
    return bool(db.scalar(_HAS_DUE, {"now": db.now()}))


def has_work(db: Transaction, span: timedelta) -> bool:
    """Return whether there is a round to close or a step to take; takes no lock.

    span: how long a lease is valid without renewal.
    """
    now = db.now()
    return bool(db.scalar(_HAS_WORK, {"now": now, "far": now + 2 * span}))


def find_positions(
    db: Transaction, session_ids: Collection[str]
) -> dict[str, RoundPosition]:
    """Return the position of each session; takes no lock."""
    rows = db.execute(_POSITIONS, {"session_ids": list(session_ids)})
    return {row[0]: RoundPosition(*row[1:]) for row in rows}


_POSITIONS = sa.select(*_SESSIONS.c["id", "state", "round", "attempt"]).where(
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
    # Separate comparisons, because IN would render its list at each execution.
    sa.or_(
        _SESSIONS.c.state == SessionState.RECRUITING.value,
        _SESSIONS.c.state == SessionState.COLLECTING.value,
        _SESSIONS.c.state == SessionState.CHOOSING.value,
    ),
    _SESSIONS.c.deadline <= _NOW,
)
_IS_DUE = sa.or_(_IS_COMPLETE, _IS_OVERDUE)
_HAS_DUE, _HAS_WORK = (
    sa.select(sa.exists(sa.select(_SESSIONS.c.id).where(condition)))
    for condition in (_IS_DUE, sa.or_(IS_FREE, _IS_DUE))
)
_CLOSING = (
    sa.select(Session, _IS_COMPLETE.label("is_complete"))
    .where(_IS_DUE)
    .with_for_update(skip_locked=True, of=Session)
)


STEP_ATTEMPTS: Final = 10
"""The maximum number of attempts at a step, after which its session fails."""


def close_rounds(db: Transaction) -> None:
    """Close rounds that are complete, and expire sessions that are past their deadline.

    A round is complete when all contributions have arrived, or, at the deadline, if a
    quorum of them has arrived. Locked sessions are skipped, because drivers that wait
    for each other's rows could deadlock.
    """
    now = db.now()
    rows = db.execute(_CLOSING, {"now": now}).all()
    # PostgreSQL counts contributions when the query begins, and locks rows when it ends.
    # The last contribution may arrive in between, so they are counted again.
    late = [session.id for session, is_complete in rows if not is_complete]
    answered = sa.select(_SESSIONS.c.id).where(_SESSIONS.c.id.in_(late), _IS_COMPLETE)
    complete = set(db.scalars(answered, {"now": now})) if late else ()
    for session, is_complete in rows:
        if is_complete or session.id in complete:
            apply_event(db, session, Event.ROUND_COMPLETE, now)
        elif session.state == SessionState.CHOOSING:
            apply_event(db, session, Event.DEADLINE, now)
        else:
            reason, detail = Problem.DEADLINE_PASSED.slug, _describe_wait(db, session)
            apply_event(db, session, Event.DEADLINE, now, reason=reason, detail=detail)


def _describe_wait(db: Transaction, session: Session) -> str:
    """Return a sentence on what an expired session was waiting for, and for whom."""
    purpose = f"in round {session.round}" if session.round else "for parties to join"
    awaited = awaited_slots(db, [session]).get(session.id, [])
    names = [m.slot for m in members_of(db, session.id) if m.slot in awaited]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    missing = f" Missing: {', '.join(names[:20])}{more}." if names else ""
    return f"It waited {purpose} until its deadline.{missing}"


def close_and_lease(db: Transaction, service: Service) -> tuple[Lease, Job] | None:
    """Close rounds, and lease a step; return None if no step is due."""
    close_rounds(db)
    lease = take_lease(db, service.lease_span)
    return None if lease is None else (lease, build_job(db, service, lease.session))


def take_lease(db: Transaction, span: timedelta) -> Lease | None:
    """Lease a free step, if any; fail sessions whose step was started too often.

    span: how long a lease is valid without renewal.
    """
    now = db.now()
    free = {"now": now, "far": now + 2 * span}
    while (session := db.scalar(_NEXT, free)) is not None:
        token = secrets.token_hex(16)
        taken = {"of_id": session.id, "by": token, "until": now + span}
        begun = db.scalar(_TAKE, free | taken)
        if begun is None:
            return None
        lease = Lease(session, token, begun)
        if begun <= STEP_ATTEMPTS:
            return lease
        detail = (
            f"The step was started {STEP_ATTEMPTS} times and never finished: its "
            "worker was killed each time."
        )
        _fail_session(db, lease, Failed(reason=Problem.INTERNAL.slug, detail=detail))
    return None


def renew_lease(db: Transaction, lease: Lease, span: timedelta) -> bool:
    """Extend the lease of a running step; return False if the lease was lost."""
    return _update_session(db, lease, lease_until=db.now() + span)


def release_lease(
    db: Transaction, lease: Lease, seconds: float = 0, *, counts: bool
) -> None:
    """Release the lease of a step, which can be taken again after a delay (seconds).

    counts: whether this attempt counts towards the maximum number of attempts.
    """
    _update_session(
        db,
        lease,
        lease_token=None,
        lease_until=db.now() + timedelta(seconds=seconds),
        step_attempts=lease.begun if counts else lease.begun - 1,
    )


def _update_session(db: Transaction, lease: Lease, **values: object) -> bool:
    """Update columns of a session; return False if the lease was lost."""
    of_lease = {"of_id": lease.session.id, "by": lease.token}
    return db.execute(_CHANGE, of_lease | values).first() is not None


def build_job(db: Transaction, service: Service, session: Session) -> Job:
    """Return the input from which a worker runs a session's next step."""
    return Job(
        blobs=service.settings.blob_location,
        engine=service.settings.engine,
        agreement=session.agreement or b"",
        state=session.state_digest,
        tasks=_fetch_open_payloads(db, Task, session),
        contributions=_fetch_open_payloads(db, Contribution, session),
        chooses=session.figures is not None and session.stage == CHOICE,
        chosen=session.chosen,
        packages=service.settings.protocol_package_names,
    )


def _fetch_open_payloads(
    db: Transaction, kind: type[Task | Contribution], session: Session
) -> dict[str, str | bytes]:
    """Return the current tasks or contributions by slot, long ones as digests of blobs."""
    place = {name: getattr(session, name) for name in ("id", "round", "attempt")}
    return {
        slot: digest if content is None else content
        for slot, digest, content in db.execute(_OPEN[kind], place)
    }


_OPEN = {
    kind: sa.select(*rows.c["slot", "digest", "content"]).where(
        rows.c.session_id == sa.bindparam("id"),
        rows.c.round == sa.bindparam("round"),
        rows.c.attempt == sa.bindparam("attempt"),
    )
    for kind, rows in ((Task, table(Task)), (Contribution, table(Contribution)))
}


def store_result(
    db: Transaction, blobs: FileBlobStore, lease: Lease, result: StepResult
) -> bool:
    """Store the result of a step; return False if the lease was lost in the meantime.

    Raises FileNotFoundError if a sweep has removed a blob of the result before a row
    referred to it, so that the step has to run again.
    """
    digests = {digest for digest in result.payloads if isinstance(digest, str)}
    lock_digests(db, digests)
    if not blobs.has_all(digests):
        raise FileNotFoundError("a blob of the step's result was removed")
    if isinstance(result, Opened):
        return _open_round(db, lease, result)
    if isinstance(result, Choosing):
        return _ask_for_choice(db, lease, result)
    if isinstance(result, Closed):
        return _end_session(db, lease, result)
    return _fail_session(db, lease, result)


def _open_round(db: Transaction, lease: Lease, opened: Opened[str | bytes]) -> bool:
    now, session_id = db.now(), lease.session.id
    seconds = read_terms(lease.session.terms).deadlines.round
    news: dict[str, Any] = {}
    if (runs := opened.conclusion) is not None:
        news |= {"figures": _figures_with_sizes(runs), "chosen": runs.chosen}
    if opened.profiles is not None:
        news["profiles"] = opened.profiles
    if opened.progress is not None:
        news["progress"] = {**opened.progress, "stage": opened.stage}
    moved = apply_event(
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
    # The ORM is bypassed, because nothing is read back.
    db.execute(
        sa.insert(table(Task)),
        [place | {"slot": slot} | _task_columns(t) for slot, t in opened.tasks.items()],
    )
    drop_stopped_parties(db, session_id)
    return True


def _task_columns(task: str | bytes) -> dict[str, Any]:
    if isinstance(task, str):
        return {"digest": task, "content": None}
    return {"digest": sha256(task).hexdigest(), "content": task}


def _ask_for_choice(db: Transaction, lease: Lease, move: Choosing[str | bytes]) -> bool:
    now, evaluation = db.now(), read_terms(lease.session.terms).evaluation
    moved = apply_event(
        db,
        lease.session,
        Event.RUNS_DONE,
        now,
        lease.token,
        stage=CHOICE,
        state_digest=move.state,
        figures=_figures_with_sizes(move.conclusion),
        deadline=now + timedelta(seconds=evaluation.within if evaluation else 0),
    )
    if moved:
        drop_stopped_parties(db, lease.session.id)
    return moved


def _end_session(db: Transaction, lease: Lease, closed: Closed[str | bytes]) -> bool:
    session, digest = lease.session, closed.summary
    moved = apply_event(
        db, session, Event.FINISHED, db.now(), lease.token, summary_digest=digest
    )
    if moved:
        db.add_all(
            Result(session_id=session.id, slot=slot, digest=digest)
            for slot, digest in closed.results.items()
        )
    return moved


def _fail_session(db: Transaction, lease: Lease, failed: Failed) -> bool:
    return apply_event(
        db,
        lease.session,
        Event.STEP_FAILED,
        db.now(),
        lease.token,
        reason=failed.reason,
        detail=failed.detail,
    )


def _figures_with_sizes(runs: Conclusion) -> list[dict[str, Any]]:
    """Return the quality figures of each run, with cluster sizes if these are released."""
    if not runs.sizes:
        return runs.figures
    pairs = zip(runs.figures, runs.sizes, strict=True)
    return [{**figures, "sizes": sizes} for figures, sizes in pairs]

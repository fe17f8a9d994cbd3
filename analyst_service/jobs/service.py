"""Moving sessions on: what is ready, and what follows from a step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from sqlalchemy.orm import Session as Unit

from analyst_service.clock import Clock
from analyst_service.contributions.repository import ContributionRepository
from analyst_service.jobs.repository import JobRepository
from analyst_service.jobs.worker import Complete, Failed, Followed, Job, NextRound
from analyst_service.models import Contribution, Session, Task
from analyst_service.results.repository import ResultRepository
from analyst_service.sessions.repository import SessionRepository
from analyst_service.sessions.states import Event
from clustering_protocols.problems import Problem
from clustering_protocols.terms import read_terms


class JobService:
    """Jobs in one transaction."""

    def __init__(self, unit: Unit, clock: Clock) -> None:
        self._jobs = JobRepository(unit)
        self._sessions = SessionRepository(unit)
        self._contributions = ContributionRepository(unit)
        self._results = ResultRepository(unit)
        self._clock = clock

    def has_rounds_to_close(self) -> bool:
        """Return whether :meth:`close_rounds` would move a session; takes no lock."""
        now = self._clock.now()
        return bool(self._jobs.complete(now) or self._jobs.overdue(now))

    def close_rounds(self) -> None:
        """Let complete rounds step, and expire what waited in vain."""
        now = self._clock.now()
        for session in self._jobs.complete(now):
            self._sessions.move(session, Event.ROUND_COMPLETE, now)
        for session in self._jobs.overdue(now):
            self._sessions.move(
                session,
                Event.DEADLINE,
                now,
                reason=Problem.DEADLINE_PASSED.slug,
                detail=f"It waited in round {session.round} until its deadline.",
            )

    def ready(self) -> list[Session]:
        """Return the sessions whose step has to run."""
        return self._jobs.stepping()

    def job(self, session: Session, blob_dir: Path) -> Job:
        """Return what the worker needs for a session's step."""
        return Job(
            blob_dir=blob_dir,
            agreement=session.agreement or b"",
            state=session.state_digest,
            tasks=self._contributions.digests(Task, session),
            contributions=self._contributions.digests(Contribution, session),
        )

    def follow(self, session: Session, followed: Followed) -> bool:
        """Store what follows from a step; False if the session moved meanwhile."""
        if isinstance(followed, NextRound):
            return self._open(session, followed)
        if isinstance(followed, Complete):
            return self._complete(session, followed)
        return self._fail(session, followed)

    def _open(self, session: Session, opened: NextRound) -> bool:
        now = self._clock.now()
        seconds = read_terms(session.terms).deadlines.round
        moved = self._sessions.move(
            session,
            Event.ROUND_OPENED,
            now,
            round=opened.round,
            attempt=opened.attempt,
            stage=opened.stage,
            stage_index=opened.stage_index,
            n_stages=opened.n_stages,
            quorum=opened.quorum,
            state_digest=opened.state,
            deadline=now + timedelta(seconds=seconds),
        )
        if moved:
            self._jobs.add_tasks(_tasks(session.id, opened, opened.tasks))
        return moved

    def _complete(self, session: Session, complete: Complete) -> bool:
        moved = self._sessions.move(
            session,
            Event.FINISHED,
            self._clock.now(),
            summary_digest=complete.summary,
        )
        if moved:
            self._results.add(session.id, complete.results)
        return moved

    def _fail(self, session: Session, failed: Failed) -> bool:
        return self._sessions.move(
            session,
            Event.STEP_FAILED,
            self._clock.now(),
            reason=failed.reason,
            detail=failed.detail,
        )


def _tasks(
    session_id: str, opened: NextRound, digests: Mapping[str, str]
) -> list[Task]:
    return [
        Task(
            session_id=session_id,
            round=opened.round,
            attempt=opened.attempt,
            slot=slot,
            digest=digest,
        )
        for slot, digest in digests.items()
    ]

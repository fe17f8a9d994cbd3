"""Moving sessions on: what is ready, and what follows from a step."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy.orm import Session as Transaction

from analyst_service.contributions.repository import ContributionRepository
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.jobs.leases import Lease, LeaseRepository
from analyst_service.jobs.repository import JobRepository
from analyst_service.jobs.worker import Failed, Followed, Job
from analyst_service.process_context import Service
from analyst_service.sessions.party_stops import PartyStops
from analyst_service.sessions.repository import SessionRepository
from analyst_service.sessions.service import SessionService
from analyst_service.storage.database import claim
from analyst_service.storage.models import Contribution, Result, Session, Task
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.engine import Choosing, Closed, Conclusion, Opened
from clustering_protocols.terms.terms import read_terms
from clustering_protocols.wire.states import CHOICE, Event, SessionState

STEP_ATTEMPTS: Final = 10
"""How often a step is begun before it fails."""


class JobService:
    """Jobs in one transaction."""

    def __init__(self, transaction: Transaction, service: Service) -> None:
        self._transaction = transaction
        self._jobs = JobRepository(transaction)
        self._leases = LeaseRepository(transaction, service.settings.lease_seconds)
        self._sessions = SessionRepository(transaction)
        self._contributions = ContributionRepository(transaction)
        self._clock = service.clock
        self._settings = service.settings
        self._blobs = service.blobs

    def close_rounds(self) -> None:
        """Let complete rounds step, and expire sessions past their deadline."""
        now = self._clock.now()
        for session, is_complete in self._jobs.to_close(now):
            if is_complete:
                self._sessions.move(session, Event.ROUND_COMPLETE, now)
            elif session.state == SessionState.CHOOSING:
                self._sessions.move(session, Event.DEADLINE, now)
            else:
                self._sessions.move(
                    session,
                    Event.DEADLINE,
                    now,
                    reason=Problem.DEADLINE_PASSED.slug,
                    detail=self._describe_wait(session),
                )

    def _describe_wait(self, session: Session) -> str:
        """Return where a session waited in vain, and for whom."""
        where = f"in round {session.round}" if session.round else "for parties to join"
        awaited = SessionService(self._transaction, self._clock).find_awaited(session)
        names = [
            m.slot for m in self._sessions.members(session.id) if m.slot in awaited
        ]
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        missing = f" Missing: {', '.join(names[:20])}{more}." if names else ""
        return f"It waited {where} until its deadline.{missing}"

    def close_and_take(self) -> tuple[Lease, Job] | None:
        """Close rounds, and take a step if there is one."""
        self.close_rounds()
        lease = self.take()
        return None if lease is None else (lease, self.job(lease.session))

    def take(self) -> Lease | None:
        """Take a step; fail the sessions whose step was begun too often."""
        while (lease := self._leases.take(self._clock.now())) is not None:
            if lease.begun <= STEP_ATTEMPTS:
                return lease
            detail = (
                f"The step was begun {STEP_ATTEMPTS} times and never finished: its worker was "
                "killed each time, or the clocks of the analysts differ."
            )
            self._fail(lease, Failed(reason=Problem.INTERNAL.slug, detail=detail))
        return None

    def renew(self, lease: Lease) -> bool:
        """Say that the step still runs; False if the lease is lost."""
        return self._leases.renew(lease, self._clock.now())

    def give_back(self, lease: Lease, seconds: float = 0, *, counts: bool) -> None:
        """Leave a step to anyone who takes it next, in some seconds."""
        until = self._clock.now() + timedelta(seconds=seconds)
        self._leases.release(lease, until, counts=counts)

    def job(self, session: Session) -> Job:
        """Return what the worker needs for a session's step."""
        return Job(
            blobs=self._settings.blob_place,
            engine=EngineChoice.of(self._settings),
            agreement=session.agreement or b"",
            state=session.state_digest,
            tasks=self._contributions.digests(Task, session),
            contributions=self._contributions.digests(Contribution, session),
            chooses=session.figures is not None and session.stage == CHOICE,
            chosen=session.chosen,
            packages=self._settings.named_packages,
        )

    def follow(self, lease: Lease, followed: Followed) -> bool:
        """Store what follows from a step; False if the lease was lost meanwhile.

        Raises FileNotFoundError if a blob of it was removed before a row named it; the
            step has to run again.
        """
        digests = set(followed.payloads)
        claim(self._transaction, digests)
        if not self._blobs.have(digests):
            raise FileNotFoundError("a blob of the step's outcome is gone")
        if isinstance(followed, Opened):
            return self._open(lease, followed)
        if isinstance(followed, Choosing):
            return self._choose(lease, followed)
        if isinstance(followed, Closed):
            return self._complete(lease, followed)
        return self._fail(lease, followed)

    def _open(self, lease: Lease, opened: Opened[str]) -> bool:
        now = self._clock.now()
        seconds = read_terms(lease.session.terms).deadlines.round
        runs = opened.conclusion
        told: dict[str, Any] = {}
        if runs is not None:
            told |= {"figures": _with_sizes(runs), "chosen": runs.chosen}
        if opened.profiles is not None:
            told["profiles"] = opened.profiles
        if opened.progress is not None:
            told["progress"] = {**opened.progress, "stage": opened.stage}
        moved = self._sessions.move(
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
            **told,
            deadline=now + timedelta(seconds=seconds),
        )
        if moved:
            self._jobs.add_tasks(_tasks(lease.session.id, opened))
            PartyStops(self._transaction, self._clock).go_on_without(lease.session.id)
        return moved

    def _choose(self, lease: Lease, choosing: Choosing[str]) -> bool:
        now, evaluation = self._clock.now(), read_terms(lease.session.terms).evaluation
        return self._sessions.move(
            lease.session,
            Event.RUNS_DONE,
            now,
            lease.token,
            stage=CHOICE,
            state_digest=choosing.state,
            figures=_with_sizes(choosing),
            deadline=now + timedelta(seconds=evaluation.within if evaluation else 0),
        )

    def _complete(self, lease: Lease, closed: Closed[str]) -> bool:
        moved = self._sessions.move(
            lease.session,
            Event.FINISHED,
            self._clock.now(),
            lease.token,
            summary_digest=closed.summary,
        )
        if moved:
            self._transaction.add_all(
                Result(session_id=lease.session.id, slot=slot, digest=digest)
                for slot, digest in closed.results.items()
            )
        return moved

    def _fail(self, lease: Lease, failed: Failed) -> bool:
        return self._sessions.move(
            lease.session,
            Event.STEP_FAILED,
            self._clock.now(),
            lease.token,
            reason=failed.reason,
            detail=failed.detail,
        )


def _with_sizes(told: Conclusion | Choosing[str]) -> list[dict[str, Any]]:
    """Return the figures of each run as they are stored: with sizes, where told."""
    if not told.sizes:
        return told.figures
    pairs = zip(told.figures, told.sizes, strict=True)
    return [{**figures, "sizes": sizes} for figures, sizes in pairs]


def _tasks(session_id: str, opened: Opened[str]) -> list[dict[str, object]]:
    here = {
        "session_id": session_id,
        "round": opened.round,
        "attempt": opened.attempt,
    }
    return [
        {**here, "slot": slot, "digest": digest}
        for slot, digest in opened.tasks.items()
    ]

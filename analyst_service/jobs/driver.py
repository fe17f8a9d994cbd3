"""The driver: a thread that steps complete rounds in worker processes.

It keeps nothing that the database does not hold. Killed anywhere, the next driver finds
the session still ``stepping`` and repeats the step, with the same outcome.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Self

from sqlalchemy.exc import OperationalError

from analyst_service.deps import Service
from analyst_service.errors import describe
from analyst_service.jobs import worker
from analyst_service.jobs.service import JobService
from analyst_service.models import Session
from clustering_protocols.errors import StorageFull
from clustering_protocols.problems import Problem

log = logging.getLogger(__name__)

MAX_CRASHES = 3
RETRY_SECONDS = 5.0
_Step = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Running:
    session: Session
    pool: Executor
    future: Future[worker.Followed]


class Driver:
    """Steps rounds while it is entered; one per service process.

    Each worker process has a pool of its own, which runs one step at a time: a step
    that takes its process down takes no other step with it.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="driver")
        self._running: dict[_Step, _Running] = {}
        self._crashes: Counter[_Step] = Counter()
        self._not_before: dict[_Step, float] = {}
        self._free = [self._new_pool() for _ in range(service.settings.workers)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        for pool in (*self._free, *(busy.pool for busy in self._running.values())):
            pool.shutdown(cancel_futures=True)

    def _loop(self) -> None:
        while not self._stop.wait(self._service.settings.poll_seconds):
            try:
                self._collect_outcomes()
                self._start_steps()
            except Exception as error:  # noqa: BLE001  the sessions of tomorrow need it
                # the text of an error may hold values: only its kind and place
                log.error("driver: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values

    def _start_steps(self) -> None:
        service = self._service
        with service.database.read() as unit:
            closing = JobService(unit, service.clock).has_rounds_to_close()
        if closing:  # only then: on SQLite a write transaction holds up all others
            with service.database.write() as unit:
                JobService(unit, service.clock).close_rounds()
        with service.database.read() as unit:
            jobs = JobService(unit, service.clock)
            for session in jobs.ready():
                step = _step_of(session)
                waits = time.monotonic() < self._not_before.get(step, 0.0)
                if self._free and step not in self._running and not waits:
                    job = jobs.job(session, service.settings.blob_dir)
                    self._running[step] = self._submit(session, job)

    def _collect_outcomes(self) -> None:
        for step, done in list(self._running.items()):
            if done.future.done():
                del self._running[step]
                broken = isinstance(done.future.exception(), BrokenProcessPool)
                self._free.append(self._new_pool() if broken else done.pool)
                self._conclude(step, done)

    def _conclude(self, step: _Step, done: _Running) -> None:
        """Store what followed; a step that crashed is tried again a few times."""
        try:
            self._follow(done.session, done.future.result())
            self._crashes.pop(step, None)
            self._not_before.pop(step, None)
        except OperationalError:
            raise  # the database is away: the step is repeated once it is back
        except (StorageFull, OSError) as error:
            # the machine's trouble, not the session's: again, after a while
            log.error("step of %s: %s", step[0], describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._not_before[step] = time.monotonic() + RETRY_SECONDS
        except Exception as error:  # noqa: BLE001  whatever it is, it is this session's
            log.error("step of %s: %s", step[0], describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._crashes[step] += 1
            if self._crashes[step] >= MAX_CRASHES:
                detail = f"The step crashed {MAX_CRASHES} times."
                failed = worker.Failed(reason=Problem.INTERNAL.slug, detail=detail)
                self._follow(done.session, failed)

    def _follow(self, session: Session, followed: worker.Followed) -> None:
        with self._service.database.write() as unit:
            JobService(unit, self._service.clock).follow(session, followed)

    def _submit(self, session: Session, job: worker.Job) -> _Running:
        pool = self._free.pop()
        try:
            future = pool.submit(worker.run, job)
        except BrokenProcessPool:  # its process died while it had nothing to do
            pool = self._new_pool()
            future = pool.submit(worker.run, job)
        return _Running(session, pool, future)

    def _new_pool(self) -> Executor:
        return ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=worker.follow_parent,
        )


def _step_of(session: Session) -> _Step:
    return session.id, session.round, session.attempt

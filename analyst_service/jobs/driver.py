"""The driver: a thread that steps complete rounds in worker processes.

It keeps nothing that the database does not hold. Killed anywhere, the next driver finds
the session still ``stepping`` and repeats the step, with the same outcome.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from analyst_service.deps import Service
from analyst_service.errors import describe
from analyst_service.jobs import worker
from analyst_service.jobs.service import JobService
from analyst_service.models import Session
from clustering_protocols.problems import Problem

log = logging.getLogger(__name__)

MAX_CRASHES = 3
_Step = tuple[str, int, int]


class Driver:
    """Steps rounds while it is entered; one per service process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="driver")
        self._running: dict[_Step, tuple[Session, Future[worker.Followed]]] = {}
        self._crashes: Counter[_Step] = Counter()
        self._pool = self._new_pool()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

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
            jobs = JobService(unit, service.clock)
            idle = not jobs.has_work()
        if idle:
            return
        with service.database.write() as unit:
            JobService(unit, service.clock).close_rounds()
        with service.database.read() as unit:
            jobs = JobService(unit, service.clock)
            for session in jobs.ready():
                step = _step_of(session)
                if step not in self._running:
                    job = jobs.job(session, service.settings.blob_dir)
                    self._running[step] = session, self._submit(job)

    def _collect_outcomes(self) -> None:
        for step, (session, future) in list(self._running.items()):
            if future.done():
                followed = self._outcome(step, future)
                if followed is not None:
                    with self._service.database.write() as unit:
                        JobService(unit, self._service.clock).follow(session, followed)
                del self._running[step]

    def _outcome(
        self, step: _Step, future: Future[worker.Followed]
    ) -> worker.Followed | None:
        """Return what followed, or None where the step is to be tried again."""
        error = future.exception()
        if error is None:
            self._crashes.pop(step, None)
            return future.result()
        log.error("step of %s: %s", step[0], describe(error))
        if isinstance(error, BrokenProcessPool):
            self._pool = self._new_pool()
        self._crashes[step] += 1
        if self._crashes[step] < MAX_CRASHES:
            return None
        return worker.Failed(
            reason=Problem.INTERNAL.slug,
            detail=f"The step crashed {MAX_CRASHES} times.",
        )

    def _submit(self, job: worker.Job) -> Future[worker.Followed]:
        try:
            return self._pool.submit(worker.run, job)
        except BrokenProcessPool:
            self._pool = self._new_pool()
            return self._pool.submit(worker.run, job)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._service.settings.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=worker.follow_parent,
        )


def _step_of(session: Session) -> _Step:
    return session.id, session.round, session.attempt

"""The driver: a thread that steps complete rounds in worker processes.

It keeps nothing that the database does not hold. Several may run, in one process or in
many: a lease says which of them has a step. Killed anywhere, its leases run out, and
another driver repeats the steps, with the same outcome.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Self, TypeVar

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session as Unit

from analyst_service.deps import Service
from analyst_service.jobs import worker
from analyst_service.jobs.leases import Lease
from analyst_service.jobs.processes import Process
from analyst_service.jobs.service import JobService
from analyst_service.logs import describe
from clustering_protocols.errors import StorageFull

log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_SECONDS = 5.0


@dataclass(slots=True)
class _Running:
    lease: Lease
    process: Process
    future: Future[worker.Followed]
    renewed: datetime
    begun: float = field(default_factory=time.monotonic)


class Driver:
    """Steps rounds while it is entered; one per service process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="driver")
        self._running: list[_Running] = []
        self._free = [self._new_process() for _ in range(service.settings.workers)]
        self._beat = timedelta(seconds=service.settings.lease_seconds / 3)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._service.bell.ring()
        self._thread.join()
        for step in self._running:
            step.process.end()
            self._guarded(partial(self._give_back, step.lease, counts=False))
        for process in self._free:
            process.end()

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._service.bell.wait(self._service.settings.poll_seconds)
            for part in (self._collect_outcomes, self._renew, self._start_steps):
                self._guarded(part)

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Exception as error:  # noqa: BLE001  the sessions of tomorrow need it
            # the text of an error may hold values: only its kind and place
            log.error("driver: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values

    def _start_steps(self) -> None:
        # writing only where there is something to write: on SQLite a write
        # transaction holds up all others
        if self._read(JobService.has_rounds_to_close):
            self._write(JobService.close_rounds)
        while self._free:
            waiting: bool = self._read(JobService.has_steps)
            lease = self._write(JobService.take) if waiting else None
            if lease is None:
                return
            self._running.append(self._begin(lease))

    def _renew(self) -> None:
        """Tell that steps still run; let go of those that another driver has now."""
        now = self._service.clock.now()
        for step in [s for s in self._running if now >= s.renewed + self._beat]:
            if self._write(partial(JobService.renew, lease=step.lease)):
                step.renewed = now
            else:
                log.warning("step of %s: the lease was lost", step.lease.name)
                step.process.end()
                self._leave(step, self._new_process())

    def _collect_outcomes(self) -> None:
        for step in [s for s in self._running if s.future.done()]:
            broken = isinstance(step.future.exception(), BrokenProcessPool)
            self._conclude(step)
            self._leave(step, self._new_process() if broken else step.process)

    def _leave(self, step: _Running, process: Process) -> None:
        self._running.remove(step)
        self._free.append(process)

    def _conclude(self, step: _Running) -> None:
        """Store what followed; a step that crashed is tried again a few times."""
        lease = step.lease
        try:
            followed = step.future.result()
            stored: bool = self._write(
                partial(JobService.follow, lease=lease, followed=followed)
            )
            if not stored:
                log.warning("step of %s: too late, nothing is stored", lease.name)
            self._service.bell.ring()
            self._count(step, type(followed).__name__ if stored else "TooLate")
        except OperationalError:
            raise  # the database is away: the outcome is stored once it is back
        except (StorageFull, OSError) as error:
            # the machine's trouble, not the session's: again, after a while
            log.error("step of %s: %s", lease.name, describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._give_back(lease, RETRY_SECONDS, counts=False)
        except Exception as error:  # noqa: BLE001  whatever it is, it is this session's
            log.error("step of %s: %s", lease.name, describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._give_back(lease, counts=True)
            self._count(step, "Crashed")

    def _count(self, step: _Running, outcome: str) -> None:
        seconds = time.monotonic() - step.begun
        self._service.metrics.step_seconds.labels(outcome).observe(seconds)

    def _give_back(self, lease: Lease, seconds: float = 0, *, counts: bool) -> None:
        self._write(
            partial(JobService.give_back, lease=lease, seconds=seconds, counts=counts)
        )

    def _begin(self, lease: Lease) -> _Running:
        process = self._free.pop()
        try:
            job = self._read(partial(JobService.job, session=lease.session))
            future = process.submit(job)
        except Exception:  # it may have died while it had nothing to do
            process.end()
            self._free.append(self._new_process())
            self._give_back(lease, counts=True)
            raise
        future.add_done_callback(lambda _: self._service.bell.ring())
        return _Running(lease, process, future, self._service.clock.now())

    def _read(self, query: Callable[[JobService], T]) -> T:
        with self._service.database.read() as unit:
            return query(self._jobs(unit))

    def _write(self, change: Callable[[JobService], T]) -> T:
        return self._service.database.transact(lambda unit: change(self._jobs(unit)))

    def _jobs(self, unit: Unit) -> JobService:
        return JobService(unit, self._service)

    def _new_process(self) -> Process:
        return Process()

"""The driver: a thread that runs the steps of sessions in worker processes.

The driver's state is entirely in the database. There may be several drivers, in one
process or in many; a lease decides which of them runs a step. If a driver is killed,
its leases expire and another driver repeats the steps, with the same outcome.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Self

from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError as PoolTimeout

from analyst_service import worker
from analyst_service.logs import describe_error
from analyst_service.process_context import Service
from analyst_service.steps import (
    Lease,
    RoundPosition,
    close_and_lease,
    close_rounds,
    find_positions,
    has_rounds_to_close,
    has_work,
    release_lease,
    renew_lease,
    store_result,
)
from analyst_service.worker import WorkerProcess
from clustering_protocols.engine import Opened
from clustering_protocols.wire.states import SessionState

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1  # interval between queries for work
RETRY_SECONDS = 5.0
_CLOCK_SECONDS = 1.0
_MOST_ANNOUNCED = 10_000
_OUTAGES = (OperationalError, InterfaceError, PoolTimeout)


@dataclass(slots=True)
class _RunningStep:
    lease: Lease
    process: WorkerProcess
    future: Future[worker.Outcome]
    renewed: datetime
    begun: float = field(default_factory=time.monotonic)


class Driver:
    """Runs due steps while its ``with`` block is active; one per service process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_until_stopped, name="driver")
        self._running: list[_RunningStep] = []
        self._free: list[WorkerProcess] = []
        self._announced: OrderedDict[str, RoundPosition] = OrderedDict()
        self._queried_at = 0.0
        self._synchronised_at = -math.inf
        self._has_outage = False
        self._span = service.lease_span

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._service.notifier.notify_driver()
        self._thread.join()
        for step in self._running:
            step.process.kill()
            self._run_and_log_errors(partial(self._release, step.lease, counts=False))
        for process in self._free:
            process.kill()

    def _run_until_stopped(self) -> None:
        while not self._stop.is_set():
            self._service.notifier.wait_for_work(POLL_SECONDS)
            for part in (
                self._synchronise_clock,
                self._collect_outcomes,
                self._renew_leases,
                self._start_processes,
                self._start_steps,
                self._wake_waiting_requests,
            ):
                self._run_and_log_errors(part)

    def _run_and_log_errors(self, part: Callable[[], None]) -> None:
        try:
            part()
        except _OUTAGES as error:  # log an outage only once
            if not self._has_outage:
                log.error("driver: the database is away: %s", describe_error(error))  # noqa: TRY400  no traceback: it may hold values
            self._has_outage = True
        except Exception as error:  # noqa: BLE001  the thread must survive
            log.error("driver: %s", describe_error(error))  # noqa: TRY400  no traceback: it may hold values

    def _synchronise_clock(self) -> None:
        """Ask the database server for the time, every second."""
        now = time.monotonic()
        if now >= self._synchronised_at + _CLOCK_SECONDS:
            self._synchronised_at = now
            self._service.clock.synchronise()

    def _start_processes(self) -> None:
        """Start worker processes up to the configured number; some may have died."""
        if self._service.draining.is_set():
            return
        n_busy = len(self._running)
        while n_busy + len(self._free) < self._service.settings.workers:
            self._free.append(self._start_process())

    def _start_steps(self) -> None:
        database, is_draining = self._service.database, self._service.draining.is_set
        # Query first, because on SQLite a write transaction blocks all others.
        if not self._free and not is_draining() and database.query(has_rounds_to_close):
            database.transact(close_rounds)
        while self._free and not is_draining() and database.query(has_work, self._span):
            step = database.transact(close_and_lease, self._service)
            if step is None:
                break
            self._running.append(self._submit_step(*step))
        if self._has_outage and not is_draining():
            log.info("driver: the database answers again")
            self._has_outage = False

    def _renew_leases(self) -> None:
        """Renew the leases of running steps, and kill steps whose lease was lost."""
        now = self._service.clock.now()
        for step in [s for s in self._running if now >= s.renewed + self._span / 3]:
            if self._service.database.transact(renew_lease, step.lease, self._span):
                step.renewed = now
            else:
                log.warning("step of %s: the lease was lost", step.lease.session.id)
                self._running.remove(step)
                step.process.kill()

    def _wake_waiting_requests(self) -> None:
        """Wake the requests whose session has changed, whichever process changed it.

        A single query serves all waiting requests; otherwise each of them would have to
        poll, which would be most of the load.
        """
        awaited, now = self._service.notifier.awaited_sessions, time.monotonic()
        if not awaited or now < self._queried_at + POLL_SECONDS:
            return
        self._queried_at = now
        positions = self._service.database.query(find_positions, awaited)
        for session, position in positions.items():
            self._announce_position(session, position)
        while len(self._announced) > max(len(awaited), _MOST_ANNOUNCED):
            # Requests that still wait for the dropped session are only woken once more.
            self._announced.popitem(last=False)

    def _announce_position(self, session: str, position: RoundPosition) -> None:
        if position == self._announced.get(session):
            return
        self._announced[session] = position
        self._announced.move_to_end(session)
        if position.has_news:
            self._service.notifier.notify_session(session)

    def _collect_outcomes(self) -> None:
        for step in [s for s in self._running if s.future.done()]:
            has_died = step.future.exception() is not None
            self._store_or_release(step)
            self._running.remove(step)
            if has_died:
                step.process.kill()
            else:
                self._free.append(step.process)

    def _store_or_release(self, step: _RunningStep) -> None:
        """Store the outcome of a step, or release its lease if the step crashed."""
        try:
            outcome = step.future.result()
            if isinstance(outcome, worker.Crashed):
                self._release_step(step, outcome)
            else:
                self._store_result(step, outcome)
        except _OUTAGES:
            raise  # the outcome is stored once the database is available again
        except Exception as error:  # noqa: BLE001  it concerns only this session
            self._release_step(step, worker.describe_crash(error))

    def _store_result(self, step: _RunningStep, result: worker.StepResult) -> None:
        session_id, service = step.lease.session.id, self._service
        stored = service.database.transact(
            store_result, service.blobs, step.lease, result
        )
        if isinstance(result, Opened) and stored:
            state = SessionState.COLLECTING.value
            position = RoundPosition(state, result.round, result.attempt)
            self._announce_position(session_id, position)
        elif stored:
            service.notifier.notify_session(session_id)
        else:
            log.warning("step of %s: too late, nothing is stored", session_id)
        self._observe_duration(step, type(result).__name__ if stored else "TooLate")

    def _release_step(self, step: _RunningStep, crashed: worker.Crashed) -> None:
        """Release a crashed step for a retry, after a delay if the machine is at fault."""
        log.error("step of %s: %s", step.lease.session.id, crashed.cause)
        delay = RETRY_SECONDS if crashed.is_temporary else 0
        self._release(step.lease, delay, counts=not crashed.is_temporary)
        self._observe_duration(step, "Waiting" if crashed.is_temporary else "Crashed")

    def _observe_duration(self, step: _RunningStep, outcome: str) -> None:
        seconds = time.monotonic() - step.begun
        self._service.metrics.step_seconds.labels(outcome).observe(seconds)

    def _submit_step(self, lease: Lease, job: worker.Job) -> _RunningStep:
        process = self._free.pop()
        try:
            future = process.submit(job)
        except Exception:  # the process may have died while idle
            process.kill()
            self._release(lease, counts=True)
            raise
        future.add_done_callback(lambda _: self._service.notifier.notify_driver())
        return _RunningStep(lease, process, future, self._service.clock.now())

    def _release(self, lease: Lease, seconds: float = 0, *, counts: bool) -> None:
        self._service.database.transact(release_lease, lease, seconds, counts=counts)

    def _start_process(self) -> WorkerProcess:
        return WorkerProcess(spawns=self._service.settings.engine == "dask")

"""The driver: a thread that steps complete rounds in worker processes.

All its state is in the database. Several drivers may run, in one process or in many: a
lease decides which of them has a step. If one is killed, its leases run out and another
driver repeats the steps, with the same outcome.
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
from typing import Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError as PoolTimeout

from analyst_service import worker
from analyst_service.database import Transaction
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.logs import describe
from analyst_service.process_context import Service
from analyst_service.steps import (
    Lease,
    RoundPosition,
    close_and_take,
    close_rounds,
    find_positions,
    give_back,
    has_rounds_to_close,
    has_work,
    record,
    renew,
)
from analyst_service.worker import Process
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.engine import Opened
from clustering_protocols.wire.states import SessionState

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

POLL_SECONDS = 0.1  # between two queries for work
RETRY_SECONDS = 5.0
_CLOCK_SECONDS = 1.0
_MOST_ANNOUNCED = 10_000
_OUTAGES = (OperationalError, InterfaceError, PoolTimeout)


@dataclass(slots=True)
class _RunningStep:
    lease: Lease
    process: Process
    future: Future[worker.Outcome]
    renewed: datetime
    begun: float = field(default_factory=time.monotonic)


class Driver:
    """Steps rounds within a ``with`` block; one per service process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="driver")
        self._running: list[_RunningStep] = []
        self._free: list[Process] = []
        self._announced: OrderedDict[str, RoundPosition] = OrderedDict()
        self._queried_at = 0.0
        self._compared_at = -math.inf
        self._is_clock_wrong = False
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
            step.process.end()
            self._run_part(partial(self._write, give_back, step.lease, counts=False))
        for process in self._free:
            process.end()

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._service.notifier.wait(POLL_SECONDS)
            for part in (
                self._compare_clocks,
                self._collect_outcomes,
                self._renew,
                self._start_processes,
                self._start_steps,
                self._announce_moves,
            ):
                self._run_part(part)

    def _run_part(self, part: Callable[[], None]) -> None:
        try:
            part()
        except _OUTAGES as error:  # logged once per outage
            if not self._has_outage:
                log.error("driver: the database is away: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._has_outage = True
        except Exception as error:  # noqa: BLE001  the thread serves all sessions
            log.error("driver: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values

    def _compare_clocks(self) -> None:
        """Compare this machine's clock with the database's now and then."""
        now = time.monotonic()
        if now < self._compared_at + _CLOCK_SECONDS:
            return
        self._compared_at = now
        try:
            self._service.check_clock()
        except Unavailable as error:
            if not self._is_clock_wrong:
                log.error("driver: no step is taken. %s", error)  # noqa: TRY400  no traceback: the text suffices
            self._is_clock_wrong = True
        else:
            if self._is_clock_wrong:
                log.info("driver: this machine's clock is right again")
            self._is_clock_wrong = False

    def _start_processes(self) -> None:
        """Start as many worker processes as the settings ask for; some may have died."""
        if self._service.draining.is_set():
            return
        n_busy = len(self._running)
        while n_busy + len(self._free) < self._service.settings.workers:
            self._free.append(self._new_process())

    def _start_steps(self) -> None:
        # read first: on SQLite a write transaction holds up all others
        if not self._free and self._takes_steps and self._read(has_rounds_to_close):
            self._write(close_rounds)
        while self._free and self._takes_steps and self._read(has_work, self._span):
            step = self._write(close_and_take, self._service)
            if step is None:
                return
            self._running.append(self._submit(*step))

    @property
    def _takes_steps(self) -> bool:
        return not (self._is_clock_wrong or self._service.draining.is_set())

    def _renew(self) -> None:
        """Renew the leases of running steps; end steps that another driver has taken."""
        now = self._service.clock.now()
        for step in [s for s in self._running if now >= s.renewed + self._span / 3]:
            if self._write(renew, step.lease, self._span):
                step.renewed = now
            else:
                log.warning("step of %s: the lease was lost", step.lease.name)
                self._running.remove(step)
                step.process.end()

    def _announce_moves(self) -> None:
        """Wake the requests whose session has moved, whichever process moved it.

        One query serves all waiting requests; if each of them polled, that would be most
        of the load.
        """
        awaited, now = self._service.notifier.waited_for, time.monotonic()
        if not awaited or now < self._queried_at + POLL_SECONDS:
            return
        self._queried_at = now
        for session, position in self._read(find_positions, awaited).items():
            self._announce(session, position)
        while len(self._announced) > max(len(awaited), _MOST_ANNOUNCED):
            # if requests still wait for the dropped session, they are woken once more
            self._announced.popitem(last=False)

    def _announce(self, session: str, position: RoundPosition) -> None:
        if position == self._announced.get(session):
            return
        self._announced[session] = position
        self._announced.move_to_end(session)
        if position.has_news:
            self._service.notifier.notify_session(session)

    def _collect_outcomes(self) -> None:
        for step in [s for s in self._running if s.future.done()]:
            has_died = step.future.exception() is not None
            self._conclude(step)
            self._running.remove(step)
            if has_died:
                step.process.end()
            else:
                self._free.append(step.process)

    def _conclude(self, step: _RunningStep) -> None:
        """Store the outcome of a step, or release a crashed step for another attempt."""
        try:
            outcome = step.future.result()
            if isinstance(outcome, worker.Crashed):
                self._release(step, outcome)
            else:
                self._store(step, outcome)
        except OperationalError:
            raise  # the database is away: the outcome is stored when it is back
        except Exception as error:  # noqa: BLE001  any error concerns this session alone
            self._release(step, worker.describe_crash(error))

    def _store(self, step: _RunningStep, result: worker.StepResult) -> None:
        stored = self._write(record, self._service.blobs, step.lease, result)
        if isinstance(result, Opened) and stored:
            state = SessionState.COLLECTING.value
            position = RoundPosition(state, result.round, result.attempt)
            self._announce(step.lease.name, position)
        elif stored:
            self._service.notifier.notify_session(step.lease.name)
        else:
            log.warning("step of %s: too late, nothing is stored", step.lease.name)
        self._observe_duration(step, type(result).__name__ if stored else "TooLate")

    def _release(self, step: _RunningStep, crashed: worker.Crashed) -> None:
        """Release a step for another attempt, later if the machine is in trouble."""
        log.error("step of %s: %s", step.lease.name, crashed.cause)
        if crashed.is_temporary:
            self._write(give_back, step.lease, RETRY_SECONDS, counts=False)
        else:
            self._write(give_back, step.lease, counts=True)
        self._observe_duration(step, "Waiting" if crashed.is_temporary else "Crashed")

    def _observe_duration(self, step: _RunningStep, outcome: str) -> None:
        seconds = time.monotonic() - step.begun
        self._service.metrics.step_seconds.labels(outcome).observe(seconds)

    def _submit(self, lease: Lease, job: worker.Job) -> _RunningStep:
        process = self._free.pop()
        try:
            future = process.submit(job)
        except Exception:  # the process may have died while idle
            process.end()
            self._write(give_back, lease, counts=True)
            raise
        future.add_done_callback(lambda _: self._service.notifier.notify_driver())
        return _RunningStep(lease, process, future, self._service.clock.now())

    def _read(
        self, query: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        return self._log_recovery(self._service.database.query(query, *a, **k))

    def _write(
        self, work: Callable[Concatenate[Transaction, P], T], *a: P.args, **k: P.kwargs
    ) -> T:
        return self._log_recovery(self._service.database.transact(work, *a, **k))

    def _log_recovery(self, answer: T) -> T:
        """Log the end of an outage of the database."""
        if self._has_outage:
            log.info("driver: the database answers again")
        self._has_outage = False
        return answer

    def _new_process(self) -> Process:
        return Process(spawns=EngineChoice.of(self._service.settings).spawns)

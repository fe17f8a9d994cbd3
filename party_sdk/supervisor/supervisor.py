"""The supervisor: a thread of the desk that runs each order in its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from clustering_protocols.common.errors import CoterieError
from party_sdk.home.clock import now
from party_sdk.home.process_exit import error_location
from party_sdk.supervisor.orders import (
    ExitCode,
    Order,
    OrderState,
    OrderStatus,
    PartyOrder,
    Trouble,
    order_versions,
)

PROGRAM = [sys.executable, "-P", "-m", "party_sdk.supervisor.order_runner"]
_GRACE_SECONDS = 10.0
_MAX_PAUSE = 300.0
_RETRY_SECONDS = 3.0

Say = Callable[[str], None]
Key = tuple[str, str]


@dataclass
class _RunningOrder:
    """An order, and the process that runs it, if any.

    version: the version of the order when it was last loaded.
    not_before: earliest time of the next start, in seconds of the monotonic clock.
    """

    party_order: PartyOrder
    status: OrderStatus
    order: Order
    version: int = 0
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    not_before: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.party_order.session} {self.party_order.slot}"

    @property
    def is_ready(self) -> bool:
        is_open = self.status.state in {OrderState.QUEUED, OrderState.RUNNING}
        if self.order.table is None and self.order.withdrawn is None:
            return False
        return self.process is None and is_open and time.monotonic() >= self.not_before

    def delay_restart(self) -> float:
        """Delay the next start with exponential backoff; return the delay in seconds."""
        self.failures += 1
        seconds = min(2.0 ** (self.failures - 1), _MAX_PAUSE)
        self.not_before = time.monotonic() + seconds
        return seconds


class Supervisor:
    """A thread that runs the orders of a home, each in a process of its own.

    say: called with each line of the log, which contains no secret, row or value.
    pause: seconds between two checks for changed orders.

    trouble: why orders cannot run at the moment; None if they can.
    """

    def __init__(self, home: Path, say: Say, *, pause: float = 0.5) -> None:
        self._home, self._say, self._pause = home, say, pause
        self._stop = Event()
        self._thread = Thread(target=self._run, name="supervisor", daemon=True)
        self._orders: dict[Key, _RunningOrder] = {}
        self._unreadable: dict[Key, int] = {}
        self.trouble: Trouble | None = None

    def start(self) -> None:
        """Start the supervisor's thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop all processes of orders, and wait until they have ended."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        environment = dict(os.environ)
        try:
            while not self._stop.is_set():
                self._stop.wait(self._advance(environment))
        finally:
            self._stop_all()

    def _advance(self, environment: dict[str, str]) -> float:
        """Start each order that is ready; return the seconds until the next check."""
        try:
            for work in list(self._orders.values()):
                self._handle_exit(work)
            self._reload_orders()
            for work in self._orders.values():
                if work.is_ready:
                    self._start_process(work, environment)
        except Exception as error:  # noqa: BLE001  other orders must still run
            trouble = (
                Trouble.from_error(error)
                if isinstance(error, CoterieError)
                else Trouble.from_unexpected(error_location(error))
            )
            if trouble != self.trouble:
                self._say(f"{trouble.headline}: {trouble.detail}")
            self.trouble = trouble
            return _RETRY_SECONDS
        self.trouble = None
        return self._pause

    def _reload_orders(self) -> None:
        versions = order_versions(self._home)
        for key in self._orders.keys() - versions.keys():
            if self._orders[key].process is None:
                del self._orders[key]
        for key, version in versions.items():
            work = self._orders.get(key)
            if work is not None and work.version == version:
                continue
            stored = PartyOrder(self._home, *key)
            try:
                status, order = stored.status(), stored.order()
            except (ValueError, CoterieError):
                self._skip_unreadable(key, version)
                continue
            work = self._orders.setdefault(key, _RunningOrder(stored, status, order))
            if work.status.state is not status.state:
                self._say(f"{' '.join(key)}: {status.state.value}")
            work.status, work.order, work.version = status, order, version
            if order.withdrawn is not None and work.process:
                work.process.terminate()

    def _skip_unreadable(self, key: Key, version: int) -> None:
        """Skip an order that cannot be read until it is changed; report this once."""
        if self._unreadable.get(key) != version:
            self._say(f"{' '.join(key)}: this order cannot be read")
        self._unreadable[key] = version
        work = self._orders.get(key)
        if work is not None and work.process is None:
            del self._orders[key]

    def _start_process(self, work: _RunningOrder, environment: dict[str, str]) -> None:
        party_order = work.party_order
        words = [str(self._home.absolute()), party_order.session, party_order.slot]
        work.process = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
            [*PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # the supervisor handles Ctrl-C
        )

    def _handle_exit(self, work: _RunningOrder) -> None:
        if work.process is None or work.process.poll() is None:
            return
        code = work.process.returncode
        _close(work.process)
        work.process = None
        work.version = -1  # load the order again
        if code < 0:
            seconds = work.delay_restart()
            signal_name = signal.Signals(-code).name
            self._say(
                f"{work.name}: process died ({signal_name}), restarts in {seconds:g} s"
            )
            self._set_status(work, restarts=work.status.restarts + 1)
        elif code == ExitCode.TRY_AGAIN:
            seconds = work.delay_restart()
            self._say(f"{work.name}: tried again in {seconds:g} s")
        elif code in {ExitCode.OVER, ExitCode.AWAITS_A_PERSON, ExitCode.STOPPED}:
            work.failures = 0
        else:
            self._say(f"{work.name}: its process could not start")
            self._set_status(
                work,
                state=OrderState.FAILED,
                ended_at=now(),
                trouble=Trouble(
                    headline="The process of this order could not start",
                    detail=f"It ended with {code}.",
                    remedy="Read the supervisor's log; place the order again.",
                ),
            )

    def _set_status(self, work: _RunningOrder, **changes: object) -> None:
        try:
            work.party_order.update_status(**changes)
        except (CoterieError, OSError, ValueError):
            self._say(f"{work.name}: its status cannot be written")

    def _stop_all(self) -> None:
        running = [(w, w.process) for w in self._orders.values() if w.process]
        for _, process in running:
            process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for work, process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:  # the next process repeats its work
                process.kill()
                process.wait()
            _close(process)
            work.process = None


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()

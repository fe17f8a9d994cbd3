"""The one process of a home that runs its orders, each as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import IO

from clustering_protocols.common.errors import CoterieError, NotReady
from party_sdk.home.clock import now
from party_sdk.home.encryption import SecretFiles, passphrase_for, passphrase_given
from party_sdk.home.files import lock, private_folder
from party_sdk.supervisor.files import OrderFiles, orders_in
from party_sdk.supervisor.inbox import Inbox
from party_sdk.supervisor.models import OrderState, OrderStatus, Trouble
from party_sdk.supervisor.order_runner import End
from party_sdk.supervisor.orders import Orders
from party_sdk.supervisor.rules import read_rules

PROGRAM = [sys.executable, "-P", "-m", "party_sdk.supervisor.child"]
_GRACE_SECONDS = 10.0
_LONGEST_PAUSE = 300.0
_LOCK_ATTEMPTS = 20

Say = Callable[[str], None]
Key = tuple[str, str]


@dataclass
class _Work:
    """An order as the supervisor sees it.

    ``before``: what ``moved_at`` was when its process was started, which has told nothing
    as long as it is the same.
    """

    files: OrderFiles
    status: OrderStatus
    moved_at: int = 0
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    before: int = 0
    failures: int = 0
    not_before: float = 0.0
    queued_since: float = field(default_factory=time.monotonic)

    @property
    def is_ready(self) -> bool:
        """Return whether it may be started now."""
        open_ = self.status.state in {OrderState.QUEUED, OrderState.RUNNING}
        return self.process is None and open_ and time.monotonic() >= self.not_before

    @property
    def waits_for_others(self) -> bool:
        """Return whether its process has nothing to do but to wait."""
        awaited = self.status.awaited
        is_running = self.status.state is OrderState.RUNNING
        has_told = self.moved_at != self.before
        waits = bool(awaited) and self.files.slot not in awaited
        return is_running and has_told and waits

    def pause(self) -> float:
        """Put the next start off, each time for longer; return the seconds."""
        self.failures += 1
        seconds = min(2.0 ** (self.failures - 1), _LONGEST_PAUSE)
        self.not_before = time.monotonic() + seconds
        return seconds


class Supervisor:
    """Runs the orders of a home until it is stopped.

    parallel: how many orders run at a time. Where more are open, one whose session
        waits for others makes room after a ``turn``: nobody waits for good behind
        another.
    inbox: a folder of invitations: each is taken and becomes an order.
    say: called with a line about what happens: no secret, row or value is in it.
    turn, pause: seconds; ``pause`` is how long it sleeps between looks.
    """

    def __init__(
        self,
        home: Path,
        parallel: int = 2,
        inbox: Path | None = None,
        say: Say | None = None,
        *,
        turn: float = 60.0,
        pause: float = 0.5,
    ) -> None:
        self._home = home
        self._parallel = parallel
        self._inbox = None if inbox is None else Inbox(inbox, home)
        self._say = say or (lambda _: None)
        self._turn, self._pause = turn, pause
        self._works: dict[Key, _Work] = {}

    def run(self, stop_event: Event) -> None:
        """Run orders until the event is set; then stop their processes, and return.

        Raises NotReady if another supervisor is at work in this home, or it is sealed
            and there is no passphrase.
        Raises InvalidParameters if a rule in ``policy.toml`` cannot be read.
        """
        with _alone(self._home):
            list(Orders(self._home).all())  # a home that cannot be opened is told now
            read_rules(self._home)
            environment = self._environment()
            try:
                while not stop_event.is_set():
                    self._look(environment)
                    stop_event.wait(self._pause)
            finally:
                self._stop_all()

    def _look(self, environment: dict[str, str]) -> None:
        for line in self._inbox.take() if self._inbox is not None else ():
            self._say(line)
        for work in list(self._works.values()):
            self._reap(work)
        self._read()
        self._make_room()
        waiting = [work for work in self._works.values() if work.is_ready]
        for work in sorted(waiting, key=lambda work: work.queued_since):
            if len(self._at_work()) < self._parallel:
                self._start(work, environment)

    def _at_work(self) -> list[_Work]:
        return [work for work in self._works.values() if work.process is not None]

    def _read(self) -> None:
        """Read what has moved since the last look; let go of what was forgotten."""
        found = {(each.session, each.slot): each for each in orders_in(self._home)}
        for key in self._works.keys() - found.keys():
            if self._works[key].process is None:
                del self._works[key]
        for key, files in found.items():
            moved_at, known = files.moved_at, self._works.get(key)
            if known is not None and known.moved_at == moved_at:
                continue
            try:
                status = files.status()
            except (CoterieError, OSError):
                if known is None or known.moved_at != moved_at:
                    self._say(f"{' '.join(key)}: its status cannot be read")
                status = OrderStatus(
                    session=files.session,
                    slot=files.slot,
                    state=OrderState.FAILED,
                    placed_at=now(),
                    changed_at=now(),
                )
            work = self._works.setdefault(key, _Work(files, status))
            if work.status.state is not status.state:
                self._say(f"{' '.join(key)}: {status.state.value}")
            work.status, work.moved_at = status, moved_at
            self._stop_if_withdrawn(work)

    def _stop_if_withdrawn(self, work: _Work) -> None:
        if work.process is None:
            return
        with suppress(CoterieError, OSError):
            if work.files.order().withdrawn is not None:
                work.process.terminate()

    def _make_room(self) -> None:
        """Stop the process that has waited for others longest, where orders queue."""
        if not any(work.is_ready for work in self._works.values()):
            return
        at_work = self._at_work()
        if len(at_work) < self._parallel:
            return
        due = time.monotonic() - self._turn
        idle = [each for each in at_work if each.waits_for_others and each.began < due]
        for each in sorted(idle, key=lambda work: work.began)[:1]:
            if each.process is not None:
                each.process.terminate()

    def _start(self, work: _Work, environment: dict[str, str]) -> None:
        files = work.files
        words = [str(self._home.absolute()), files.session, files.slot]
        work.process = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
            [*PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the supervisor, which stops them
        )
        work.began, work.before = time.monotonic(), work.moved_at

    def _reap(self, work: _Work) -> None:
        if work.process is None or work.process.poll() is None:
            return
        code = work.process.returncode
        _close(work.process)
        work.process = None
        work.queued_since = time.monotonic()
        work.moved_at = 0  # look again, whatever it wrote
        named = f"{work.files.session} {work.files.slot}"
        if code < 0:
            seconds = work.pause()
            why = signal.Signals(-code).name
            self._say(f"{named}: its process died ({why}); again in {seconds:g} s")
            self._tell(work, restarts=work.status.restarts + 1)
        elif code == End.TRY_AGAIN:
            seconds = work.pause()
            self._say(f"{named}: tried again in {seconds:g} s")
        elif code in {End.OVER, End.AWAITS_A_PERSON, End.STOPPED}:
            work.failures = 0
        else:
            self._say(f"{named}: its process could not begin")
            self._tell(
                work,
                state=OrderState.FAILED,
                ended_at=now(),
                trouble=Trouble(
                    headline="The process of this order could not begin",
                    detail=f"It ended with {code}.",
                    remedy="Read the supervisor's log; place the order again.",
                ),
            )

    def _tell(self, work: _Work, **changes: object) -> None:
        try:
            work.files.tell(**changes)
        except (CoterieError, OSError):
            named = f"{work.files.session} {work.files.slot}"
            self._say(f"{named}: its status cannot be written")

    def _stop_all(self) -> None:
        at_work = self._at_work()
        for work in at_work:
            if work.process is not None:
                work.process.terminate()
        until = time.monotonic() + _GRACE_SECONDS
        for work in at_work:
            process = work.process
            if process is None:
                continue
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:  # in a long kernel: nothing is lost
                process.kill()
                process.wait()
            _close(process)
            work.process = None

    def _environment(self) -> dict[str, str]:
        """Return what the processes get: a passphrase that was typed here, too."""
        environment = dict(os.environ)
        if SecretFiles(self._home).is_sealed and not passphrase_given():
            environment["COTERIE_PASSPHRASE"] = passphrase_for(self._home)
        return environment


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def find_supervisor(home: Path) -> int | None:
    """Return the process id of the supervisor of a home; None if none is at work."""
    try:
        with (home / "supervisor.lock").open("rb") as file:
            is_free = lock(file, waits=False)
    except FileNotFoundError:
        return None
    return None if is_free else _holder(home)


def _holder(home: Path) -> int | None:
    said = (home / "supervisor.lock").read_text().strip()
    return int(said) if said.isdecimal() else None


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keep other supervisors from a home; :class:`NotReady` names the one at work."""
    path = private_folder(home) / "supervisor.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        _lock(file, home)
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        yield
        file.truncate(0)


def _lock(file: IO[bytes], home: Path) -> None:
    for _ in range(_LOCK_ATTEMPTS):  # anyone who asks `running` holds it for a moment
        if lock(file, waits=False):
            return
        time.sleep(0.01)
    raise NotReady(
        f"A supervisor is at work in {home} already: process {_holder(home) or '?'}."
    )

"""The parts of a service process that requests and background threads share.

This module imports no web framework: the driver and the sweeper do not need one.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Clock, Database
from analyst_service.identity import load_or_create_identity
from analyst_service.logs import describe_error
from analyst_service.metrics import Metrics
from analyst_service.settings import Settings
from analyst_service.waiting import Batcher, Notifier
from clustering_protocols.common.errors import (
    CoterieError,
    StorageFull,
    TooManyRequests,
    Unavailable,
)

log = logging.getLogger(__name__)


LEASE_SECONDS: Final = 15.0
"""Seconds after which a lease expires unless it is renewed.

All analysts of a database must use the same value, because they judge each other's leases.
"""

_V = TypeVar("_V")
_SECOND: Final = timedelta(seconds=1)
_MAX_CALLERS: Final = 10_000
_BURST_SECONDS: Final = 5


class RateLimiter:
    """Rate limits: a token bucket per caller, with a capacity of five seconds' tokens."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = max(1.0, _BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def take_token(self, caller: str, now: datetime) -> None:
        """Take a token for a request; raise :class:`TooManyRequests` if none is left."""
        with self._lock:
            tokens, since = self._buckets.get(caller, (self._burst, now))
            elapsed = max(0.0, (now - since).total_seconds())
            tokens = min(self._burst, tokens + elapsed * self._per_second)
            is_empty = tokens < 1
            self._buckets[caller] = (tokens if is_empty else tokens - 1, now)
            self._buckets.move_to_end(caller)
            if len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        if is_empty:
            raise TooManyRequests(f"More than {self._per_second:g} per second.")


class LoggedCheck(Generic[_V]):
    """A check whose outcome is logged whenever it changes.

    condition: the state that the check confirms, as named in the log: ``ready``.
    check: raises an exception if something is wrong.
    """

    def __init__(self, condition: str, check: Callable[[], _V]) -> None:
        self._condition = condition
        self._check = check
        self._fault = ""

    def __call__(self) -> _V:
        """Run the check, return its value, and propagate its exceptions."""
        try:
            value = self._check()
        except CoterieError as error:
            self._log_change(error.detail)
            raise
        except Exception as error:
            self._log_change(describe_error(error))
            raise
        self._log_change("")
        return value

    def _log_change(self, fault: str) -> None:
        if fault == self._fault:
            return
        self._fault = fault
        if fault:
            log.error("not %s: %s", self._condition, fault)
        else:
            log.info("%s again", self._condition)


@contextmanager
def repeat_in_thread(
    name: str, seconds: float, work: Callable[[], object]
) -> Iterator[None]:
    """Repeat ``work`` in a thread while the block runs; log when it begins to fail.

    name: describes the thread's work in the log.
    seconds: the pause between two calls; there is none after a call that returns true.
    """
    check, stop = LoggedCheck(name, work), threading.Event()

    def run_until_stopped() -> None:
        has_more: object = False
        while not stop.wait(0 if has_more else seconds):
            has_more = False
            with suppress(Exception):  # it is logged, and the next call tries again
                has_more = check()

    thread = threading.Thread(target=run_until_stopped, name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class CachedValue(Generic[_V]):
    """A cached value that is at most about a second old; safe to use from any thread.

    While one thread computes a new value, the others get the previous one without
    waiting. An exception is cached in the same way, and raised for each caller.
    """

    def __init__(self, compute: Callable[[], _V]) -> None:
        self._compute = compute
        self._cached: tuple[datetime, _V | Exception] | None = None
        self._lock = threading.Lock()

    def get(self, now: datetime) -> _V:
        """Return the value, which is computed again if it is more than a second old."""
        cached = self._cached
        if cached is None:
            with self._lock:
                cached = self._cached or self._compute_again(now)
        # The difference is absolute, because the clock may be set back.
        elif abs(now - cached[0]) >= _SECOND and self._lock.acquire(blocking=False):
            try:
                cached = self._compute_again(now)
            finally:
                self._lock.release()
        if isinstance(cached[1], Exception):
            raise cached[1]
        return cached[1]

    def _compute_again(self, now: datetime) -> tuple[datetime, _V | Exception]:
        value: _V | Exception
        try:
            value = self._compute()
        except Exception as error:  # noqa: BLE001  raised by `get`
            value = error
        self._cached = (now, value)
        return self._cached


class Service:
    """The objects that exist as long as the service process."""

    def __init__(
        self,
        *,
        settings: Settings,
        database: Database,
        blobs: FileBlobStore,
        metrics: Metrics,
    ) -> None:
        self.settings, self.database = settings, database
        self.blobs, self.metrics = blobs, metrics
        self.notifier = Notifier()
        # Simultaneous requests of the same kind share a transaction.
        self.authenticating, self.admitting = Batcher(), Batcher()
        self.handing_out, self.storing = Batcher(), Batcher()
        self.draining = threading.Event()
        self.institution = load_or_create_identity(settings.identity_path)
        self.rates = RateLimiter(settings.requests_per_second)
        # the last use of each credential, until the sweeper stores it
        self.last_uses: dict[str, datetime] = {}
        self.ready = CachedValue(LoggedCheck("ready", self._check_ready))
        self.room = LoggedCheck("room for uploads", lambda: self.require_room(0))
        self.figures = CachedValue(metrics.render_text)

    @property
    def clock(self) -> Clock:
        """The clock that all users of the database share."""
        return self.database.clock

    @property
    def lease_span(self) -> timedelta:
        """How long the lease of a step is valid without renewal."""
        return timedelta(seconds=LEASE_SECONDS)

    def count_request(self, credential_id: str) -> None:
        """Count a request towards its credential's rate limit, and record the use.

        Raises TooManyRequests if the limit is exceeded.
        """
        now = self.clock.now()
        self.last_uses[credential_id] = now
        self.rates.take_token(credential_id, now)

    def start_draining(self) -> None:
        """Answer all long polls and start no more steps, because this process will end."""
        self.draining.set()
        log.info("not ready: this analyst is shutting down")
        self.notifier.notify_driver()
        for session in self.notifier.awaited_sessions:
            self.notifier.notify_session(session)

    def require_ready(self) -> None:
        """Raise :class:`Unavailable` unless load balancers may send requests here."""
        if self.draining.is_set():
            raise Unavailable("This analyst is shutting down.")
        self.ready.get(self.clock.now())

    def is_ready(self) -> bool:
        """Return whether load balancers may send requests here."""
        try:
            self.require_ready()
        except Unavailable:
            return False
        return True

    def require_room(self, size: int) -> None:
        """Raise :class:`StorageFull` unless an upload of this size (bytes) fits.

        Uploads must leave a reserve, which tasks, results and the database need.
        """
        if not self.has_room(size):
            raise StorageFull(
                "The analyst has no room: it reserves the last "
                f"{self.settings.least_free_bytes:,} bytes of its data folder for results."
            )

    def has_room(self, size: int = 0) -> bool:
        """Return whether an upload of this size (bytes) would leave enough free space."""
        return self.blobs.free_bytes() - size >= self.settings.least_free_bytes

    def _check_ready(self) -> None:
        if not self.database.has_current_schema():
            raise Unavailable("The database has the schema of another release.")
        try:
            for check in (self.room, self.blobs.check_writable):
                with suppress(StorageFull):  # parties can still fetch; sweeps make room
                    check()
        except OSError as error:
            raise Unavailable(
                f"The data folder cannot be written ({errno.errorcode.get(error.errno or 0, 'no errno')})."
            ) from None

"""The parts of a service process, which requests and background threads share.

No web library is imported here: the driver and the sweeper do not need one.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Clock, Database
from analyst_service.identity import load_identity
from analyst_service.logs import describe
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
"""After this time without renewal, another driver may take a step.

It is the same for all analysts of a database, because each judges the others' leases.
"""

_V = TypeVar("_V")
_SECOND: Final = timedelta(seconds=1)
_MAX_CALLERS: Final = 10_000
_BURST_SECONDS: Final = 5


class Rates:
    """Rate limits: one token bucket per caller, with the tokens of five seconds."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = max(1.0, _BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, now: datetime) -> None:
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


class Uses:
    """When each credential was last used: collected here, stored now and then."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def note(self, credential_id: str, now: datetime) -> None:
        """Record that a credential was used."""
        with self._lock:
            self._last[credential_id] = now

    def take(self) -> dict[str, datetime]:
        """Return the recorded times and forget them; a crash loses a minute of them."""
        with self._lock:
            times, self._last = self._last, {}
        return times


class LoggedCheck:
    """A check whose outcome is logged whenever it changes.

    condition: the state that the check confirms, as named in the log: ``ready``.
    check: raises an exception that says what is wrong.
    """

    def __init__(self, condition: str, check: Callable[[], None]) -> None:
        self._condition = condition
        self._check = check
        self._fault = ""

    def __call__(self) -> None:
        """Run the check; its exceptions are raised here too."""
        try:
            self._check()
        except CoterieError as error:
            self._log_change(error.detail)
            raise
        except Exception as error:
            self._log_change(describe(error))
            raise
        self._log_change("")

    def _log_change(self, fault: str) -> None:
        if fault == self._fault:
            return
        self._fault = fault
        if fault:
            log.error("not %s: %s", self._condition, fault)
        else:
            log.info("%s again", self._condition)


class Recent(Generic[_V]):
    """A cached value that is about a second old at most; safe from any thread.

    While one thread computes a new value, the others get the previous one instead of
    waiting. An exception is cached and raised in the same way.
    """

    def __init__(self, compute: Callable[[], _V]) -> None:
        self._compute = compute
        self._cached: tuple[datetime, _V | Exception] | None = None
        self._lock = threading.Lock()

    def get(self, now: datetime) -> _V:
        """Return the value, which is computed anew if it is a second old."""
        cached = self._cached
        if cached is None:
            with self._lock:
                cached = self._cached or self._renew(now)
        # the absolute difference, because the clock may be set back
        elif abs(now - cached[0]) >= _SECOND and self._lock.acquire(blocking=False):
            try:
                cached = self._renew(now)
            finally:
                self._lock.release()
        if isinstance(cached[1], Exception):
            raise cached[1]
        return cached[1]

    def _renew(self, now: datetime) -> tuple[datetime, _V | Exception]:
        value: _V | Exception
        try:
            value = self._compute()
        except Exception as error:  # noqa: BLE001  raised by `get`
            value = error
        self._cached = (now, value)
        return self._cached


class Service:
    """The parts that live as long as the process."""

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
        # simultaneous requests of one kind share a transaction
        self.authenticating, self.admitting = Batcher(), Batcher()
        self.handing_out, self.storing = Batcher(), Batcher()
        self.draining = threading.Event()
        self.institution = load_identity(settings.identity_path)
        self.rates, self.uses = Rates(settings.requests_per_second), Uses()
        self.ready = Recent(LoggedCheck("ready", self._check_ready))
        self.room = LoggedCheck("room for uploads", lambda: self.require_room(0))
        self.figures = Recent(metrics.text)

    @property
    def clock(self) -> Clock:
        """Return the clock that all users of the database share."""
        return self.database.clock

    @property
    def lease_span(self) -> timedelta:
        """Return how long a step's lease holds without being renewed."""
        return timedelta(seconds=LEASE_SECONDS)

    def count(self, credential_id: str) -> None:
        """Count a request against its credential's rate, and record the use.

        Raises TooManyRequests.
        """
        now = self.clock.now()
        self.uses.note(credential_id, now)
        self.rates.take(credential_id, now)

    def drain(self) -> None:
        """Answer waiting requests and start no more steps: this process will end."""
        self.draining.set()
        log.info("not ready: this analyst is about to end")
        self.notifier.notify_driver()
        for session in self.notifier.waited_for:
            self.notifier.notify_session(session)

    def require_ready(self) -> None:
        """Raise :class:`Unavailable` unless a load balancer may send requests here."""
        if self.draining.is_set():
            raise Unavailable("This analyst is about to end.")
        self.ready.get(self.clock.now())

    def is_ready(self) -> bool:
        """Return whether a load balancer may send requests here."""
        try:
            self.require_ready()
        except Unavailable:
            return False
        return True

    def require_room(self, size: int) -> None:
        """Raise :class:`StorageFull` if an upload of this size would leave too little room.

        Tasks, results and the database need the reserve.
        """
        if not self.has_room(size):
            raise StorageFull(
                "The analyst has no room: it keeps the last "
                f"{self.settings.least_free_bytes:,} bytes of its data folder for results."
            )

    def has_room(self, size: int = 0) -> bool:
        """Return whether the analyst has room for an upload of this size (bytes)."""
        return self.blobs.free_bytes() - size >= self.settings.least_free_bytes

    def check_clock(self) -> None:
        """Raise :class:`Unavailable` if this machine's clock is wrong.

        Leases are timed by the database's clock. A machine whose own clock differs much
        takes no step and gets no request.
        """
        skew = self.clock.skew()
        if abs(skew) > self.lease_span / 3:
            seconds = skew.total_seconds()
            raise Unavailable(
                f"This machine's clock is {abs(seconds):.0f} seconds "
                f"{'ahead of' if seconds > 0 else 'behind'} the database server's. "
                "Synchronise it (NTP)."
            )

    def _check_ready(self) -> None:
        self.check_clock()
        if not self.database.is_current():
            raise Unavailable("The database has the schema of another release.")
        with suppress(StorageFull):  # results can still be fetched here
            self.room()
        try:
            self.blobs.check()
        except OSError as error:
            raise Unavailable(
                f"The data folder cannot be written ({errno.errorcode.get(error.errno or 0, 'no errno')})."
            ) from None

"""The parts of a service process: what requests and background threads share.

No web library is imported here: the driver and the sweeper run without any.
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
"""How long without a sign of life until a step is taken from its driver.

The same for all analysts of a database: each judges the others' leases by it.
"""

_V = TypeVar("_V")
_SECOND: Final = timedelta(seconds=1)
_MAX_CALLERS: Final = 10_000
_BURST_SECONDS: Final = 5


class Rates:
    """How often each may ask: a bucket for each, which fills at a rate.

    It holds what fills it in five seconds: so many requests may come after a rest.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = max(1.0, _BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, now: datetime) -> None:
        """Count a request.

        Raises TooManyRequests if the caller's bucket is empty.
        """
        with self._lock:
            left = self._count_left(caller, now)
            is_empty = left < 1
            self._buckets[caller] = (left if is_empty else left - 1, now)
            self._buckets.move_to_end(caller)
            if len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        if is_empty:
            raise TooManyRequests(f"More than {self._per_second:g} in a second.")

    def _count_left(self, caller: str, now: datetime) -> float:
        left, since = self._buckets.get(caller, (self._burst, now))
        rested = max(0.0, (now - since).total_seconds())
        return min(self._burst, left + rested * self._per_second)


class Uses:
    """When each credential was last shown: noted here, written now and then."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def note(self, credential_id: str, now: datetime) -> None:
        """Note that a credential was shown."""
        with self._lock:
            self._last[credential_id] = now

    def take(self) -> dict[str, datetime]:
        """Return what was noted, and forget it: a time that is lost is a minute's."""
        with self._lock:
            taken, self._last = self._last, {}
        return taken


class LoggedCheck:
    """A check whose outcome is logged whenever it is another than before.

    what: what holds while nothing is raised, for the log: ``ready``.
    check: raises what is wrong.
    """

    def __init__(self, what: str, check: Callable[[], None]) -> None:
        self._what = what
        self._check = check
        self._wrong = ""

    def __call__(self) -> None:
        """Check; what the check raises leaves this too."""
        try:
            self._check()
        except CoterieError as error:
            self._tell(error.detail)
            raise
        except Exception as error:
            self._tell(describe(error))
            raise
        self._tell("")

    def _tell(self, wrong: str) -> None:
        if wrong == self._wrong:
            return
        self._wrong = wrong
        if wrong:
            log.error("not %s: %s", self._what, wrong)
        else:
            log.info("%s again", self._what)


class Recent(Generic[_V]):
    """A value at most a second old; safe from any thread.

    While one thread works it out, the others are given the last one: they do not queue.
    What was raised instead of a value is kept, and raised, for as long.
    """

    def __init__(self, work_out: Callable[[], _V]) -> None:
        self._work_out = work_out
        self._known: tuple[datetime, _V | Exception] | None = None
        self._lock = threading.Lock()

    def get(self, now: datetime) -> _V:
        """Return the value, as it is or was a moment ago."""
        known = self._known
        if known is None:
            with self._lock:
                known = self._known or self._renew(now)
        # a clock that was put back would make a value last
        elif abs(now - known[0]) >= _SECOND and self._lock.acquire(blocking=False):
            try:
                known = self._renew(now)
            finally:
                self._lock.release()
        if isinstance(known[1], Exception):
            raise known[1]
        return known[1]

    def _renew(self, now: datetime) -> tuple[datetime, _V | Exception]:
        found: _V | Exception
        try:
            found = self._work_out()
        except Exception as error:  # noqa: BLE001  it is raised by anyone who asks
            found = error
        self._known = (now, found)
        return self._known


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
        # requests of one kind that come together share a transaction
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
        """Return the clock of all who share the database."""
        return self.database.clock

    @property
    def lease_span(self) -> timedelta:
        """Return how long a lease of a step holds without being renewed."""
        return timedelta(seconds=LEASE_SECONDS)

    def count(self, credential_id: str) -> None:
        """Count a request of a credential, and note that it was shown.

        Raises TooManyRequests.
        """
        now = self.clock.now()
        self.uses.note(credential_id, now)
        self.rates.take(credential_id, now)

    def drain(self) -> None:
        """Let nobody wait here, take no step: this process ends, another continues."""
        self.draining.set()
        log.info("not ready: this analyst is about to end")
        self.notifier.notify_all()

    def require_ready(self) -> None:
        """Raise :class:`Unavailable` unless requests should be sent here."""
        if self.draining.is_set():
            raise Unavailable("This analyst is about to end.")
        self.ready.get(self.clock.now())

    def is_ready(self) -> bool:
        """Return whether requests should be sent here."""
        try:
            self.require_ready()
        except Unavailable:
            return False
        return True

    def require_room(self, size: int) -> None:
        """Raise :class:`StorageFull` where an upload of so many bytes would take the rest.

        The rest is for what follows from uploads: tasks, results and the database.
        """
        if not self.has_room(size):
            raise StorageFull(
                "The analyst has no room: it keeps the last "
                f"{self.settings.least_free_bytes:,} bytes of its data folder for results."
            )

    def has_room(self, size: int = 0) -> bool:
        """Return whether the analyst takes an upload of so many bytes."""
        return self.blobs.free_bytes() - size >= self.settings.least_free_bytes

    def check_clock(self) -> None:
        """Raise :class:`Unavailable` if this machine's clock is not that of the others.

        Leases last by one clock, the database's. A machine whose own clock is far from
        it takes no step and gets no request: what it tells others may be wrong too.
        """
        skew = self.clock.skew()
        if abs(skew) > self.lease_span / 3:
            seconds = skew.total_seconds()
            raise Unavailable(
                f"This machine's clock is {abs(seconds):.0f} seconds "
                f"{'ahead of' if seconds > 0 else 'behind'} the database server's: set it "
                "(NTP)."
            )

    def _check_ready(self) -> None:
        self.check_clock()
        if not self.database.is_current():
            raise Unavailable("The database has the schema of another release.")
        with suppress(StorageFull):  # no reason to fetch results elsewhere
            self.room()
        try:
            self.blobs.check()
        except OSError as error:
            raise Unavailable(
                f"The data folder cannot be written ({errno.errorcode.get(error.errno or 0, 'no errno')})."
            ) from None

"""What this process counts of each caller: how often it asks, when it last did."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime

from clustering_protocols.common.errors import TooManyRequests

_MAX_CALLERS = 10_000
_BURST_SECONDS = 5


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

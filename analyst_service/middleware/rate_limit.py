"""How often each caller may ask: a bucket of tokens per caller, in this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime

from clustering_protocols.common.errors import TooManyRequests

_MAX_CALLERS = 10_000


class Rates:
    """Buckets that fill at a rate and hold a burst.

    burst: how many requests may come at once after a rest.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
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
        left, since = self._buckets.get(caller, (float(self._burst), now))
        rested = max(0.0, (now - since).total_seconds())
        return min(float(self._burst), left + rested * self._per_second)

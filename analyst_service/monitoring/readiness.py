"""What holds of a service: looked at once a second, and logged whenever it changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from analyst_service.monitoring.logs import describe
from clustering_protocols.common.errors import CoterieError

_V = TypeVar("_V")
_SECOND = timedelta(seconds=1)

log = logging.getLogger(__name__)


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

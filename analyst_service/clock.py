"""Time as an argument: the one place that reads the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...

    def skew(self) -> timedelta:
        """Return how far this machine's clock is ahead of this clock."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def skew(self) -> timedelta:
        """Return zero: it is the machine's own."""
        return timedelta(0)


class ServerClock:
    """The clock of a database server, which several analysts share.

    The server is asked by :meth:`skew`. From its last answer on, the monotonic clock of
    this machine counts, which nobody sets.

    ask: returns the server's time, in UTC; its errors are the caller's.
    own: the clock of the machine, whose skew is measured.
    """

    def __init__(self, ask: Callable[[], datetime], own: Clock | None = None) -> None:
        self._ask = ask
        self._own = own or SystemClock()
        self._answer: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the time, in UTC."""
        time_there, at = self._answer or self._synchronise()
        return time_there + timedelta(seconds=time.monotonic() - at)

    def skew(self) -> timedelta:
        """Ask the server, and return how far this machine's clock is ahead of it."""
        self._synchronise()
        return self._own.now() - self.now()

    def _synchronise(self) -> tuple[datetime, float]:
        asked = time.monotonic()
        time_there = self._ask()
        # the answer was given between question and arrival
        self._answer = time_there, (asked + time.monotonic()) / 2
        return self._answer

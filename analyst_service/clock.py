"""Time as an argument: the one place that reads the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

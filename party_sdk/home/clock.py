"""The current time, read in one place so that tests can replace it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time in UTC, with its time zone."""
    return datetime.now(UTC)

"""The time of this machine, in one place."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)

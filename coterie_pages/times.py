"""Times that people write: a date, a time, or how long ago it was."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_AGO: Final = re.compile(r"([0-9]{1,6})([dhm])")
_UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1)} | {
    "m": timedelta(minutes=1)
}
FORMS: Final = "a date (2026-11-01), a time (2026-11-01T09:30) or an age (3d, 12h, 30m)"


def read_moment(text: str, now: datetime) -> datetime:
    """Return the time that a text names; one without a zone is in UTC.

    Raises ValueError if it is none of :data:`FORMS`, or lies before the calendar
        begins.
    """
    text = text.strip()
    try:
        if ago := _AGO.fullmatch(text):
            return now - int(ago[1]) * _UNITS[ago[2]]
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"give {FORMS}") from None

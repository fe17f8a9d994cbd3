"""When to try a request again: a pure function of what has happened so far.

Everything that the SDK sends is safe to repeat.
"""

from __future__ import annotations

from typing import Final

RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
_BASE_SECONDS: Final = 0.2
_CEILING_SECONDS: Final = 5.0


def next_delay(
    attempt: int,
    elapsed: float,
    patience: float,
    status: int | None,
    retry_after: str | None,
) -> float | None:
    """Return the seconds to wait before the next attempt, or None to give up.

    attempt: how many attempts failed, at least 1.
    elapsed, patience: seconds since the first attempt, and after which to give up.
    status: HTTP status; None where no response came at all.
    retry_after: the header of that name, in seconds.
    """
    if status is not None and status not in RETRYABLE:
        return None
    delay = min(_BASE_SECONDS * 2.0 ** min(attempt - 1, 8), _CEILING_SECONDS)
    if retry_after is not None and retry_after.isdecimal():
        delay = max(delay, float(retry_after))
    return None if elapsed + delay > patience else delay

"""When each key and token was last shown: noted here, written now and then."""

from __future__ import annotations

import threading
from datetime import datetime


class Uses:
    """Times by credential, of what was shown to this process since it was last asked."""

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

"""Waiting in view of the operator: every move of the session is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from clustering_protocols.common.errors import SessionOver
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import LONG_POLL_SECONDS, Analyst

_LOOK_SECONDS: Final = 1.0
_LEAST_SECONDS: Final = 0.2  # between two questions whether there is a task

OnProgress = Callable[[SessionStatus], None]


class SessionWatch:
    """Tells the operator whenever the session has moved."""

    def __init__(
        self, analyst: Analyst, session: str, on_progress: OnProgress | None
    ) -> None:
        self._analyst = analyst
        self._session = session
        self._on_progress = on_progress
        self._last: SessionStatus | None = None
        self._looked = -_LOOK_SECONDS

    def look(self) -> SessionStatus:
        """Return where the session stands; tell if that is news."""
        status = self._analyst.session(self._session)
        if self._on_progress is not None and status != self._last:
            self._on_progress(status)
        self._last = status
        return status

    def tell(self, *, busy: bool = False) -> None:
        """Look, if there is anybody to tell; of a ``busy`` party once a second."""
        now = time.monotonic()
        is_due = not busy or now >= self._looked + _LOOK_SECONDS
        if self._on_progress is not None and is_due:
            self.look()
            self._looked = now

    def task(self) -> bytes | None:
        """Return the open task; None if there is no task now or the session is complete.

        The analyst holds the request for a while; one that does not is asked again after
        a moment. :class:`SessionOver` if the session ended without a result.
        """
        asked = time.monotonic()
        try:
            task = self._analyst.task(self._session, LONG_POLL_SECONDS)
        except SessionOver as over:
            if over.state != SessionState.COMPLETED:
                raise
            return None
        if task is None:
            time.sleep(max(0.0, asked + _LEAST_SECONDS - time.monotonic()))
        return task

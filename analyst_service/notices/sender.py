"""The sender: a thread that sends what is due in the outbox.

Several may run, in one process or in many: a lease says which of them has a notice. One
that is killed between sending and noting it down leaves the notice to be sent again
under the same id, by which receivers know it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from typing import Any, Self

from analyst_service.monitoring.logs import describe
from analyst_service.notices.service import (
    Notification,
    Undelivered,
    has_due,
    has_leftovers,
    send,
    settle,
    take,
    tidy,
)
from analyst_service.process_context import Service
from analyst_service.storage.models import Notice
from analyst_service.transactions.outbox import NoticeState
from clustering_protocols.wire.answers import Failure

log = logging.getLogger(__name__)

RETRIES = tuple(
    timedelta(seconds=seconds)
    for seconds in (10, 60, 300, 1800, 2 * 3600, 6 * 3600, 12 * 3600)
)
"""How long after each failure a notice is tried again; then it is given up."""

_AT_ONCE = 4
_LOOK_SECONDS = 1.0


class Sender:
    """Sends notices while it is entered; several may, side by side."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="notices")
        self._is_away = False

    def __enter__(self) -> Self:
        if self._service.settings.sends_mail:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def turn(self) -> int:
        """Send what is due, a few at once; return how many there were."""
        database = self._service.database
        if database.query(has_leftovers):
            database.transact(tidy)
        taken = list(islice(self._due(), _AT_ONCE))
        if taken:
            with ThreadPoolExecutor(_AT_ONCE, "notice") as pool:
                list(pool.map(lambda each: self._deliver(*each), taken))
        return len(taken)

    def _loop(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                while self.turn() and not self._stop.is_set():
                    pass
                self._is_away = False
            except Exception as error:  # noqa: BLE001  what is due stays due
                if not self._is_away:  # an outage is said once
                    log.error("notices: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
                self._is_away = True

    def _due(self) -> Iterator[tuple[Notice, Notification]]:
        """Take notices, one by one; each transaction is a short one."""
        database = self._service.database
        while database.query(has_due):
            taken = database.transact(take)
            if taken is None:
                return
            yield taken

    def _deliver(self, notice: Notice, notification: Notification) -> None:
        """Send a notice, and note what became of it."""
        try:
            send(self._service.settings, notification, self._service.clock.now())
        except Undelivered as error:
            self._fail(notice, error)
        except Exception as error:  # noqa: BLE001  others are told all the same
            log.error("notices: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
            self._fail(notice, Undelivered(Failure.INTERNAL))
        else:
            self._settle(notice, "sent", state=NoticeState.SENT.value, failure=None)

    def _fail(self, notice: Notice, error: Undelivered) -> None:
        """Try again later, or give up."""
        is_last = error.is_final or notice.attempts > len(RETRIES)
        if is_last:
            fields = {"failure": error.failure.value}
            log.warning("notice given up", extra={"fields": fields})
            changes: dict[str, Any] = {"state": NoticeState.GIVEN_UP.value}
        else:
            delay = RETRIES[notice.attempts - 1]
            changes = {"due_at": self._service.clock.now() + delay}
        outcome = "given-up" if is_last else "tried-again"
        self._settle(notice, outcome, failure=error.failure.value, **changes)

    def _settle(self, notice: Notice, outcome: str, **changes: Any) -> None:
        now = self._service.clock.now()
        self._service.database.transact(settle, notice, changes | {"settled_at": now})
        self._service.metrics.notices.labels(outcome).inc()

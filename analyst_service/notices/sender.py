"""The sender: a thread that sends what is due in the outbox.

Several may run, in one process or in many: a lease says which of them has a notice. One
that is killed between sending and noting it down leaves the notice to be sent again
under the same id, by which receivers know it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from typing import Any, Self, TypeVar

from analyst_service.monitoring.logs import describe
from analyst_service.notices.service import (
    MailSender,
    NoticeService,
    Notification,
    Undelivered,
)
from analyst_service.process_context import Service
from analyst_service.storage.models import Notice
from analyst_service.transactions.outbox import NoticeState
from clustering_protocols.wire.notices import Failure

log = logging.getLogger(__name__)
T = TypeVar("T")

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
        self._mail = MailSender(service.settings)
        self._is_away = False

    def __enter__(self) -> Self:
        if self._service.settings.smtp_server:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def turn(self) -> int:
        """Send what is due, a few at once; return how many there were."""
        if self._reads(NoticeService.has_leftovers):
            self._transact(NoticeService.tidy)
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
        while self._reads(NoticeService.has_due):
            taken = self._transact(NoticeService.take)
            if taken is None:
                return
            yield taken

    def _deliver(self, notice: Notice, told: Notification) -> None:
        """Send a notice, and note what became of it."""
        try:
            self._mail.send(told, self._service.clock.now())
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
        self._transact(
            lambda notices: notices.settle(notice, settled_at=now, **changes)
        )
        self._service.metrics.notices.labels(outcome).inc()

    def _reads(self, query: Callable[[NoticeService], bool]) -> bool:
        with self._service.database.read() as transaction:
            return query(NoticeService(transaction, self._service))

    def _transact(self, change: Callable[[NoticeService], T]) -> T:
        return self._service.database.transact(
            lambda transaction: change(NoticeService(transaction, self._service))
        )

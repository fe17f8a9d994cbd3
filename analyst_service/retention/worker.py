"""The keeper: a thread that removes what is no longer needed, every now and then."""

from __future__ import annotations

import logging
import threading
from typing import Final, Self

from analyst_service.auth.service import AuthService
from analyst_service.monitoring.logs import describe
from analyst_service.process_context import Service
from analyst_service.retention.service import RetentionService

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 60.0
"""How often to look for what is to be removed."""


class Sweeper:
    """Purges and sweeps while it is entered; several may, side by side."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._retention = RetentionService(service)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="keeper")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def turn(self) -> None:
        """Remove once what is to be removed now, and write when keys were last used."""
        self._note_uses()
        self._retention.purge_ended()
        self._retention.delete_ended()
        self._retention.drop_tokens()
        self._retention.sweep()

    def _note_uses(self) -> None:
        last, clock = self._service.uses.take(), self._service.clock
        if last:
            self._service.database.transact(
                lambda transaction: AuthService(transaction, clock).note_uses(last)
            )

    def _loop(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            self._service.is_ready()  # a change is logged, though nobody asks
            try:
                self.turn()
            except Exception as error:  # noqa: BLE001  what it keeps is swept later
                log.error("keeper: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values

"""What holds or does not hold of a service: each change is one line of the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from analyst_service.monitoring.logs import describe
from clustering_protocols.common.errors import CoterieError

log = logging.getLogger(__name__)


class LoggedCheck:
    """A check whose outcome is logged whenever it is another than before.

    what: what holds while nothing is raised, for the log: ``ready``.
    check: raises what is wrong.
    """

    def __init__(self, what: str, check: Callable[[], None]) -> None:
        self._what = what
        self._check = check
        self._wrong = ""

    def __call__(self) -> None:
        """Check; what the check raises leaves this too."""
        try:
            self._check()
        except CoterieError as error:
            self._tell(error.detail)
            raise
        except Exception as error:
            self._tell(describe(error))
            raise
        self._tell("")

    def _tell(self, wrong: str) -> None:
        if wrong == self._wrong:
            return
        self._wrong = wrong
        if wrong:
            log.error("not %s: %s", self._what, wrong)
        else:
            log.info("%s again", self._what)

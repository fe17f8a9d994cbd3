"""The supervisor beside the pages, unless another process has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from clustering_protocols.common.errors import CoterieError, NotReady
from party_sdk.supervisor import Supervisor, Trouble, find_supervisor
from party_sdk.supervisor.status import trouble_of

_AGAIN_SECONDS = 3.0


class SupervisorThread:
    """Runs the orders of a home in a thread, for as long as no other process does.

    say: called with a line about what happens.

    trouble: why orders do not run, until they do.
    """

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._home, self._say = home, say
        self._stop = Event()
        self._thread = Thread(target=self._run, name="supervisor", daemon=True)
        self.trouble: Trouble | None = None

    def start(self) -> None:
        """Begin; orders run from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the processes of orders that this process runs, and return then."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def process(self) -> int | None:
        """Return which process runs orders; None if none does."""
        return find_supervisor(self._home)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if find_supervisor(self._home) is None:
                    self.trouble = None
                    Supervisor(self._home, say=self._say).run(self._stop)
            except NotReady as error:
                if find_supervisor(self._home) is None:  # else another was faster
                    self._fail(error)
            except CoterieError as error:
                self._fail(error)
            self._stop.wait(_AGAIN_SECONDS)

    def _fail(self, error: CoterieError) -> None:
        trouble = trouble_of(error)
        if trouble != self.trouble:
            self._say(f"{trouble.headline}: {trouble.detail}")
        self.trouble = trouble

"""The worker processes of an analyst that runs from the stock come from there too."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from types import SimpleNamespace
from typing import Any

from support.warm import Warm


class Process:
    """Stands in for ``multiprocessing.Process`` (spawn) of ``worker.serve_jobs``."""

    def __init__(
        self, target: Callable[..., Any], args: tuple[Connection], *, daemon: bool
    ) -> None:
        from analyst_service import worker

        assert target is worker.serve_jobs
        assert daemon
        [self.channel] = args
        self.lock = threading.Lock()  # driver and listener both wait for the end

    def start(self) -> None:
        files = [0, 1, 2, self.channel.fileno()]
        self.running = Warm([__file__], files, env=os.environ)

    def kill(self) -> None:
        with self.lock:
            self.running.send_signal(signal.SIGKILL)

    def join(self, timeout: float | None = None) -> None:
        with self.lock, suppress(subprocess.TimeoutExpired):
            self.running.wait(timeout)

    @property
    def exitcode(self) -> int | None:
        return self.running.returncode


def install() -> None:
    """Let the service take its processes from the stock; for the stock itself."""
    from analyst_service import worker

    context = SimpleNamespace(Pipe=Pipe, Process=Process)
    spawn = SimpleNamespace(get_context={"spawn": context}.__getitem__)
    worker.multiprocessing = spawn  # type: ignore[assignment]  as far as it is used


if __name__ == "__main__":
    from analyst_service import worker

    sys.argv = [""]
    worker.serve_jobs(Connection(3))

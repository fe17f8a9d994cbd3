"""Progress of a command that takes long: nobody looks at a silent screen."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread
from typing import Self

import click

_SECONDS = 4.0


class Heartbeat:
    """Says what a command does, and says it again after a while without a word.

    As a context manager; on standard error.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._begin = self._last = time.monotonic()
        self._doing = ""
        self._log: Path | None = None
        self._end = Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def say(self, line: str) -> None:
        """Print a line: what was reached."""
        self._last = time.monotonic()
        click.echo(line, err=True)

    def now(self, doing: str, log: Path | None = None) -> None:
        """Print what begins, to be said again as long as nothing else is.

        With the last line of ``log``, where another process writes one.
        """
        self._doing, self._log = doing, log
        self.say(f"{doing} …")

    def _beat(self) -> None:
        while not self._end.wait(self._seconds / 8):
            if time.monotonic() - self._last >= self._seconds:
                seconds = time.monotonic() - self._begin
                self.say(f"  {seconds:.0f} s: {self._last_line() or self._doing}")

    def _last_line(self) -> str:
        if self._log is None or not self._log.exists():
            return ""
        lines = self._log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

"""Progress of commands: a line that is written anew, or a word now and then."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

import click

_BAR: Final = 12
_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """The last line of a terminal, on standard error.

    Anyone who prints anything else calls :meth:`clear` first.
    """

    def __init__(self) -> None:
        self._is_open = False

    def show(
        self, told: str, *, part: float | None = None, stays: bool = False
    ) -> None:
        """Write a line in the place of the one before it.

        told: without control characters.
        part: how much is done, from 0 to 1: drawn as a bar.
        stays: whether the line is the last one, to be read afterwards.
        """
        if stays or not sys.stderr.isatty():
            self.clear()
            click.echo(told, err=True)
            return
        bar = "" if part is None else f"{_bar(part)} "
        width = shutil.get_terminal_size().columns - len(bar) - 1
        shown = told if len(told) <= width else f"{told[: width - 1]}…"
        # click leaves colours out where nobody wants them
        styled = click.style(bar, fg="cyan") if bar else ""
        click.echo(f"{_CLEAR}{styled}{shown}", err=True, nl=False)
        self._is_open = True

    def clear(self) -> None:
        """Make room for another line."""
        if self._is_open:
            click.echo(_CLEAR, err=True, nl=False)
        self._is_open = False


def _bar(part: float) -> str:
    done = round(_BAR * min(1.0, max(0.0, part)))
    return f"[{'#' * done}{'.' * (_BAR - done)}]"


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

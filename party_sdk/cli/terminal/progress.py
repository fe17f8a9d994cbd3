"""Progress of commands: a line that is written anew."""

from __future__ import annotations

import shutil
import sys
from typing import Final

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
        bar = ""
        if part is not None:
            done = round(_BAR * min(1.0, max(0.0, part)))
            bar = f"[{'#' * done}{'.' * (_BAR - done)}] "
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

"""The progress of a command, as a line that is updated in place."""

from __future__ import annotations

import shutil
import sys
from typing import Final

import click

_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """The last line of a terminal, which is updated in place on standard error.

    Call :meth:`clear` before printing anything else.
    """

    def __init__(self) -> None:
        self._is_open = False

    def show(self, text: str, *, stays: bool = False) -> None:
        """Replace the line with a text; without a terminal, print it as a new line.

        text: must not contain control characters.
        stays: whether the line is final and remains on the screen.
        """
        if stays or not sys.stderr.isatty():
            self.clear()
            click.echo(text, err=True)
            return
        width = shutil.get_terminal_size().columns - 1
        line = text if len(text) <= width else f"{text[: width - 1]}…"
        click.echo(f"{_CLEAR}{line}", err=True, nl=False)
        self._is_open = True

    def clear(self) -> None:
        """Erase the line, so that other output can be printed."""
        if self._is_open:
            click.echo(_CLEAR, err=True, nl=False)
        self._is_open = False

"""Progress of commands: a line that is rewritten."""

from __future__ import annotations

import shutil
import sys
from typing import Final

import click

_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """The last line of a terminal, on standard error.

    Other output has to call :meth:`clear` first.
    """

    def __init__(self) -> None:
        self._is_open = False

    def show(self, text: str, *, stays: bool = False) -> None:
        """Replace the line.

        text: without control characters.
        stays: whether the line is final, and stays on the screen.
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
        """Clear the line for other output."""
        if self._is_open:
            click.echo(_CLEAR, err=True, nl=False)
        self._is_open = False

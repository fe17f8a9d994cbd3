"""Exit a process quickly, without finalising the interpreter."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_without_finalisation(command: Callable[[], Any]) -> None:
    """Run a command and exit without finalising the interpreter.

    Finalisation visits every object. In a party that holds tables and compiled
    functions this takes as long as twenty rounds. Threads are still joined, exit
    handlers still run, and a process that fails with an exception exits normally.
    """
    gc.set_threshold(50_000, 20, 50)  # imports create few cycles to collect
    status: int | None = None

    @atexit.register  # runs after all handlers registered later
    def end_process() -> None:
        if status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            return  # the interpreter reports the error when it exits normally
        os._exit(status)

    try:
        command()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            status = end.code or 0
        raise
    status = 0


def error_location(error: Exception) -> str:
    """Return the type and location of an error, without its text, which may be secret."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"

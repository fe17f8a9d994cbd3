"""Who runs a command, and where its acts are logged."""

from __future__ import annotations

import getpass
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analyst_service.monitoring.administrative_acts import Actor


def operator() -> Actor:
    """Return whom the log names for a command: the login on this machine."""
    from analyst_service.monitoring.administrative_acts import COMMAND, Actor

    try:
        return Actor(COMMAND, getpass.getuser())
    except (KeyError, OSError):  # a container's user has no name
        return Actor(COMMAND, f"uid {os.getuid()}")


@contextmanager
def acts_on_stderr() -> Iterator[None]:
    """Write the acts of a command to standard error, a line of JSON each.

    A terminal shows none: there a command says what it did in words.
    """
    if sys.stderr.isatty():
        yield
        return
    from analyst_service.monitoring.administrative_acts import LOGGER
    from analyst_service.monitoring.logs import JsonLines

    log, handler = logging.getLogger(LOGGER), logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)

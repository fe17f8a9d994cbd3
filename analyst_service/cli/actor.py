"""Who runs a command, for the administrative log."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analyst_service.storage.database import Database
    from analyst_service.transactions.administrative_log import Act, Actor, Field


def operator() -> Actor:
    """Return whom the log names for a command: the login on this machine."""
    from analyst_service.transactions.administrative_log import COMMAND, Actor

    try:
        return Actor(COMMAND, getpass.getuser())
    except (KeyError, OSError):  # a container's user has no name
        return Actor(COMMAND, f"uid {os.getuid()}")


def note(database: Database, act: Act, **fields: Field) -> None:
    """Write what a command did, where the schema has a log."""
    from analyst_service.clock import SystemClock
    from analyst_service.transactions.administrative_log import AdministrationLog

    if not database.is_current():
        return  # a backup copies older schemas too, and changes nothing there
    now = SystemClock().now()
    database.transact(
        lambda transaction: AdministrationLog(transaction).append(
            act, operator(), now, **fields
        )
    )

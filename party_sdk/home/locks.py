"""Locks of files between processes: one way on POSIX systems, another on Windows."""

from __future__ import annotations

import sys
from typing import IO


def lock(file: IO[bytes], *, waits: bool) -> bool:
    """Lock an open file until it is closed; False if another process has it.

    waits: whether to wait until it is free.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(
                file.fileno(), msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1
            )
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):
        return False
    return True

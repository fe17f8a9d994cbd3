"""Errors for a full disk on this machine, as opposed to a full disk at the analyst."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clustering_protocols.common.errors import StorageFull


def is_disk_full(error: OSError) -> bool:
    """Return whether an operation failed because a disk or a quota is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def disk_full_error(folder: Path | None, content: str) -> StorageFull:
    """Return the error to raise when this machine's disk is full.

    folder: the folder that could not be written to, or None if it is unknown.
    content: a sentence that says what is stored there.
    """
    location = f" in {folder}" if folder else ""
    return StorageFull(
        f"This machine has no room left{location}. {content}",
        remedy="Free space here, then try again: nothing is lost. The "
        "analyst is another machine.",
    )


@contextmanager
def report_full_disk(folder: Path | None, content: str) -> Iterator[None]:
    """Replace the system's error for a full disk with StorageFull.

    folder: the folder that is written to; if None, that of the file named by the error.
    content: a sentence that says what is stored there.
    """
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        if folder is None and error.filename:
            folder = Path(error.filename).parent
        raise disk_full_error(folder, content) from None

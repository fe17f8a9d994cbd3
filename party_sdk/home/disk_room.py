"""Errors for a full disk of this machine, as distinct from a full disk of the analyst."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clustering_protocols.common.errors import StorageFull


def is_full(error: OSError) -> bool:
    """Return whether a disk or a quota is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def no_room(folder: Path | None, content: str) -> StorageFull:
    """Return the error for a full disk.

    folder: the folder on the full disk, if it is known.
    content: a sentence about the content to be written.
    """
    location = f" in {folder}" if folder else ""
    return StorageFull(
        f"This machine has no room left{location}. {content}",
        remedy="Free space here, then try again: nothing is lost. The "
        "analyst is another machine.",
    )


@contextmanager
def report_full_disk(folder: Path | None, content: str) -> Iterator[None]:
    """Raise StorageFull in place of the system's error for a full disk.

    folder: the folder that is written to; by default that of the error's file.

    Raises StorageFull if this machine has no room left.
    """
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        if folder is None and error.filename:
            folder = Path(error.filename).parent
        raise no_room(folder, content) from None

"""Where reading may write: a private folder, and files without a name."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

from party_sdk.home.files import lock

PREFIX: Final = "coterie-tables-"
_LOCK: Final = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """What one reading of a table may write to.

    folder: for copies that a library reads by name; gone with the reading.
    numbers, cells: rows as float64, and columns of Arrow. They have no name: nothing of
        them is left behind, however processes end.
    original: numbers for the cells that a mapping changes; without a name, too.
    """

    folder: Path
    numbers: IO[bytes]
    cells: IO[bytes]
    original: IO[bytes]


@contextmanager
def new_scratch() -> Iterator[Scratch]:
    """Lend a folder that only this account can enter, and three files without a name.

    All of them lie where ``TMPDIR`` says.
    """
    with (
        private_folder() as folder,
        tempfile.TemporaryFile() as numbers,
        tempfile.TemporaryFile() as cells,
        tempfile.TemporaryFile() as original,
    ):
        yield Scratch(folder, numbers, cells, original)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Lend a new folder, and remove it afterwards.

    Its lock is held as long as this process lives. The first call of a process removes
    the folders of processes that were killed: nobody holds their locks.
    """
    _sweep_once(Path(tempfile.gettempdir()))
    with ExitStack() as stack:
        folder = None
        while folder is None:
            folder = _held_folder(stack)
        yield folder


def _held_folder(stack: ExitStack) -> Path | None:
    """Return a new folder whose lock is held; None if it was swept before that."""
    found = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    folder = Path(stack.enter_context(found))
    try:
        held = stack.enter_context((folder / _LOCK).open("xb"))
    except FileNotFoundError:
        return None
    with suppress(OSError):  # a file system that knows no locks: nobody sweeps there
        lock(held)
    return folder if (folder / _LOCK).exists() else None


@cache
def _sweep_once(place: Path) -> None:
    sweep(place)


def sweep(place: Path) -> None:
    """Remove the folders that processes of this account left behind when killed."""
    with suppress(OSError):
        for folder in place.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if _is_own(folder):
                    with (folder / _LOCK).open("rb+") as file:
                        if lock(file):
                            shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    if folder.is_symlink():
        return False
    if sys.platform == "win32":
        return True  # temporary files of each account lie apart there
    return folder.stat().st_uid == os.geteuid()

"""Kinds of table files, and temporary files."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import BATCH_ROWS
from party_sdk.home.files import try_lock

FileKind: TypeAlias = Literal["text", "parquet", "excel", "spss", "sas", "stata"]
STATISTICS: Final = frozenset({"spss", "sas", "stata"})
"""Kinds of files that have column titles and value labels."""
_ENDINGS: Final[dict[str, FileKind]] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".xlsx": "excel", ".xlsm": "excel",
    ".sav": "spss", ".zsav": "spss", ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip

LARGE_FILE: Final = "large-file"
"""Value of --allow that lifts the limits of a reader process, except on memory."""
CELL_LINES: Final = "cell-lines"
"""Value of --allow that permits a multi-line cell whose lines look like rows."""
MOST_CELL: Final = 2 << 20
"""The maximum number of bytes in a text cell, or in a line of a text file."""
MOST_NUMBERS: Final = 2_000_000
"""The maximum number of cells in a batch: with many columns, batches have fewer rows."""


def rows_per_batch(n_columns: int) -> int:
    """Return the number of rows in a batch of ``n_columns`` columns, at least 1."""
    return max(1, min(BATCH_ROWS, MOST_NUMBERS // max(1, n_columns)))


def file_kind(path: Path) -> FileKind:
    """Detect the kind of a table file from its first bytes and its extension.

    Raises InvalidData if the file does not exist, is empty or an archive, or is
    unreadable.
    """
    if not path.exists():
        raise InvalidData(f"There is no file {path.name!r}.")
    if not path.is_file():
        description = "a folder" if path.is_dir() else "a pipe or device"
        raise InvalidData(f"{path.name!r} is {description}, not a readable file.")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        raise InvalidData(f"{path.name!r} cannot be read here.") from None
    ending = path.suffix.lower()
    if not head:
        raise InvalidData(f"{path.name!r} is empty: there is no table in it.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if ending in {".xls", ".xlsb", ".ods"}:
        raise InvalidData(
            f"{path.name!r} is a workbook of another format: save it as .xlsx or CSV."
        )
    if head.startswith((b"PK", b"\x1f\x8b")):
        form = "zip archive" if head.startswith(b"PK") else "gzip file"
        raise InvalidData(f"{path.name!r} is a {form}: unpack it, and name the table.")
    return "text"


PREFIX: Final = "coterie-tables-"
_LOCK: Final = "lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a private temporary folder that is locked, and remove it on exit.

    The first call in a process also removes the folders of processes that were killed.
    These are recognised by their locks, which nobody holds.
    """
    _sweep_once(Path(tempfile.gettempdir()))
    with ExitStack() as stack:
        while (folder := _lock_new_folder(stack)) is None:
            pass
        yield folder


def _lock_new_folder(stack: ExitStack) -> Path | None:
    """Return a new, locked folder; None if another process removed it before the lock."""
    temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    folder = Path(stack.enter_context(temporary))
    try:
        lock_file = stack.enter_context((folder / _LOCK).open("xb"))
    except FileNotFoundError:
        return None
    with suppress(OSError):  # without locks, abandoned folders remain
        try_lock(lock_file)
    return folder if (folder / _LOCK).exists() else None


def remove_abandoned_folders(parent: Path) -> None:
    """Remove the temporary folders that killed processes of this user left behind."""
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                # on Windows each user has a separate temporary folder
                is_own = sys.platform == "win32" or folder.stat().st_uid == os.geteuid()
                if is_own and not folder.is_symlink():
                    with (folder / _LOCK).open("rb+") as file:
                        if try_lock(file):
                            shutil.rmtree(folder, ignore_errors=True)


_sweep_once: Final = cache(remove_abandoned_folders)

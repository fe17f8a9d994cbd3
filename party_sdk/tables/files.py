"""Kinds of table files, and limits on memory and disk for reading them."""

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
from typing import IO, Final, Literal, TypeAlias

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import BATCH_ROWS
from party_sdk.home.files import lock

FileKind: TypeAlias = Literal[
    "text", "gzip", "parquet", "excel", "spss", "sas", "stata"
]
STATISTICS: Final = frozenset({"spss", "sas", "stata"})
"""Kinds of file that have column titles and value labels."""
_ENDINGS: Final[dict[str, FileKind]] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".xlsx": "excel", ".xlsm": "excel", ".xlsb": "excel", ".xls": "excel", ".ods": "excel",
    ".sav": "spss", ".zsav": "spss", ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip

LARGE_FILE: Final = "large-file"
"""Value of --allow that lifts the limits below but keeps half of all memory as a limit."""
CELL_LINES: Final = "cell-lines"
"""Value of --allow that admits a cell whose several lines look like rows."""
MOST_UNPACKED: Final = 1 << 30
"""Bytes that a file may unpack to, and that a reader process may write to one file."""
MOST_MEMORY: Final = 4 << 30
"""Bytes of memory that a reader process may use."""
MOST_CELL: Final = 2 << 20
"""Most bytes of a cell of text, or of a line of a text file."""
MOST_SECONDS: Final = 900.0
"""Seconds that a reader process may run."""
NUMBER_BYTES: Final = 8
TEXT_BYTES: Final = 32
"""Bytes that a number and a text are assumed to take."""
UNPACK: Final = "Unpack it yourself"
"""Remedy for a compressed text file that exceeds a limit."""
MOST_NUMBERS: Final = 2_000_000
"""Most cells of a batch: batches of a wide table have fewer rows."""


def batch_rows(n_columns: int) -> int:
    """Return the number of rows in a batch of ``n_columns`` columns."""
    return max(1, min(BATCH_ROWS, MOST_NUMBERS // max(1, n_columns)))


def kind_of(path: Path) -> FileKind:
    """Return the kind of table in a file, by its first bytes and its ending.

    Raises InvalidData if there is no such file, or it is an archive or cannot be read.
    """
    if not path.exists():
        raise InvalidData(f"There is no file {path.name!r}.")
    if not path.is_file():
        description = "a folder" if path.is_dir() else "a pipe or device"
        raise InvalidData(f"{path.name!r} is {description}, and no readable file.")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        raise InvalidData(f"{path.name!r} may not be read here.") from None
    ending = path.suffix.lower()
    if not head:
        raise InvalidData(f"{path.name!r} is empty: no readable table.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x1f\x8b") and _ENDINGS.get(ending) != "parquet":
        return "gzip"
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if head.startswith(b"PK"):
        raise InvalidData(
            f"{path.name!r} is a zip archive: unpack it, and name the table."
        )
    return "text"


def most_memory(*, large: bool) -> int:
    """Return the memory limit of a reader process, in bytes."""
    if not large or not hasattr(os, "sysconf"):
        return MOST_MEMORY
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(MOST_MEMORY, total // 2)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for reading one file, and the errors for a file that exceeds them.

    name: the file's name, for error texts.
    large: whether the operator lifts the limits.
    """

    name: str
    large: bool = False

    def check_unpacked(self, n_bytes: int, subject: str, remedy: str) -> None:
        """Refuse a table that unpacks to more than :data:`MOST_UNPACKED`.

        n_bytes: bytes of the whole table, or those unpacked so far.
        subject: subject and verb of the error's sentence, such as ``'a.gz' takes``.
        remedy: the beginning of its second sentence, which says what to do.

        Raises InvalidData.
        """
        if self.large or n_bytes <= MOST_UNPACKED:
            return
        raise InvalidData(
            f"{subject} more than {_size(MOST_UNPACKED)} once unpacked. {remedy}, "
            f"or read it with --allow {LARGE_FILE}."
        )

    def check_rows(
        self, n_rows: int, n_numbers: int, n_texts: int, remedy: str
    ) -> None:
        """Refuse rows that would exceed the limit; see :meth:`check_unpacked`."""
        self.check_unpacked(
            n_rows * (NUMBER_BYTES * n_numbers + TEXT_BYTES * n_texts),
            f"{self.name!r}: {n_rows:,} rows take",
            remedy,
        )

    def error(
        self, resource: Literal["time", "memory", "disk"], remedy: str
    ) -> InvalidData:
        """Return the error for a file that exceeds a limit."""
        memory, disk = _size(most_memory(large=self.large)), _size(MOST_UNPACKED)
        excess = {
            "time": f"more than {MOST_SECONDS / 60:.0f} minutes",
            "memory": f"more memory than it may ({memory} or 'ulimit')",
            "disk": f"more of the disk than it may ({disk} or 'ulimit')",
        }[resource]
        if not self.large:
            remedy = f"{remedy}, or read it with --allow {LARGE_FILE}"
        return InvalidData(f"{self.name!r} takes {excess} to read. {remedy}.")


def _size(n_bytes: int) -> str:
    return f"{n_bytes >> 30} GiB" if n_bytes >= 1 << 30 else f"{n_bytes >> 20} MiB"


PREFIX: Final = "coterie-tables-"
_LOCK: Final = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The temporary files of one read.

    folder: for copies that a library opens by name; removed after the read.
    numbers, cells: rows as float64, and Arrow columns, in unnamed files of which nothing
        remains when the process ends.
    original: numbers that stand for the cells before a mapping changes them, in an
        unnamed file.
    """

    folder: Path
    numbers: IO[bytes]
    cells: IO[bytes]
    original: IO[bytes]


@contextmanager
def new_scratch() -> Iterator[Scratch]:
    """Create a private folder and three unnamed temporary files.

    They are created in the folder that ``TMPDIR`` names.
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
    """Create a private folder, and remove it afterwards.

    Its lock is held until then. The first call of a process removes the folders of
    processes that were killed: nobody holds their locks.
    """
    _sweep_once(Path(tempfile.gettempdir()))
    with ExitStack() as stack:
        while (folder := _lock_new_folder(stack)) is None:
            pass
        yield folder


def _lock_new_folder(stack: ExitStack) -> Path | None:
    """Return a new folder whose lock is held; None if it was swept before it was locked."""
    temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    folder = Path(stack.enter_context(temporary))
    try:
        lock_file = stack.enter_context((folder / _LOCK).open("xb"))
    except FileNotFoundError:
        return None
    with suppress(OSError):  # without locks in the file system, sweep() removes nothing
        lock(lock_file)
    return folder if (folder / _LOCK).exists() else None


def sweep(parent: Path) -> None:
    """Remove the folders that processes of this account left behind when killed."""
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                # on Windows each account has a temporary folder of its own
                is_own = sys.platform == "win32" or folder.stat().st_uid == os.geteuid()
                if is_own and not folder.is_symlink():
                    with (folder / _LOCK).open("rb+") as file:
                        if lock(file):
                            shutil.rmtree(folder, ignore_errors=True)


_sweep_once: Final = cache(sweep)

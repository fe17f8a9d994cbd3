"""How large a table may become: a small file can hold an endless one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clustering_protocols.common.errors import InvalidData

LARGE_FILE: Final = "large-file"
"""The switch that lifts these limits: of memory to half of the machine's."""
MOST_UNPACKED: Final = 1 << 30
"""Bytes that a file may unpack to, and of each file that a reader's process writes."""
MOST_MEMORY: Final = 4 << 30
"""Bytes of memory of its own that a reader's process may take."""
MOST_ADDRESSES: Final = 2 * MOST_MEMORY
"""Bytes of addresses that it may take: its memory, and maps of the files it wrote."""
MOST_CELL: Final = 2 << 20
"""Bytes of the longest cell of text, or line of a text file."""
MOST_SECONDS: Final = 900.0
"""Seconds that a reader's process may run."""

UNPACK: Final = "Unpack it yourself"
"""What to do instead with a compressed text."""

OUT_OF_MEMORY: Final = 77
OUT_OF_ROOM: Final = 78
"""Status of a reader's process that met a limit and could say so."""
DISK_FULL: Final = 79
"""Status of one that has no room to say anything in."""

_MEMORY: Final = {"RLIMIT_DATA": "-d", "RLIMIT_AS": "-v"}
_ROOM: Final = {"RLIMIT_FSIZE": "-f"}
"""Limits that a shell sets, with its option."""

NUMBER_BYTES: Final = 8
"""Bytes of a cell as a number."""
ID_BYTES: Final = 32
"""Bytes of an id: its text, and where it is looked up."""
SHEET_CELL_BYTES: Final = 32
"""Bytes of a cell of a sheet, empty or not, while the sheet is read."""


def most_memory(*, large: bool) -> int:
    """Return how many bytes of memory of its own a reader's process may take.

    Of a large file it may take half of the machine's, if that is more.
    """
    if not large or not hasattr(os, "sysconf"):
        return MOST_MEMORY
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(MOST_MEMORY, total // 2)


def outer_limit(*names: str) -> int | None:
    """Return the least hard limit that this process was started with; None if it has none.

    names: of limits of the operating system, such as ``"RLIMIT_DATA"``.
    """
    try:
        import resource
    except ImportError:  # Windows has none of them
        return None
    found = [resource.getrlimit(getattr(resource, name))[1] for name in names]
    return min((held for held in found if held != resource.RLIM_INFINITY), default=None)


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may take.

    name: the file's name, for sentences.
    large: whether the operator lifts the limits.
    """

    name: str
    large: bool = False

    @classmethod
    def of(cls, path: Path, allow: Sequence[str]) -> Limits:
        """Return the limits of a file, given the guards that are switched off."""
        return cls(path.name, LARGE_FILE in allow)

    def check_unpacked(self, n_bytes: int, what: str, remedy: str) -> None:
        """Refuse a table that unpacks to more than :data:`MOST_UNPACKED`.

        n_bytes: bytes of the whole table, or of what is unpacked already.
        what: what takes them: the subject of a sentence.
        remedy: what to do instead: the beginning of a sentence.

        Raises InvalidData.
        """
        if self.large or n_bytes <= MOST_UNPACKED:
            return
        raise InvalidData(
            f"{what} more than {_size(MOST_UNPACKED)} once unpacked. {remedy}, "
            f"or read it with --allow {LARGE_FILE}."
        )

    def check_rows(self, n_rows: int, n_columns: int, n_ids: int, remedy: str) -> None:
        """Refuse rows of a compressed file that take too much as numbers and ids.

        n_rows, n_columns, n_ids: rows, and in each of them numbers and cells that name
            it.
        remedy: as for :meth:`check_unpacked`.

        Raises InvalidData.
        """
        self.check_unpacked(
            n_rows * (NUMBER_BYTES * n_columns + ID_BYTES * n_ids),
            f"{self.name!r}: {n_rows:,} rows take",
            remedy,
        )

    def explain_time(self, remedy: str) -> InvalidData:
        """Return what to say of a file whose reading took too long.

        remedy: as for :meth:`check_unpacked`.
        """
        return self._explain(f"more than {MOST_SECONDS / 60:.0f} minutes", remedy)

    def explain_memory(self, remedy: str) -> InvalidData:
        """Return what to say of a file whose reading took too much memory."""
        own = most_memory(large=self.large)
        return self._explain_size("of memory", own, _MEMORY, remedy)

    def explain_room(self, remedy: str) -> InvalidData:
        """Return what to say of a file whose reading took too much of the disk."""
        return self._explain_size("of the disk", MOST_UNPACKED, _ROOM, remedy)

    def _explain_size(
        self, of_what: str, own: int, outer: dict[str, str], remedy: str
    ) -> InvalidData:
        held = outer_limit(*outer)
        if held is None or held >= own:
            return self._explain(f"more than {_size(own)} {of_what}", remedy)
        options = " or ".join(f"'ulimit {option}'" for option in outer.values())
        what = f"more than {_size(held)} {of_what}, which is what this command may take"
        return InvalidData(
            f"{self.name!r} takes {what}, to read. {remedy}, or raise the limit "
            f"({options}) that the command was started with."
        )

    def _explain(self, what: str, remedy: str) -> InvalidData:
        if not self.large:
            remedy = f"{remedy}, or read it with --allow {LARGE_FILE}"
        return InvalidData(f"{self.name!r} takes {what} to read. {remedy}.")


def is_memory_bounded(*, large: bool) -> bool:
    """Return whether this process was started with less memory than a reader may take."""
    held = outer_limit(*_MEMORY)
    return held is not None and held < most_memory(large=large)


def _size(n_bytes: int) -> str:
    unit, shift = ("GiB", 30) if n_bytes >= 1 << 30 else ("MiB", 20)
    return f"{n_bytes >> shift} {unit}"

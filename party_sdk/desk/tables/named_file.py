"""A file as a form names it: its path, its sheet, and where the names of columns stand."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from party_sdk.desk.responses import Form

_BY_FIELDS: Final = ("sheet", "skip")
_ENDINGS: Final = frozenset(
    [
        ".csv", ".tsv", ".txt", ".gz", ".parquet", ".pq", ".xlsx", ".xlsm", ".xlsb",
        ".xls", ".ods", ".sav", ".zsav", ".sas7bdat", ".dta",
    ]
)  # fmt: skip
_MOST_BYTES: Final = 65_536


def pasted_or_named(form: Form, field: str, folder: Path) -> str:
    """Return what was pasted into a field, or the text of the file beside it.

    Raises InvalidParameters if there is neither, or no such file.
    """
    text, named = form.one(field).strip(), form.one("file").strip()
    if text:
        return text
    if not named:
        raise InvalidParameters(f"Paste the {field}, or name its file.")
    path = folder / Path(named).expanduser()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, errors="replace") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(_MOST_BYTES)
    except (OSError, ValueError):
        pass
    raise InvalidParameters(f"The file {path.name!r} cannot be read.")


def path_of(form: Form, folder: Path, name: str = "path") -> str:
    """Return the path in a field; it counts from the folder of tables."""
    path = form.one(name).strip()
    return str(folder / Path(path).expanduser()) if path else ""


def csv_of(form: Form) -> str:
    """Return how a file is written, with the sheet and the header row of their fields."""
    words = split_words(form.one("csv"))
    for name in _BY_FIELDS:
        if name not in form.fields:
            continue
        words = [word for word in words if not word.startswith(f"{name}=")]
        if value := form.one(name).strip():
            words.append(f"{name}={value}")
    return shlex.join(words)


def split_words(csv: str) -> list[str]:
    """Return the words of a field.

    Raises InvalidData if a quote stays open.
    """
    try:
        return shlex.split(csv)
    except ValueError:
        raise InvalidData("How it is written: a quote stays open.") from None


def word_of(csv: str, name: str) -> str:
    """Return what a field says of one part of how a file is written; empty for nothing."""
    found = (
        w.removeprefix(f"{name}=") for w in split_words(csv) if w.startswith(f"{name}=")
    )
    return next(found, "")


def sheets_of(path: str) -> Sequence[str]:
    """Return the sheets of a file; none where it has no sheets."""
    from party_sdk.tables import sheet_names

    return sheet_names(Path(path))


def written_as(path: str, csv: str) -> dict[str, Any]:
    """Return the sheets of a file, and what was said of sheet and header row."""
    return {
        "sheets": sheets_of(path),
        "sheet": word_of(csv, "sheet"),
        "skip": word_of(csv, "skip"),
    }


def file_choice(folder: Path, path: str, csv: str) -> dict[str, Any]:
    """Return what a page says of the file that is chosen, before it is read."""
    return {
        "folder": str(folder),
        "files": tuple(files_in(folder)),
        "path": path,
        "csv": csv if path else "",
        "sheets": (),
        "sheet": "",
        "skip": "",
        "names": (),
        "ids": (),
        "report": None,
        "warnings": (),
        "checked": False,
    }


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that may be tables, by name."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        found = []
    for path in found:
        if path.suffix.lower() in _ENDINGS and path.is_file():
            yield path

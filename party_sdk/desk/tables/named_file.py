"""Form fields that name a file: its path, its sheet, and its header row."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
)
from coterie_pages.models import Banner
from party_sdk.desk.responses import Form, banner_of, path_in
from party_sdk.tables import read_sheet_names

_BY_FIELDS: Final = ("sheet", "skip")
_ENDINGS: Final = frozenset(
    [
        ".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xlsm",
        ".sav", ".zsav", ".sas7bdat", ".dta",
    ]
)  # fmt: skip
_MOST_BYTES: Final = 65_536


def pasted_or_named(form: Form, field: str, folder: Path) -> str:
    """Return the text pasted into a field, or read from the file that the form names.

    Raises InvalidParameters if the form has neither, or if the file cannot be read.
    """
    text, file_name = form.get(field).strip(), form.get("file").strip()
    if text:
        return text
    if not file_name:
        raise InvalidParameters(f"Paste the {field}, or name its file.")
    path = path_in(folder, file_name)
    try:
        with path.open(errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        raise InvalidParameters(f"The file {path.name!r} cannot be read.") from None


def path_of(form: Form, folder: Path, name: str = "path") -> str:
    """Return the path in a field, resolved against the folder; empty if none is named."""
    path = form.get(name).strip()
    return str(path_in(folder, path)) if path else ""


def csv_of(form: Form) -> str:
    """Return a file's dialect options, updated from the fields for sheet and header row."""
    words = split_words(form.get("csv"))
    for name in _BY_FIELDS:
        if name not in form.fields:
            continue
        words = [word for word in words if not word.startswith(f"{name}=")]
        if value := form.get(name).strip():
            words.append(f"{name}={value}")
    return shlex.join(words)


def split_words(csv: str) -> list[str]:
    """Split the dialect options in a field as a shell does.

    Raises InvalidData if a quotation mark is not closed.
    """
    try:
        return shlex.split(csv)
    except ValueError:
        raise InvalidData("A quotation mark is not closed.") from None


def describe_file(
    folder: Path, path: str, csv: str, read: Callable[[dict[str, Any]], dict[str, Any]]
) -> tuple[dict[str, Any], Banner | None]:
    """Return the page content about the chosen file, and a banner with any error.

    read: reads the file, and returns further content. It is called with the content so
        far, which includes the sheets of the file.
    """
    content: dict[str, Any] = {"folder": str(folder), "files": tuple(files_in(folder))}
    if not path:
        return content, None
    content |= {"path": path, "csv": csv}
    try:
        options = (word.partition("=") for word in split_words(csv))
        content |= {name: value for name, _, value in options if name in _BY_FIELDS}
        content["sheets"] = read_sheet_names(Path(path))
        return content | read(content), None
    except CoterieError as error:
        return content, banner_of(error)


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder that may contain tables, sorted by name."""
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        paths = []
    for path in paths:
        if path.suffix.lower() in _ENDINGS and path.is_file():
            yield path

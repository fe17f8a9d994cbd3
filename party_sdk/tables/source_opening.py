"""From a file or a frame to a source of cells, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.formats.study_files import STUDIES, study_source
from party_sdk.tables.parsing.encoding import kind_of
from party_sdk.tables.parsing.limits import Limits
from party_sdk.tables.read_options import How
from party_sdk.tables.source import Source


def file_of(table: Any) -> Path | None:
    """Return where a table lies; None of a table in memory."""
    return Path(table) if isinstance(table, str | os.PathLike) else None


def name_of(table: Any) -> str:
    """Return what to call a table, without its folder."""
    file = file_of(table)
    return type(table).__name__ if file is None else file.name


@contextmanager
def open_source(table: Any, how: How, folder: Path) -> Iterator[Source]:
    """Lend a table as a source of cells, mended as its mapping says.

    folder: for copies, which nobody else may read.

    Raises InvalidData if it is none, is not what the mapping describes, or changes
        meanwhile.
    """
    with _open_unmapped(table, how, folder) as source:
        if how.mapping is None:
            yield source
        else:
            from party_sdk.tables.formats.mapped_source import MappedSource

            yield MappedSource(source, how, how.mapping)


@contextmanager
def _open_unmapped(table: Any, how: How, folder: Path) -> Iterator[Source]:
    from party_sdk.tables.formats.typed_tables import FrameSource

    path = file_of(table)
    if path is not None:
        before = _state(path)
        yield _of_file(path, how, folder)
        if _state(path) != before:
            raise InvalidData(f"{path.name!r} was changed while it was read.")
    else:
        yield FrameSource(table)


def _of_file(path: Path, how: How, folder: Path) -> Source:
    from party_sdk.tables.formats.text import TextSource
    from party_sdk.tables.formats.typed_tables import ParquetSource

    kind, limits = kind_of(path), Limits.of(path, how.allow)
    if kind == "parquet":
        return ParquetSource(path, folder, limits)
    if kind == "excel":
        from party_sdk.tables.formats.sheets import sheet_source

        return sheet_source(path, how.file_dialect, folder, limits)
    if kind in STUDIES:
        return study_source(path, how.file_dialect, folder, limits)
    return TextSource(path, kind, how.file_dialect, folder, limits)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_size, found.st_mtime_ns

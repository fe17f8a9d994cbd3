"""From a file, a query or a frame to a source of cells, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.formats.study_files import STUDIES, study_source
from party_sdk.tables.parsing import duck
from party_sdk.tables.parsing.encoding import kind_of
from party_sdk.tables.parsing.limits import Limits
from party_sdk.tables.read_options import How
from party_sdk.tables.source import Source

_SQL = ("postgresql://", "postgres://")


def file_of(table: Any) -> Path | None:
    """Return where a table lies; None of a query, or of a table in memory."""
    is_path = isinstance(table, str | os.PathLike) and not str(table).startswith(_SQL)
    return Path(table) if is_path else None


def name_of(table: Any) -> str:
    """Return what to call a table, without its folder."""
    file = file_of(table)
    if file is not None:
        return file.name
    return "a query" if isinstance(table, str) else type(table).__name__


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
    elif isinstance(table, str):
        from party_sdk.tables.formats.postgres import query_source

        yield query_source(table, how.query, how.file_dialect, folder)
    else:
        yield FrameSource(table)


def _of_file(path: Path, how: How, folder: Path) -> Source:
    from party_sdk.tables.formats.copied_source import CopiedSource
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
    if kind == "json":
        copy = folder / "objects.csv"
        try:
            with duck.open_database(path.absolute(), folder) as connection:
                duck.json_to_text(connection, path.absolute(), copy)
        except duckdb.Error as error:
            raise duck.unreadable(path, error) from None
        return CopiedSource(copy, how.file_dialect)
    return TextSource(path, kind, how.file_dialect, folder, limits)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_size, found.st_mtime_ns

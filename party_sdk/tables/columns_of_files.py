"""Single columns of files: their names, and the texts of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from party_sdk.tables.columns import texts
from party_sdk.tables.dialect import from_mapping
from party_sdk.tables.opening import How, opened, read_again


def column_names(path: Path, dialect: Any = None) -> list[str]:
    """Return the names of a file's columns."""
    with opened(path, How(dialect=from_mapping(dialect))) as source:
        return list(source.names.all)


def read_column(path: Path, name: str, dialect: Any = None) -> list[str]:
    """Return one column of a file as texts, for example the true classes."""
    with opened(path, How(dialect=from_mapping(dialect))) as source:
        source.names.require([name])
        batches = read_again(source, (), [name])
    return [text or "" for _, (piece,) in batches for text in texts(piece).to_pylist()]

"""Single columns of tables: their names, and cells as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from party_sdk.tables.columns import Column, texts
from party_sdk.tables.isolation import parent
from party_sdk.tables.isolation.jobs import CellsRead, ReadCells, cells_of
from party_sdk.tables.read_options import How
from party_sdk.tables.scratch import new_scratch
from party_sdk.tables.source_opening import open_source
from party_sdk.tables.spool import mapped_batches


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some columns of a table.

    said: the names of all columns, and what was wrong with lines that were not read.
    batches: the columns that were asked for, in that order, then those that name rows.
    """

    said: CellsRead
    batches: list[pa.RecordBatch]


def read_cells(
    table: Any,
    how: How,
    columns: Sequence[Column] = (),
    naming: Sequence[str] = (),
) -> Excerpt:
    """Return columns of a table as they are.

    how: dialect and guards count.
    columns: numbers and dates are parsed.
    naming: columns of texts, of which codes of no value stay.

    Raises InvalidData if the table cannot be read, or has no such column.
    """
    with new_scratch() as scratch:
        if (file := parent.find_isolated_file(table)) is not None:
            job = ReadCells(
                path=file, how=how, columns=tuple(columns), naming=tuple(naming)
            )
            return Excerpt(*parent.read_cells(job, scratch))
        with open_source(table, how, scratch.folder) as source:
            said = cells_of(source, columns, naming, scratch)
        return Excerpt(said, mapped_batches(scratch.cells))


def column_names(path: Path, how: How = How()) -> list[str]:  # noqa: B008  frozen
    """Return the names of a file's columns."""
    return list(read_cells(path, how).said.names)


def read_column(path: Path, name: str, how: How = How()) -> list[str]:  # noqa: B008  frozen
    """Return one column of a file as texts, for example the true classes."""
    batches = read_cells(path, how, naming=[name]).batches
    return [
        text or "" for batch in batches for text in texts(batch.column(0)).to_pylist()
    ]

"""Single columns of tables: their names, and cells as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from party_sdk.tables.columns import Column, texts
from party_sdk.tables.isolation import parent
from party_sdk.tables.isolation.jobs import CellsRead, ReadCells, cells_of
from party_sdk.tables.parsing.column_kinds import is_date
from party_sdk.tables.read_options import How
from party_sdk.tables.scratch import new_scratch
from party_sdk.tables.source_opening import open_source
from party_sdk.tables.spool import mapped_batches

_COMPARED: Final = 200
_WHOLE_OR_WORD: Final = re.compile(r"\d+|.*[^\d.,+-].*")


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


def sheet_names(path: Path) -> tuple[str, ...]:
    """Return the sheets of a file that hold something; none of another kind of file."""
    return parent.sheet_names(path)


def first_rows(
    path: Path, how: How, most: int = 5, most_columns: int = 40
) -> tuple[list[str], list[list[str]]]:
    """Return the names of a file's columns and its first rows as texts: for its people.

    Columns that name the rows, or whose values might be ids, are left out.
    """
    ids = how.id_columns
    names = [name for name in column_names(path, how) if name not in ids]
    names = names[:most_columns]
    batches = read_cells(path, how, naming=names).batches if names else []
    if not batches:
        return names, []
    columns = [texts(c).to_pylist() for c in batches[0].slice(0, _COMPARED).columns]
    kept = [place for place, cells in enumerate(columns) if not _may_be_ids(cells)]
    rows = zip(*(columns[place][:most] for place in kept), strict=True)
    return [names[place] for place in kept], [
        [cell or "" for cell in row] for row in rows
    ]


def _may_be_ids(cells: Sequence[str | None]) -> bool:
    """Return whether texts or whole numbers all differ, as ids do."""
    given = [cell for cell in cells if cell]
    whole = all(is_date(cell) or not _WHOLE_OR_WORD.fullmatch(cell) for cell in given)
    return len(given) > 1 and len(set(given)) == len(given) and not whole


def read_column(path: Path, name: str, how: How = How()) -> list[str]:  # noqa: B008  frozen
    """Return one column of a file as texts, for example the true classes."""
    batches = read_cells(path, how, naming=[name]).batches
    return [
        text or "" for batch in batches for text in texts(batch.column(0)).to_pylist()
    ]

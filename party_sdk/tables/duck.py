"""Read a text file with DuckDB, which may open no other file and no network connection.

The file's name is passed as a parameter with its wildcards escaped, and columns are
named by position, so nothing from an operator's file becomes SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.cells import Dialect
from party_sdk.tables.files import MOST_CELL, batch_rows

MEMORY_BYTES: Final = 512 << 20
MOST_COLUMNS: Final = 20_000
_WIDE: Final = 2_000
_MOST_REJECTS: Final = 10_000


@contextmanager
def open_database(
    path: Path, folder: Path, n_columns: int = 0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that may read one file and write into one folder.

    DuckDB buffers 2,048 rows of all columns at a time, so that thousands of columns
    need a higher memory limit.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{max(MEMORY_BYTES, n_columns << 17)}B",
        "temp_directory": str(folder / "spill"),
        "threads": 2 if n_columns < _WIDE else 1,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET enable_progress_bar = false")
        # timestamps must not depend on the time zone of this machine
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_paths = [{_sql_literal(str(path))}]")
        connection.execute(f"SET allowed_directories = [{_sql_literal(f'{folder}/')}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def read_text(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    dialect: Dialect,
    width: int,
    positions: Sequence[int],
    longest: int,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a UTF-8 text file's columns in row order; empty cells are null.

    width: number of columns in the file.
    positions: indices of the columns to read.
    longest: length of the longest line in bytes.
    """
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    options = {
        "columns": f"{{{columns}}}",
        "auto_detect": "false",
        "header": "true",
        "strict_mode": "true",
        "store_rejects": "true",
        "rejects_limit": str(_MOST_REJECTS),
        "delim": _sql_literal(dialect.delimiter or ","),
        "quote": _sql_literal(dialect.quote),
        "escape": _sql_literal(dialect.quote),
        "skip": str(dialect.skip or 0),
        "nullstr": "['']",
        "max_line_size": str(max(MOST_CELL, 4 * longest)),
        "hive_partitioning": "false",
    }
    arguments = ", ".join(f"{name} = {value}" for name, value in options.items())
    selection = ", ".join(f"c{i}" for i in positions)
    query = f"SELECT {selection} FROM read_csv($path, {arguments})"  # noqa: S608  only positions
    escaped = re.sub(r"([*?[])", r"[\1]", str(path))  # brackets escape wildcards
    relation = connection.sql(query, params={"path": escaped})
    yield from relation.to_arrow_reader(batch_rows(len(positions)))


class Reject(NamedTuple):
    """A part of the file that DuckDB skipped: its first byte, and the reason."""

    offset: int
    reason: str


def read_rejects(connection: duckdb.DuckDBPyConnection) -> list[Reject]:
    """Return the parts of the file that the last read skipped, in file order."""
    query = (
        "SELECT coalesce(byte_position, line_byte_position)::BIGINT - 1, "
        "error_type::VARCHAR FROM reject_errors ORDER BY 1"
    )
    return [Reject(*line) for line in connection.execute(query).fetchall()]


def _sql_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def reading_error(path: Path, error: Exception) -> InvalidData:
    """Return the error for a file that DuckDB cannot read, without DuckDB's own text.

    Raises MemoryError if DuckDB ran out of memory.
    """
    if isinstance(error, duckdb.OutOfMemoryException):
        raise MemoryError from None  # noqa: TRY004  no type is wrong
    match = re.search(r"(?:in line |[Ll]ine: )(\d+)", str(error))
    location = f", line {match[1]}" if match else ""
    return InvalidData(f"{path.name!r} is no readable table{location}.")

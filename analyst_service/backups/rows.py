"""Rows of tables as lines of JSON, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from analyst_service.backups import BackupFailed
from analyst_service.backups.folder import NewFolder
from analyst_service.backups.manifest import Backup, TableFile

_ROWS: Final = 1000
Row = dict[str, Any]


def reflected_tables(connection: sa.Connection) -> list[sa.Table]:
    """Return the tables as the database has them, those that others need first."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    found = [t for t in metadata.sorted_tables if t.name != "alembic_version"]
    for column in (column for table in found for column in table.columns):
        if isinstance(column.type, sa.JSON):
            column.type.none_as_null = True  # what is not there is no JSON null
    return found


def write_rows(
    connection: sa.Connection, table: sa.Table, folder: NewFolder
) -> TableFile:
    """Write all rows of a table, a line for each."""
    found = connection.execute(sa.select(table)).mappings().yield_per(_ROWS)
    lines = (
        json.dumps({name: _encode_value(value) for name, value in row.items()}).encode()
        + b"\n"
        for row in found
    )
    written = folder.write(_file(table.name), lines)
    return TableFile(rows=written.n_pieces, digest=written.digest)


def read_rows(backup: Backup, name: str) -> Iterator[Row]:
    """Yield the rows of a table, and at the end hold them against the manifest.

    Raises BackupFailed if a line is no row, or the file is not the one that the
        manifest names.
    """
    digest, number = sha256(), 0
    with backup.folder.open(_file(name)) as file:
        for number, line in enumerate(file, 1):
            digest.update(line)
            try:
                yield {column: _read(value) for column, value in _object(line).items()}
            except (ValueError, RecursionError):
                raise BackupFailed(
                    f"Line {number} of the table {name} of the backup is no row."
                ) from None
    if digest.hexdigest() != backup.tables[name]:
        raise BackupFailed(f"The table {name} of the backup was changed.")
    if backup.rows.get(name, number) != number:
        raise BackupFailed(
            f"The table {name} of the backup has another number of rows."
        )


def load_rows(connection: sa.Connection, backup: Backup) -> None:
    """Write the rows of all tables into tables of the backup's own revision.

    Raises BackupFailed if tables or columns are others, or the database refuses a row.
    """
    tables = reflected_tables(connection)
    missing = {table.name for table in tables} ^ backup.tables.keys()
    if missing:
        raise BackupFailed(
            f"The backup has not the tables of schema {backup.revision}: "
            f"{', '.join(sorted(missing))}."
        )
    for table in tables:
        rows = iter(read_rows(backup, table.name))
        while some := list(islice(rows, _ROWS)):
            if not all(_fits(table, row) for row in some):
                raise _build_refusal(table)
            try:
                connection.execute(sa.insert(table), some)
            except sa.exc.OperationalError:
                raise  # of the server, and not of what is written
            except (sa.exc.SQLAlchemyError, TypeError, ValueError, OverflowError):
                raise _build_refusal(table) from None


def _fits(table: sa.Table, row: Row) -> bool:
    """Return whether a row has the columns of a table and values of their types.

    SQLite would take any value in any column.
    """
    return row.keys() == set(table.columns.keys()) and all(
        row[column.name] is None or isinstance(row[column.name], _type_of(column))
        for column in table.columns
    )


def _type_of(column: sa.Column[Any]) -> type | tuple[type, ...]:
    is_json = isinstance(column.type, sa.JSON)
    return (dict, list) if is_json else column.type.python_type


def _build_refusal(table: sa.Table) -> BackupFailed:
    return BackupFailed(
        f"The table {table.name} of the backup has a row that the database refuses: it "
        "was changed, or is of another release."
    )


def _file(name: str) -> str:
    return f"tables/{name}.jsonl"


def _object(line: bytes) -> Row:
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a line of a table is an object")  # noqa: TRY004  it is received
    return found


def _encode_value(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return {"time": zoned.astimezone(UTC).isoformat()}
    return {"json": value} if isinstance(value, dict | list) else value


def _read(value: Any) -> Any:
    match value:
        case {"bytes": str(text), **rest} if not rest:
            return base64.b64decode(text, validate=True)
        case {"time": str(text), **rest} if not rest:
            return datetime.fromisoformat(text)
        case {"json": content, **rest} if not rest:
            return content
        case dict() | list():
            raise ValueError("no value of a row")
    return value

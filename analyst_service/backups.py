"""Backups: a copy of the database, followed by the blobs that the database refers to.

A folder contains ``database.db`` (from SQLite's VACUUM INTO) or ``tables/NAME`` (from
PostgreSQL's COPY), ``blobs``, the analyst's key, and ``backup.json``, which names the
release. Blobs never change, so copying them after the database is consistent.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import AwareDatetime, BaseModel, ValidationError
from sqlalchemy.orm import Session as Transaction
from typing_extensions import Buffer

from analyst_service.blobs import (
    FileBlobStore,
    WrongDigest,
    map_file,
    sync_folder,
    write_synced,
)
from analyst_service.database import (
    Database,
    SystemClock,
    begin_schema_change,
    migrate_schema,
)
from analyst_service.identity import read_identity, write_identity
from analyst_service.models import Base, Installation
from analyst_service.retention import find_live_digests
from analyst_service.settings import Settings
from clustering_protocols.common.errors import Malformed
from clustering_protocols.secrecy.identities import Institution

_SLICE = 1 << 20
_ATTEMPTS = 20
_DAMAGED = "The database of the backup is damaged."
_NOT_EMPTY = (
    "An analyst exists here already: restore into an empty database and an empty data "
    "folder."
)


class BackupFailed(Exception):
    """Raised if a backup cannot be made or restored; the message contains no row."""


class BackupOrigin(BaseModel):
    """The origin of a backup: release, kind of database, schema revision, and time."""

    coterie: str
    database: str
    revision: str
    time: AwareDatetime


def back_up(
    database: Database, blobs: FileBlobStore, key: Institution, folder: Path
) -> int:
    """Write a backup into a new folder, and return the number of blobs in it.

    The service may keep running. The folder appears only when the backup is complete.
    """
    if folder.exists():
        raise BackupFailed(f"{folder} already exists: choose a new folder.")
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    draft.mkdir(mode=0o700)
    try:
        description = BackupOrigin(
            coterie=version("coterie"),
            database=database.engine.dialect.name,
            revision=str(database.schema_revision()),
            time=SystemClock().now(),
        )
        n_blobs = _copy_data(database, blobs, draft)
        write_identity(draft / "identity.json", key)
        write_synced(draft / "backup.json", [description.model_dump_json().encode()])
        sync_folder(draft)
        draft.rename(folder)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return n_blobs


def _copy_data(database: Database, blobs: FileBlobStore, draft: Path) -> int:
    """Copy the database, then its blobs; retry if a blob was removed in between."""
    copies = FileBlobStore(draft / "blobs")
    is_file = database.engine.dialect.name == "sqlite"
    for _ in range(_ATTEMPTS):
        digests = (
            _dump_file(database, draft) if is_file else _dump_tables(database, draft)
        )
        try:
            for digest in digests:
                _copy_blob(blobs.map(digest), digest, copies)
        except KeyError:
            continue
        return len(digests)
    raise BackupFailed("Sessions end faster than they are copied: try again later.")


def _dump_file(database: Database, draft: Path) -> set[str]:
    path = draft / "database.db"
    path.unlink(missing_ok=True)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("VACUUM INTO ?", (str(path),))
    with Transaction(_create_sqlite_engine(path)) as transaction:
        return find_live_digests(transaction)


def _dump_tables(database: Database, draft: Path) -> set[str]:
    """Copy all tables from one snapshot, and return the digests of the blobs in use."""
    (draft / "tables").mkdir(exist_ok=True)
    engine = database.engine.execution_options(isolation_level="REPEATABLE READ")
    with Transaction(engine) as transaction:
        connection = transaction.connection()
        for name, columns in _reflect_tables(connection):
            with _open_table_copy(connection, name, columns, "TO STDOUT") as rows:
                write_synced(draft / "tables" / name, map(bytes, rows))
        return find_live_digests(transaction)


def restore_backup(
    folder: Path, database: Database, settings: Settings
) -> BackupOrigin:
    """Restore a backup into an empty installation, and upgrade its schema.

    The blobs and the key are written first, and then the database in a single step. If
    the process is killed before that, the command can be run again.
    """
    description = _read_description(folder, database)
    if description.database == "sqlite":
        with database.engine.connect() as connection:
            _require_empty_tables(connection)
        _load_file(folder, database, settings)
    else:
        with begin_schema_change(database.engine) as connection:
            _require_empty_tables(connection).drop_all(connection)
            migrate_schema(connection, description.revision)
            _load_tables(folder / "tables", connection)
            migrate_schema(connection)
            with Transaction(connection) as transaction:
                _restore_blobs_and_key(folder, transaction, settings)
    return description


def _require_empty_tables(connection: sa.Connection) -> sa.MetaData:
    """Return the analyst's tables; raise if a table has rows or is another program's."""
    tables = sa.MetaData()
    tables.reflect(connection)
    own = {name for name in tables.tables if name != "alembic_version"}
    if own and connection.dialect.name == "postgresql":  # keeps new rows out
        names = ", ".join(f'"{name}"' for name in tables.tables)
        connection.execute(sa.text(f"LOCK TABLE {names}"))
    if own - Base.metadata.tables.keys() or any(
        connection.scalar(sa.select(sa.exists().select_from(tables.tables[name])))
        for name in own
    ):
        raise BackupFailed(_NOT_EMPTY)
    return tables


def _load_file(folder: Path, database: Database, settings: Settings) -> None:
    """Load the SQLite file of a backup, after upgrading the schema in a copy of it."""
    path = settings.blob_location.open().draft_path()  # swept if the process is killed
    try:
        shutil.copyfile(folder / "database.db", path)
        with Transaction(_create_sqlite_engine(path)) as transaction:
            for check, expected in {"integrity": [("ok",)], "foreign_key": []}.items():
                rows = transaction.execute(sa.text(f"PRAGMA {check}_check")).all()
                if rows != expected:
                    raise BackupFailed(_DAMAGED)
        migrate_schema(_create_sqlite_engine(path))
        with Transaction(_create_sqlite_engine(path)) as transaction:
            _restore_blobs_and_key(folder, transaction, settings)
        with (
            closing(database.engine.raw_connection()) as target,
            closing(sqlite3.connect(path)) as source,
        ):
            source.backup(target.driver_connection)  # type: ignore[arg-type]  # SQLite's own
    except sa.exc.DatabaseError:
        raise BackupFailed(_DAMAGED) from None
    finally:
        path.unlink(missing_ok=True)


def _load_tables(folder: Path, connection: sa.Connection) -> None:
    import psycopg  # only PostgreSQL needs it

    for name, columns in _reflect_tables(connection):
        try:
            with _open_table_copy(connection, name, columns, "FROM STDIN") as rows:
                for piece in _split_into_slices(map_file(folder / name)):
                    rows.write(piece)
        except psycopg.OperationalError:
            raise BackupFailed("The database does not answer.") from None
        except psycopg.Error:  # the error message quotes the row
            raise BackupFailed(f"{_DAMAGED} The server refuses table {name}.") from None


def _restore_blobs_and_key(
    folder: Path, transaction: Transaction, settings: Settings
) -> None:
    """Restore the blobs, the key and the store's mark.

    Raises BackupFailed if the key or the mark differs from one that already exists.
    """
    store, path = settings.blob_location.open(), settings.identity_path
    installation = transaction.get(Installation, 1)
    try:
        key = read_identity(folder / "identity.json")
    except (Malformed, ValueError):
        raise BackupFailed("identity.json of the backup is not a key.") from None
    if installation is not None and installation.key != key.key:
        raise BackupFailed(
            "identity.json of the backup is not the key of its database."
        )
    if path.exists() and read_identity(path).key != key.key:
        raise BackupFailed(f"{_NOT_EMPTY} {path} contains another key.")
    if store.read_mark() not in {None, installation and installation.store}:
        raise BackupFailed(f"{_NOT_EMPTY} The store belongs to another database.")
    for digest in find_live_digests(transaction):
        _copy_blob(map_file(folder / "blobs" / digest[:2] / digest), digest, store)
    write_identity(path, key)
    if installation is not None:
        store.write_mark(installation.store)


def _copy_blob(content: Buffer, digest: str, store: FileBlobStore) -> None:
    if store.has(digest):
        return
    try:
        store.create_draft().store_pieces(_split_into_slices(content), digest)
    except WrongDigest:
        raise BackupFailed(
            "A blob does not match its digest: a disk is failing, or the file was changed."
        ) from None


def _read_description(folder: Path, database: Database) -> BackupOrigin:
    try:
        backup = BackupOrigin.model_validate_json((folder / "backup.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        raise BackupFailed(f"{folder} is not a backup of an analyst.") from None
    if backup.database != database.engine.dialect.name:
        raise BackupFailed(
            f"The backup was made from {backup.database}: COTERIE_DATABASE_URL has to "
            "name an empty database of the same kind."
        )
    if not database.knows_revision(backup.revision):
        raise BackupFailed(
            f"The backup has schema {backup.revision}, which this release does not know: "
            f"install release {backup.coterie}, which wrote it."
        )
    return backup


@contextmanager
def _open_table_copy(
    connection: sa.Connection, name: str, columns: str, direction: str
) -> Iterator[Any]:
    """Start psycopg's COPY of a table; ``direction`` is ``TO STDOUT`` or ``FROM STDIN``."""
    statement = f'COPY "{name}" ({columns}) {direction}'
    with connection.connection.cursor() as cursor, cursor.copy(statement) as rows:  # type: ignore[attr-defined]  # psycopg's own
        yield rows


def _reflect_tables(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    """Yield each table's name and quoted columns; referenced tables come first."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    for table in metadata.sorted_tables:
        if table.name != "alembic_version":
            yield table.name, ", ".join(f'"{name}"' for name in sorted(table.c.keys()))


def _create_sqlite_engine(path: Path) -> sa.Engine:
    return sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)


def _split_into_slices(content: Buffer) -> Iterator[bytes]:
    whole = memoryview(content)
    return (bytes(whole[i : i + _SLICE]) for i in range(0, len(whole), _SLICE))

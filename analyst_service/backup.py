"""A backup: what the database says, every blob that it names, and the analyst's key.

Written while the service works. The database is read in one transaction; blobs, which
never change, are copied after it. A blob that was removed meanwhile means that its
session has ended: the database is read again, and what was copied stays copied.

The form depends on no database, so what was SQLite may become PostgreSQL: a line of JSON
for each row, with bytes in base64 and times in UTC.

    manifest.json             release, revision, time, and the SHA-256 of each table, of
                              the names of all blobs, and of the key
    tables/NAME.jsonl
    blobs/ab/abcd…
    identity.json             the analyst's key: keep the backup as secret as that
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.blobs import BlobStore
from analyst_service.blobs.files import FileBlobStore
from analyst_service.clock import Clock
from analyst_service.database import Database
from analyst_service.retention.repository import RetentionRepository
from analyst_service.settings import Settings

_MANIFEST: Final = "manifest.json"
_IDENTITY: Final = "identity.json"
_ROWS: Final = 1000
_PIECE: Final = 1 << 20
_ATTEMPTS: Final = 20

OnProgress = Callable[[int, int], None]


class BackupFailed(Exception):
    """A backup could not be made, or is none; the text says why."""


def back_up(
    database: Database,
    settings: Settings,
    target: Path,
    on_progress: OnProgress,
    clock: Clock,
) -> int:
    """Write a backup into a new folder; return how many blobs it has.

    The folder is there as a whole or not at all.

    Parameters
    ----------
    on_progress : callable
        Called with the number of blobs that are copied, and of all.

    Raises
    ------
    BackupFailed
        If the folder exists, or sessions end faster than their blobs are copied.
    """
    if target.exists():
        raise BackupFailed(f"{target} exists already: give a new folder.")
    fresh = target.with_name(f".{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "tables").mkdir(parents=True, mode=0o700)
    try:
        manifest, digests = _copied(database, settings, fresh, on_progress, clock.now())
        if settings.identity_path.exists():
            shutil.copyfile(settings.identity_path, fresh / _IDENTITY)
            (fresh / _IDENTITY).chmod(0o600)
        manifest |= {"blobs": _sum_of(digests), "identity": _sum(fresh / _IDENTITY)}
        (fresh / _MANIFEST).write_text(f"{json.dumps(manifest, indent=1)}\n")
        _sync(fresh)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return len(digests)


def _copied(
    database: Database,
    settings: Settings,
    fresh: Path,
    on_progress: OnProgress,
    now: datetime,
) -> tuple[dict[str, Any], set[str]]:
    """Copy until every blob that the tables name is there.

    Returns
    -------
    dict
        What the manifest says of the tables.
    set of str
        The digests of the blobs.
    """
    source, copies = settings.blob_place.open(), FileBlobStore(fresh / "blobs")
    for _ in range(_ATTEMPTS):
        manifest, digests = _dump(database, fresh, now)
        if all(_copy(source, copies, digests, on_progress)):
            for left in set(copies.older(float("inf"))) - digests:
                copies.remove(left)
            return manifest, digests
    raise BackupFailed("Sessions end faster than they are copied: try again later.")


def _copy(
    source: BlobStore,
    copies: BlobStore,
    digests: set[str],
    on_progress: OnProgress,
) -> Iterator[bool]:
    """Copy blobs one by one; yield whether each was there."""
    for number, digest in enumerate(sorted(digests), 1):
        if not copies.has(digest):
            try:
                _copy_blob(source, copies, digest)
            except KeyError:
                yield False
                return
        on_progress(number, len(digests))
        yield True


def _copy_blob(source: BlobStore, copies: BlobStore, digest: str) -> None:
    """Copy a blob piece by piece; :class:`KeyError` if there is none."""
    content, draft = memoryview(source.map(digest)), copies.draft()
    try:
        for begin in range(0, len(content), _PIECE):
            draft.write(bytes(content[begin : begin + _PIECE]))
        if draft.seal() != digest:
            raise BackupFailed(
                "A blob is not what its name says: a disk is failing, or it was changed."
            )
        draft.keep()
    finally:
        draft.discard()


def restore(
    database: Database, settings: Settings, source: Path, on_progress: OnProgress
) -> int:
    """Bring a backup into an empty database and data folder; return how many blobs.

    The schema is that of the backup first, and then brought up to this release.

    Raises
    ------
    BackupFailed
        If there is something here already, or the backup is not whole.
    """
    manifest = _read_manifest(source)
    if database.revision() is not None or settings.identity_path.exists():
        raise BackupFailed(
            "There is an analyst here already: restore into an empty database and an "
            "empty data folder."
        )
    copies = FileBlobStore(source / "blobs")
    digests = set(copies.older(float("inf")))
    _check_whole(source, manifest, digests)
    blobs = settings.blob_place.open()
    for _ in _copy(copies, blobs, digests, on_progress):
        pass
    if (source / _IDENTITY).exists():
        settings.identity_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(source / _IDENTITY, settings.identity_path)
        settings.identity_path.chmod(0o600)
    database.migrate(manifest["revision"])
    _load(database, source)
    database.migrate()
    return len(digests)


def _check_whole(source: Path, manifest: dict[str, Any], digests: set[str]) -> None:
    """Refuse a backup of which something is missing or changed, before it is used."""
    for name, expected in manifest["tables"].items():
        if _sum(source / "tables" / f"{name}.jsonl") != expected:
            raise BackupFailed(f"The table {name} of the backup was changed.")
    # manifests of release 0.2.0 say nothing of these two
    names = _sum_of(digests)
    if manifest.get("blobs", names) != names:
        raise BackupFailed(
            f"The backup is not whole: {len(digests)} blobs are there, and these are not "
            "those that its tables name."
        )
    key = _sum(source / _IDENTITY)
    if manifest.get("identity", key) != key:
        raise BackupFailed(
            f"The analyst's key ({_IDENTITY}) is missing in the backup, or was changed: "
            "without it nothing that it signed can be checked."
        )


def _sum(path: Path) -> str | None:
    """Return the SHA-256 (hex) of a file; None if there is none."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _sum_of(digests: set[str]) -> str:
    return sha256("\n".join(sorted(digests)).encode()).hexdigest()


# Tables


def _dump(
    database: Database, fresh: Path, now: datetime
) -> tuple[dict[str, Any], set[str]]:
    """Write all tables as they are at one moment.

    Returns
    -------
    dict
        What the manifest says of them.
    set of str
        The digests of the blobs that they name.
    """
    manifest = {
        "coterie": version("coterie"),
        "revision": database.revision(),
        "time": now.isoformat(timespec="seconds"),
    }
    engine = database.engine
    if engine.dialect.name == "postgresql":  # on SQLite every transaction is like that
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with Transaction(engine) as transaction:
        connection = transaction.connection()
        tables = _tables(connection)
        sums = {
            table.name: _write_table(connection, table, fresh / "tables")
            for table in tables
        }
        there = {table.name for table in tables}
        digests = RetentionRepository(transaction).live(there)
    return {**manifest, "tables": sums}, digests


def _write_table(connection: sa.Connection, table: sa.Table, folder: Path) -> str:
    """Write a table's rows; return the SHA-256 (hex) of the file."""
    digest = sha256()
    with (folder / f"{table.name}.jsonl").open("wb") as file:
        for row in connection.execute(sa.select(table)).mappings().yield_per(_ROWS):
            values = {name: _written(value) for name, value in row.items()}
            line = json.dumps(values).encode() + b"\n"
            digest.update(line)
            file.write(line)
    return digest.hexdigest()


def _tables(connection: sa.Connection) -> list[sa.Table]:
    """Return the tables as the database has them, those that others need first."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    found = [t for t in metadata.sorted_tables if t.name != "alembic_version"]
    for column in (column for table in found for column in table.columns):
        if isinstance(column.type, sa.JSON):
            column.type.none_as_null = True  # what is not there is no JSON null
    return found


def _load(database: Database, source: Path) -> None:
    with database.engine.begin() as connection:
        for table in _tables(connection):
            path = source / "tables" / f"{table.name}.jsonl"
            if not path.exists():
                raise BackupFailed(f"The table {table.name} of the backup is missing.")
            rows = [json.loads(line) for line in path.read_bytes().splitlines()]
            read = [{k: _read(v) for k, v in row.items()} for row in rows]
            for begin in range(0, len(read), _ROWS):
                connection.execute(sa.insert(table), read[begin : begin + _ROWS])


def _written(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return {"time": zoned.astimezone(UTC).isoformat()}
    return {"json": value} if isinstance(value, dict | list) else value


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "bytes":
        return base64.b64decode(content)
    return datetime.fromisoformat(content) if kind == "time" else content


def _read_manifest(source: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((source / _MANIFEST).read_text())
    except (OSError, ValueError):
        raise BackupFailed(f"{source} is no backup of an analyst.") from None
    return manifest


def _sync(folder: Path) -> None:
    """Have the files of a backup on the disk before it gets its name."""
    for path in (*folder.glob("*.json"), *folder.glob("tables/*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

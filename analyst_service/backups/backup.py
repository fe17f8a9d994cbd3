"""Making a backup while the service works.

The database is read in one transaction; blobs, which never change, are copied after it.
A blob that was removed meanwhile means that its session has ended: the database is read
again, and what was copied stays copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session as Transaction
from typing_extensions import Buffer

from analyst_service.backups import BackupFailed, OnProgress
from analyst_service.backups.encryption import Encryption
from analyst_service.backups.folder import NewFolder, blob_name
from analyst_service.backups.manifest import (
    IDENTITY,
    Manifest,
    TableFile,
    write_manifest,
)
from analyst_service.backups.rows import reflected_tables, write_rows
from analyst_service.blobs import BlobStore
from analyst_service.clock import Clock
from analyst_service.retention.repository import RetentionRepository
from analyst_service.storage.database import Database
from clustering_protocols.secrecy.identities import Institution

_PIECE: Final = 1 << 20
_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is copied: the parts of an analyst."""

    database: Database
    blobs: BlobStore
    institution: Institution
    clock: Clock


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables at one moment, and the digests that they name."""

    revision: str
    files: dict[str, TableFile]
    digests: set[str]


def back_up(
    source: Source,
    target: Path,
    on_progress: OnProgress,
    encryption: Encryption | None = None,
    *,
    with_key: bool = True,
) -> int:
    """Write a signed backup into a new folder; return how many blobs it has.

    The folder is there as a whole or not at all.

    encryption: to whom its files are encrypted.
    with_key: whether the analyst's private key is in it.

    Raises BackupFailed if the folder exists, or sessions end faster than their blobs
        are copied.
    """
    now, identity = source.clock.now(), None
    with NewFolder(target, encryption) as folder:
        tables = _copy(source, folder, on_progress)
        if with_key:
            key = source.institution.to_bytes()
            identity = folder.write(IDENTITY, [key]).digest
        manifest = Manifest(
            coterie=version("coterie"),
            revision=tables.revision,
            time=now.replace(microsecond=0),
            key=source.institution.key,
            identity=identity,
            tables=tables.files,
            blobs=tuple(sorted(tables.digests)),
        )
        write_manifest(folder, manifest, source.institution)
        folder.finish()
    return len(tables.digests)


def _copy(source: Source, folder: NewFolder, on_progress: OnProgress) -> _Tables:
    """Copy until every blob that the tables name is there, and no other."""
    copied: set[str] = set()
    for _ in range(_ATTEMPTS):
        tables = _dump(source.database, folder)
        try:
            for digest in _copy_blobs(source.blobs, folder, tables.digests - copied):
                copied.add(digest)
                on_progress(len(copied & tables.digests), len(tables.digests))
        except KeyError:
            continue
        for left in copied - tables.digests:
            folder.remove(blob_name(left))
        return tables
    raise BackupFailed("Sessions end faster than they are copied: try again later.")


def _copy_blobs(
    blobs: BlobStore, folder: NewFolder, digests: set[str]
) -> Iterator[str]:
    """Copy blobs one by one, and yield each; :class:`KeyError` if one is gone."""
    for digest in sorted(digests):
        written = folder.write(blob_name(digest), _pieces(blobs.map(digest)))
        if written.digest != digest:
            raise BackupFailed(
                "A blob is not what its name says: a disk is failing, or it was changed."
            )
        yield digest


def _pieces(content: Buffer) -> Iterator[bytes]:
    whole = memoryview(content)
    for begin in range(0, len(whole), _PIECE):
        yield bytes(whole[begin : begin + _PIECE])


def _dump(database: Database, folder: NewFolder) -> _Tables:
    """Write all tables as they are at one moment."""
    engine = database.engine
    if engine.dialect.name == "postgresql":  # on SQLite every transaction is like that
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    revision = database.revision()
    if revision is None:
        raise BackupFailed("The database has no schema: there is nothing to copy.")
    with Transaction(engine) as transaction:
        connection = transaction.connection()
        tables = reflected_tables(connection)
        files = {table.name: write_rows(connection, table, folder) for table in tables}
        digests = RetentionRepository(transaction).live(set(files))
    return _Tables(revision, files, digests)

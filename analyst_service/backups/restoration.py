"""Bringing a backup into an empty analyst.

All of it is read and checked first. Then schema, rows and who did it are one
transaction. Blobs and the analyst's key are written before its end: what an end by force
leaves of them is named by nothing, and the same restore goes over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.backups import BackupFailed, OnProgress
from analyst_service.backups.folder import blob_name
from analyst_service.backups.manifest import IDENTITY, Backup
from analyst_service.backups.rows import load_rows, read_rows
from analyst_service.blobs import BlobStore
from analyst_service.clock import Clock
from analyst_service.identity import read_identity, write_identity
from analyst_service.installation import Parts, check_parts, own
from analyst_service.monitoring.administrative_acts import (
    Act,
    Actor,
    log_when_committed,
)
from analyst_service.sessions.outdated_sessions import OutdatedSession, end_outdated
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from analyst_service.storage.migrations import BrokenLinks, migrate, revision_of
from clustering_protocols.common.errors import Malformed
from clustering_protocols.secrecy.identities import Institution

_MOST_KEY_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class RestoreSummary:
    """How many blobs came back, and which sessions were ended."""

    n_blobs: int
    ended: list[OutdatedSession]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a backup goes, and who brings it there."""

    database: Database
    settings: Settings
    actor: Actor
    clock: Clock


def restore(backup: Backup, target: Target, on_progress: OnProgress) -> RestoreSummary:
    """Bring a backup into an empty database and an empty store of arrays.

    The schema is that of the backup first, and then brought up to this release. Anyone who
    calls this has made sure that the signer is the one that was expected.

    Raises BackupFailed if there is something here already, or the backup is not whole.
        Nothing of it is left then.
    """
    if not target.database.knows(backup.revision):
        raise BackupFailed(
            f"The backup has schema {backup.revision}, which this release does not know: "
            "install the newer release that wrote it."
        )
    _check_empty(target.database.revision())
    institution = _checked_key(backup, target.settings)
    _check_files(backup)
    blobs = target.settings.blob_place.open()
    if blobs.mark() is not None:
        raise BackupFailed(
            "The store of arrays is that of another database. COTERIE_BLOB_STORE and "
            "COTERIE_DATA_DIR say where it is: give an empty one."
        )
    with _undone(blobs, target) as written:
        ended = _fill(backup, target, institution, written, on_progress)
    check_parts(target.database, Parts(institution.key, blobs))
    return RestoreSummary(len(backup.blobs), ended)


class _WrittenFiles:
    """What was written beside the database, to be taken back if the rest fails."""

    def __init__(self, blobs: BlobStore, settings: Settings) -> None:
        self._blobs, self._path = blobs, settings.identity_path
        self._digests: list[str] = []
        self._has_key = False

    def copy(self, backup: Backup, digest: str) -> None:
        """Copy a blob, unless it is there."""
        if self._blobs.has(digest):
            return
        draft = self._blobs.draft()
        try:
            for piece in backup.folder.pieces(blob_name(digest)):
                draft.write(piece)
            if draft.seal() != digest:
                raise _changed_blob()
            draft.ready()
            self._digests.append(digest)
            draft.keep()
        finally:
            draft.discard()

    def write_key(self, institution: Institution) -> None:
        """Write the analyst's key, unless it is there."""
        if not self._path.exists():
            self._has_key = True
            write_identity(self._path, institution)

    def take_back(self) -> None:
        """Remove what was written; what cannot be removed is named by nothing."""
        for digest in self._digests:
            with suppress(Exception):
                self._blobs.remove(digest)
        if self._has_key:
            self._path.unlink(missing_ok=True)


@contextmanager
def _undone(blobs: BlobStore, target: Target) -> Iterator[_WrittenFiles]:
    """Take back what was written if the transaction did not come to its end."""
    written = _WrittenFiles(blobs, target.settings)
    try:
        yield written
    except BaseException:
        if target.database.revision() is None:
            written.take_back()
        raise


def _fill(
    backup: Backup,
    target: Target,
    institution: Institution,
    written: _WrittenFiles,
    on_progress: OnProgress,
) -> list[OutdatedSession]:
    """Write everything; the database shows it from the end of its transaction on."""
    try:
        with target.database.begin_filling() as connection:
            _check_empty(revision_of(connection))
            migrate(connection, backup.revision)
            load_rows(connection, backup)
            migrate(connection)
            ended = _bring_up(connection, backup, target, institution)
            for number, digest in enumerate(sorted(backup.blobs), 1):
                written.copy(backup, digest)
                on_progress(number, len(backup.blobs))
            written.write_key(institution)
    except BrokenLinks:
        raise BackupFailed(
            "Rows of the backup point to rows that are not in it: it was changed."
        ) from None
    except sa.exc.OperationalError:
        raise  # of the server, and not of what is written
    except sa.exc.StatementError:
        raise BackupFailed(
            "The backup's rows do not fit each other: it was changed."
        ) from None
    return ended


def _bring_up(
    connection: sa.Connection,
    backup: Backup,
    target: Target,
    institution: Institution,
) -> list[OutdatedSession]:
    """Do what belongs to a first start, in the same transaction."""
    with Transaction(connection) as transaction:
        own(transaction, institution.key)
        ended = end_outdated(transaction, target.clock)
        log_when_committed(
            transaction, Act.RESTORED, target.actor, blobs=len(backup.blobs)
        )
        transaction.commit()  # what was given a connection ends with its transaction
    return ended


# Checking


def _check_empty(revision: str | None) -> None:
    if revision is not None:
        raise BackupFailed(
            "There is an analyst here already: restore into an empty database and an "
            "empty data folder."
        )


def _checked_key(backup: Backup, settings: Settings) -> Institution:
    """Return the analyst's key: the backup's own, or the one that was kept apart."""
    here = None
    if settings.identity_path.exists():
        here = read_identity(settings.identity_path)
    if backup.identity is None:
        if here is None:
            raise BackupFailed(
                "The analyst's key is not in the backup: it was kept apart. Put it at "
                f"{settings.identity_path}, or name it by COTERIE_IDENTITY_FILE."
            )
        found = here
    else:
        found = _key_of(backup)
    if backup.signer not in {None, found.key} or (here and here.key != found.key):
        raise BackupFailed(
            f"The analyst's key in {settings.identity_path} is not that of the backup: "
            "there is another analyst here, or COTERIE_IDENTITY_FILE names another's key."
            if here
            else "The analyst's key in the backup is not the one that signed it."
        )
    return found


def _key_of(backup: Backup) -> Institution:
    """Return the analyst's key in a backup."""
    if backup.folder.digest(IDENTITY) != backup.identity:
        raise BackupFailed(
            f"The analyst's key ({IDENTITY}) in the backup was changed: without it "
            "nothing that it signed can be checked."
        )
    with backup.folder.open(IDENTITY) as file:
        try:
            return Institution.read(file.read(_MOST_KEY_BYTES))
        except (Malformed, ValueError):
            raise BackupFailed(
                f"{IDENTITY} of the backup is no analyst's key."
            ) from None


def _check_files(backup: Backup) -> None:
    """Refuse a backup of which something is missing or changed, before it is used."""
    for name in backup.tables:
        for _ in read_rows(backup, name):
            pass
    for digest in backup.blobs:
        if backup.folder.digest(blob_name(digest)) != digest:
            raise _changed_blob()


def _changed_blob() -> BackupFailed:
    return BackupFailed("A blob of the backup is not what its name says.")

"""What a backup says of itself, under the signature of the analyst that made it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analyst_service.backups import BackupFailed
from analyst_service.backups.folder import Folder, NewFolder
from clustering_protocols.common.errors import KeyNotAuthentic
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.secrecy.identities import Institution, Key, check_signature

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.sig"
IDENTITY: Final = "identity.json"
_MOST_BYTES: Final = 1 << 28  # of three million blobs
_SIGNATURE_BYTES: Final = 1 << 10

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
TableName = Annotated[str, Field(pattern=r"^[a-z_]{1,63}$")]
Revision = Annotated[str, Field(pattern=r"^[0-9]{4}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableFile(_Strict):
    """A table's file: its number of rows, and the SHA-256 of its bytes."""

    rows: int = Field(ge=0)
    digest: Digest


class Manifest(_Strict):
    """A backup that its analyst signed.

    coterie: the release that wrote it.
    revision: of the schema.
    key: the analyst's public key.
    identity: SHA-256 of the file with the private key; none where it is kept apart.
    blobs: their digests.
    """

    coterie_backup: Literal[2] = 2
    coterie: str
    revision: Revision
    time: datetime
    key: Key
    identity: Digest | None
    tables: Mapping[TableName, TableFile]
    blobs: tuple[Digest, ...]


class UnsignedManifest(_Strict):
    """What releases before 0.3.0 wrote: nobody signed it.

    blobs: SHA-256 of the digests of all blobs; 0.2.0 does not say it, nor the next.
    identity: SHA-256 of the file with the analyst's key.
    """

    coterie: str
    revision: Revision
    time: datetime
    tables: Mapping[TableName, Digest]
    blobs: Digest | None = None
    identity: Digest | None = None


class Backup:
    """A folder whose manifest was read, and whose signature holds if it has one.

    signer: the public key that signed it; None for what an older release wrote.
    """

    def __init__(self, folder: Folder, said: Manifest | UnsignedManifest) -> None:
        self.folder = folder
        self.revision, self.time, self.release = said.revision, said.time, said.coterie
        if isinstance(said, Manifest):
            self.signer: str | None = said.key
            self.blobs = frozenset(said.blobs)
            self.identity = said.identity
            self.tables = {name: table.digest for name, table in said.tables.items()}
            self.rows = {name: table.rows for name, table in said.tables.items()}
            return
        self.signer, self.rows, self.tables = None, {}, dict(said.tables)
        self.blobs = folder.blobs()
        if said.blobs not in {None, sum_of(self.blobs)}:
            raise BackupFailed(
                f"The backup is not whole: {len(self.blobs)} blobs are there, and these "
                "are not those that its tables name."
            )
        self.identity = said.identity
        if self.identity is None and folder.has(IDENTITY):
            self.identity = folder.digest(IDENTITY)


def sum_of(digests: frozenset[str]) -> str:
    """Return the SHA-256 (hex) of the names of blobs."""
    return sha256("\n".join(sorted(digests)).encode()).hexdigest()


def write_manifest(folder: NewFolder, manifest: Manifest, signer: Institution) -> None:
    """Write and sign what a backup says of itself."""
    content = manifest.model_dump_json(indent=1).encode() + b"\n"
    folder.write(MANIFEST, [content])
    folder.write(SIGNATURE, [signer.sign(_frame_content(content)).encode()])


def read_backup(folder: Folder) -> Backup:
    """Read the manifest of a backup and check its signature.

    Raises BackupFailed if the folder is no backup, or the key that it names did not
        sign it.
    """
    if not folder.has(MANIFEST):
        raise BackupFailed(f"{folder.source} is no backup of an analyst.")
    content = _read(folder, MANIFEST, _MOST_BYTES)
    try:
        if not folder.has(SIGNATURE):
            return Backup(folder, UnsignedManifest.model_validate_json(content))
        signed = Manifest.model_validate_json(content)
    except ValidationError:
        raise BackupFailed(
            f"{MANIFEST} is not what a backup says of itself: a file is missing or was "
            "changed."
        ) from None
    signature = _read(folder, SIGNATURE, _SIGNATURE_BYTES).decode("ascii", "replace")
    try:
        check_signature(signed.key, _frame_content(content), signature)
    except KeyNotAuthentic:
        raise BackupFailed(
            "The backup was changed: its signature is not that of the analyst that it "
            "names."
        ) from None
    return Backup(folder, signed)


def _read(folder: Folder, name: str, most: int) -> bytes:
    with folder.open(name) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise BackupFailed(f"{name} of the backup is larger than any that is written.")
    return content


def _frame_content(content: bytes) -> bytes:
    return length_prefixed("coterie/backup/2", content)

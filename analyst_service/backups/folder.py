"""The files of a backup: written as a whole folder, read without following a link."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple, Self

from analyst_service.backups import BackupFailed
from analyst_service.backups.encryption import Decryption, Encryption, Readable
from analyst_service.blobs.files import FileBlobStore

_PIECE: Final = 1 << 20
_ENCRYPTED: Final = ".age"
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileDigest(NamedTuple):
    """What a file holds: its number of pieces, and the SHA-256 (hex) of all of them."""

    n_pieces: int
    digest: str


class NewFolder:
    """A folder that is filled under another name, and gets its own as a whole.

    encryption: without one files lie as they are.

    Raises BackupFailed if the folder exists.
    """

    def __init__(self, target: Path, encryption: Encryption | None) -> None:
        if target.exists():
            raise BackupFailed(f"{target} exists already: give a new folder.")
        self._target = target
        self._fresh = target.with_name(f".{target.name}.new")
        self._encryption = encryption

    def __enter__(self) -> Self:
        shutil.rmtree(self._fresh, ignore_errors=True)
        self._fresh.mkdir(parents=True, mode=0o700)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._fresh, ignore_errors=True)

    def write(self, name: str, pieces: Iterable[bytes]) -> FileDigest:
        """Write a file, in place of any before, and sync it."""
        source, path = _Pieces(pieces), self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "wb", opener=_own) as file:
            if self._encryption is None:
                shutil.copyfileobj(source, file, _PIECE)
            else:
                self._encryption.write(source, file)
            file.flush()
            os.fsync(file.fileno())
        return FileDigest(source.count, source.digest)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._path(name).unlink()

    def finish(self) -> None:
        """Give the folder its name, with all that was written on the disk."""
        folders = [path for path in self._fresh.rglob("*") if path.is_dir()]
        for folder in (*folders, self._fresh):
            _sync(folder)
        self._fresh.rename(self._target)
        _sync(self._target.parent)

    def _path(self, name: str) -> Path:
        return self._fresh / (name if self._encryption is None else name + _ENCRYPTED)


class Folder:
    """A folder of a backup, as untrusted as anyone who could write to it.

    scratch: a folder of this user alone, for decrypted files: they have no name there,
        so that none is left.
    """

    def __init__(
        self, source: Path, decryption: Decryption | None, scratch: Path
    ) -> None:
        self.source = source
        self._decryption = decryption
        self._scratch = scratch

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of the folder itself.

        Raises BackupFailed if there is none, or a link or something else is in its
            place.
        """
        if self._decryption is None:
            with self._open_file(name) as file:
                yield file
            return
        with (
            TemporaryFile(dir=self._scratch) as plain,
            self._open_file(name + _ENCRYPTED) as file,
        ):
            self._decryption.write(file, plain)
            plain.seek(0)
            yield plain

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file, some at a time."""
        with self.open(name) as file:
            while piece := file.read(_PIECE):
                yield piece

    def digest(self, name: str) -> str:
        """Return the SHA-256 (hex) of a file."""
        digest = sha256()
        for piece in self.pieces(name):
            digest.update(piece)
        return digest.hexdigest()

    def has(self, name: str) -> bool:
        """Return whether something has this name, whatever it is."""
        path = self.source / (name if self._decryption is None else name + _ENCRYPTED)
        return os.path.lexists(path)

    def blobs(self) -> frozenset[str]:
        """Return the digests after which files are named."""
        names = (path.name for path in (self.source / "blobs").glob("??/*"))
        return frozenset(filter(FileBlobStore.is_digest, names))

    @contextmanager
    def _open_file(self, name: str) -> Iterator[IO[bytes]]:
        descriptor = self._descriptor(PurePosixPath(name))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _is_no_file(name)
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def _descriptor(self, name: PurePosixPath) -> int:
        """Open folder by folder, so that none of them is a link."""
        at = os.open(self.source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in name.parts:
            try:
                found = os.open(part, _FLAGS, dir_fd=at)
            except FileNotFoundError:
                raise BackupFailed(f"{name} is missing in the backup.") from None
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}:
                    raise _is_no_file(name) from None
                raise
            finally:
                os.close(at)
            at = found
        return at


class _Pieces(Readable):
    """Pieces in turn as a file to read from, counted and hashed on the way."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = memoryview(b"")
        self._hash = sha256()
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return some of the next bytes, and none at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self.count += 1
            self._hash.update(piece)
            self._left = memoryview(piece)
        end = len(self._left) if size < 0 else size
        some, self._left = bytes(self._left[:end]), self._left[end:]
        return some

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def blob_name(digest: str) -> str:
    """Return the name of a blob's file."""
    return f"blobs/{digest[:2]}/{digest}"


def is_encrypted(source: Path) -> bool:
    """Return whether the files of a folder are in the form of age."""
    return any(source.glob(f"*{_ENCRYPTED}"))


def _own(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_no_file(name: str | PurePosixPath) -> BackupFailed:
    return BackupFailed(f"{name} of the backup is a link or no file: it is not used.")

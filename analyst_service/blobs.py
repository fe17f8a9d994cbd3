"""A store of blobs: files that are named by the SHA-256 digest of their content.

A blob is written to ``tmp``, synced, and moved to its final name by one rename; then
its folder is synced. A new folder is synced into the root before its first use. A crash
thus leaves either a complete blob or a stray file in ``tmp``, which the sweep removes
later.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import secrets
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from typing_extensions import Buffer

from clustering_protocols.common.errors import StorageFull, Unavailable

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MARK: Final = "mark"
_TRIMMED_BYTES: Final = 16 << 20  # the pages of smaller mappings are not dropped
_TRIM_SECONDS: Final = 0.001
# No thread takes longer than this between finding a blob and opening it.
_IN_USE_SECONDS: Final = 60.0

ROW_BYTES: Final = 64 << 10
"""Tasks and contributions smaller than this (bytes) are stored in the database row."""


class FileBlobStore:
    """A store of blobs in a local folder; identical blobs are stored only once.

    Every method of the subclass for object stores may raise :class:`Unavailable`; see
    :mod:`analyst_service.object_store`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tmp = root / "tmp"
        self._tmp.mkdir(parents=True, exist_ok=True)
        self._synced: set[str] = set()

    def create_draft(self) -> FileDraft:
        """Create an empty draft, to which the bytes of a new blob can be written."""
        return FileDraft(self.draft_path(), self)

    def draft_path(self) -> Path:
        """Return an unused path for a new draft."""
        return self._tmp / secrets.token_hex(16)

    def put(self, content: bytes) -> str:
        """Store the content durably and return its digest."""
        return self.create_draft().store_pieces([content])

    def map(self, digest: str) -> Buffer:
        """Map a blob into memory; raise :class:`KeyError` if there is no such blob."""
        try:
            return map_file(self.path(digest))
        except FileNotFoundError:
            raise KeyError(digest) from None

    def read_range(
        self, digest: str, begin: int, size: int, check: str | None
    ) -> Buffer:
        """Return a range of a blob.

        If ``check``, the SHA-256 of the range, is given, an object store fetches only
        the range, and otherwise the whole blob. The fetched bytes are verified by their
        SHA-256. Raises KeyError if there is no such blob, and Unavailable if it is
        shorter than ``begin + size``.
        """
        del check  # a local blob was verified when it was stored
        with suppress(OSError):  # the folder is read-only, or there is no such blob
            os.utime(self.path(digest))  # so that a cache does not evict it soon
        part = memoryview(self.map(digest))[begin : begin + size]
        if len(part) < size:
            raise Unavailable("A blob is shorter than when it was stored.")
        return part

    def path(self, digest: str) -> Path:
        """Return the path of a blob, whether or not the blob exists."""
        if not self.is_digest(digest):
            raise ValueError("not a digest")
        return self._root / digest[:2] / digest

    @staticmethod
    def is_digest(name: str) -> bool:
        """Return whether the name is a SHA-256 digest (64 lower-case hex digits)."""
        return _DIGEST.fullmatch(name) is not None

    def local_file(self, digest: str) -> Path:
        """Return the file of a blob; raise :class:`KeyError` if there is none."""
        if not self.has(digest):
            raise KeyError(digest)
        return self.path(digest)

    def prepare_path(self, digest: str) -> Path:
        """Return the path for a new blob, after creating its folder durably.

        The root is synced even if the folder exists, because the process that created
        the folder may not have synced the root yet.
        """
        path = self.path(digest)
        folder = path.parent
        if folder.name not in self._synced:
            with _translate_disk_errors():
                folder.mkdir(exist_ok=True)
            sync_folder(self._root)
            self._synced.add(folder.name)
        return path

    def has(self, digest: str) -> bool:
        """Return whether the store has a blob."""
        return self.path(digest).exists()

    def has_all(self, digests: Collection[str]) -> bool:
        """Return whether the store has all of these blobs."""
        return all(map(self.has, digests))

    def remove(self, digest: str) -> None:
        """Remove a blob; existing memory maps of it stay readable."""
        self.path(digest).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """Return the number of free bytes on the disk of the blobs."""
        return shutil.disk_usage(self._root).free

    def file_time(self) -> float:
        """Return the POSIX time of the clock that dates the files of the folder."""
        self._tmp.touch()
        return self._tmp.stat().st_mtime

    def find_older_than(self, seconds: float) -> Iterator[str]:
        """Yield the digests of all blobs last written longer ago than ``seconds``."""
        before = self.file_time() - seconds
        for path in self._root.glob("??/*"):
            if _DIGEST.fullmatch(path.name) and _was_modified_before(path, before):
                yield path.name

    def sweep(self, seconds: float, live: Collection[str]) -> None:
        """Remove drafts that a crash left behind, last written ``seconds`` ago.

        The cache of an object store also removes blobs whose digests are not in
        ``live``.
        """
        del live  # used by the subclass for object stores
        before = self.file_time() - seconds
        for stray in self._tmp.iterdir():
            if _was_modified_before(stray, before):
                stray.unlink(missing_ok=True)

    def shrink_to(self, most_bytes: int) -> None:
        """Remove the least recently used blobs until at most ``most_bytes`` remain.

        Blobs used in the last minute stay, because a thread may be about to open them.
        """
        entries, recent = [], self.file_time() - _IN_USE_SECONDS
        for path in self._root.glob("??/*"):
            with suppress(FileNotFoundError):
                entries.append((path.stat().st_mtime, path.stat().st_size, path))
        total = sum(size for _, size, _ in entries)
        for last_used, size, path in sorted(entries):
            if total <= most_bytes or last_used > recent:
                return
            path.unlink(missing_ok=True)
            total -= size

    def read_mark(self) -> str | None:
        """Return the mark that the database gave to this store, or None if it has none."""
        try:
            return (self._root / _MARK).read_text()
        except FileNotFoundError:
            return None

    def write_mark(self, name: str) -> None:
        """Write the mark of the store atomically, by a rename."""
        draft = self.create_draft()
        try:
            draft.write(name.encode())
            draft.seal()
            draft.path.replace(self._root / _MARK)
            sync_folder(self._root)
        finally:
            draft.discard()

    def check_writable(self) -> None:
        """Raise :class:`StorageFull` or OSError unless the folder can be written."""
        self.create_draft().discard()


class WrongDigest(Exception):
    """Raised if content does not match the digest under which it was to be stored."""


class FileDraft:
    """A file under ``tmp`` that becomes a blob when :meth:`store_as_blob` is called."""

    def __init__(self, path: Path, store: FileBlobStore) -> None:
        self.path = path
        self._store = store
        self._hash = sha256()
        with _translate_disk_errors():
            self._file = path.open("xb")
        self.is_stored = False
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Append a piece of the content to the draft."""
        with _translate_disk_errors():
            self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def seal(self) -> str:
        """Sync and close the file, and return the digest of its content."""
        with _translate_disk_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        return self.digest

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the bytes written so far."""
        return self._hash.hexdigest()

    def map(self) -> Buffer:
        """Return the sealed content without copying it."""
        return map_file(self.path)

    def prepare_to_store(self) -> None:
        """Do the slow part of :meth:`store_as_blob`, before a transaction begins.

        A local file needs no preparation, because :meth:`seal` has already synced it.
        """

    def store_as_blob(self) -> None:
        """Turn the sealed draft into a durable blob. Further calls have no effect."""
        if self.is_stored:
            return
        target = self._store.prepare_path(self.digest)
        self.path.replace(target)
        sync_folder(target.parent)
        self.is_stored = True

    def store_pieces(self, pieces: Iterable[bytes], expected: str | None = None) -> str:
        """Write the pieces, turn the draft into a durable blob, and return its digest.

        Raises WrongDigest, and stores nothing, if the digest is not the expected one.
        """
        try:
            for piece in pieces:
                self.write(piece)
            digest = self.seal()
            if expected not in {None, digest}:
                raise WrongDigest(expected)
            self.prepare_to_store()
            self.store_as_blob()
        finally:
            self.discard()
        return digest

    def discard(self) -> None:
        """Close and remove the draft, unless it has become a blob."""
        if self.is_stored:
            return
        with suppress(OSError):  # closing flushes, which fails on a full disk
            self._file.close()
        self.path.unlink(missing_ok=True)


def map_file(path: Path) -> Buffer:
    """Map a file into memory. An empty file cannot be mapped, so its bytes are returned."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _was_modified_before(path: Path, before: float) -> bool:
    try:
        return path.stat().st_mtime < before
    except FileNotFoundError:  # it was removed or renamed meanwhile
        return False


@contextmanager
def _translate_disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(
                "The analyst's machine has no room left in its data folder, "
                f"COTERIE_DATA_DIR ({errno.errorcode[error.errno]})."
            ) from None
        raise


def write_synced(path: Path, pieces: Iterable[bytes]) -> None:
    """Write the pieces to a file and sync it to disk."""
    with path.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that new names in it survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def trim_pages(mapping: Buffer) -> Iterator[None]:
    """Drop the mapping's pages from memory every millisecond while the block runs.

    Pages that have been read count towards the memory limit of this process. A dropped
    page is read from the file again when it is needed.
    """
    if not isinstance(mapping, mmap.mmap) or len(mapping) < _TRIMMED_BYTES:
        yield
        return
    done = threading.Event()
    trimmer = threading.Thread(target=_trim_until, args=(mapping, done), name="trimmer")
    trimmer.start()
    try:
        yield
    finally:
        done.set()
        trimmer.join()


def _trim_until(mapping: mmap.mmap, done: threading.Event) -> None:
    while not done.wait(_TRIM_SECONDS):
        mapping.madvise(mmap.MADV_DONTNEED)
    mapping.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobLocation:
    """The location of a blob store, which several processes may open.

    folder: the folder of the files, or of the cache in front of an object store.
    url: the address of the object store; empty if blobs are only stored as files.
    cache_bytes: the size to which a sweep shrinks the cache.
    """

    folder: Path
    url: str = ""
    cache_bytes: int = 0

    def open(self) -> FileBlobStore:
        """Open the store; raise :class:`Unavailable` if its address is not valid."""
        if not self.url:
            return FileBlobStore(self.folder)
        from analyst_service.object_store import ObjectBlobStore, open_objects

        return ObjectBlobStore(open_objects(self.url), self.folder, self.cache_bytes)

"""Blobs as files named by their digest.

A file gets its name by one rename, after its bytes are synced; then its folder is synced,
and a new folder is synced into the root before its first use. So a crash leaves either
the whole blob or a stray file in ``tmp``, which the sweep removes once it is old.
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
_TRIMMED_BYTES: Final = 16 << 20  # from this size on a mapping is trimmed
_TRIM_SECONDS: Final = 0.001
# no thread takes longer from finding a blob to opening it
_IN_USE_SECONDS: Final = 60.0

ROW_BYTES: Final = 64 << 10
"""A task or a contribution below this size is stored in its row instead of a blob."""


class FileBlobStore:
    """Blobs in a folder of a local file system; equal bytes are stored once.

    With an object store (:mod:`analyst_service.object_store`) every method may raise
    :class:`Unavailable`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tmp = root / "tmp"
        self._tmp.mkdir(parents=True, exist_ok=True)
        self._synced: set[str] = set()

    def draft(self) -> FileDraft:
        """Begin to receive bytes."""
        return FileDraft(self.draft_path(), self)

    def draft_path(self) -> Path:
        """Return the path of a new draft."""
        return self._tmp / secrets.token_hex(16)

    def put(self, content: bytes) -> str:
        """Store bytes durably, and return their digest."""
        return self.draft().keep_pieces([content])

    def map(self, digest: str) -> Buffer:
        """Return a blob without copying it; raise :class:`KeyError` if there is none."""
        try:
            return map_file(self.path(digest))
        except FileNotFoundError:
            raise KeyError(digest) from None

    def part(self, digest: str, begin: int, size: int, check: str | None) -> Buffer:
        """Return a range of a blob; an object store fetches only that range.

        ``check`` is the SHA-256 of the range; without it the whole blob is fetched and
        checked against its own digest. Raises :class:`KeyError` if there is no such blob,
        :class:`Unavailable` if it ends before the range does.
        """
        del check  # a local blob was checked against its digest when it arrived
        with suppress(OSError):  # a read-only folder, or no such blob
            os.utime(self.path(digest))  # a cache evicts the least recently used
        part = memoryview(self.map(digest))[begin : begin + size]
        if len(part) < size:
            raise Unavailable("A blob is shorter than when it was stored.")
        return part

    def path(self, digest: str) -> Path:
        """Return the path of a blob, whether or not it exists."""
        if not self.is_digest(digest):
            raise ValueError("not a digest")
        return self._root / digest[:2] / digest

    @staticmethod
    def is_digest(name: str) -> bool:
        """Return whether a blob may have this name."""
        return _DIGEST.fullmatch(name) is not None

    def file(self, digest: str) -> Path:
        """Return a local file that holds a blob; raise KeyError if there is none."""
        if not self.has(digest):
            raise KeyError(digest)
        return self.path(digest)

    def place(self, digest: str) -> Path:
        """Return the path of a blob, after making and syncing its folder.

        A folder that exists is synced too: its maker may not have synced it yet.
        """
        path = self.path(digest)
        folder = path.parent
        if folder.name not in self._synced:
            with _explain_full_disk():
                folder.mkdir(exist_ok=True)
            sync_folder(self._root)
            self._synced.add(folder.name)
        return path

    def has(self, digest: str) -> bool:
        """Return whether the store has a blob."""
        return self.path(digest).exists()

    def has_all(self, digests: Collection[str]) -> bool:
        """Return whether the store has all these blobs."""
        return all(map(self.has, digests))

    def remove(self, digest: str) -> None:
        """Remove a blob; existing mappings of it stay readable."""
        self.path(digest).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """Return the free bytes of the disk that holds the blobs."""
        return shutil.disk_usage(self._root).free

    def older_than(self, before: float) -> Iterator[str]:
        """Yield the digests of blobs that were last written before a time (POSIX)."""
        for path in self._root.glob("??/*"):
            if _DIGEST.fullmatch(path.name) and _is_older(path, before):
                yield path.name

    def sweep(self, before: float, live: Collection[str]) -> None:
        """Remove old drafts, which a crash left; a cache also drops blobs not ``live``."""
        del live  # for the subclass
        for stray in self._tmp.iterdir():
            if _is_older(stray, before):
                stray.unlink(missing_ok=True)

    def shrink(self, most_bytes: int) -> None:
        """Remove the least recently used blobs until at most ``most_bytes`` remain.

        Blobs of the last minute stay, because a thread may be about to open them.
        """
        self._tmp.touch()  # sets its time by the file system's clock
        entries, recent = [], self._tmp.stat().st_mtime - _IN_USE_SECONDS
        for path in self._root.glob("??/*"):
            with suppress(FileNotFoundError):
                entries.append((path.stat().st_mtime, path.stat().st_size, path))
        total = sum(size for _, size, _ in entries)
        for last_used, size, path in sorted(entries):
            if total <= most_bytes or last_used > recent:
                return
            path.unlink(missing_ok=True)
            total -= size

    def mark(self) -> str | None:
        """Return the name that the database gave to this store, or None."""
        try:
            return (self._root / _MARK).read_text()
        except FileNotFoundError:
            return None

    def set_mark(self, name: str) -> None:
        """Write the mark, by one rename."""
        draft = self.draft()
        try:
            draft.write(name.encode())
            draft.seal()
            draft.path.replace(self._root / _MARK)
            sync_folder(self._root)
        finally:
            draft.discard()

    def check(self) -> None:
        """Raise :class:`StorageFull` or OSError if the folder cannot be written."""
        self.draft().discard()


class WrongDigest(Exception):
    """Bytes do not match the digest under which they were to be stored."""


class FileDraft:
    """A file under ``tmp`` that :meth:`keep` makes a blob."""

    def __init__(self, path: Path, store: FileBlobStore) -> None:
        self.path = path
        self._store = store
        self._hash = sha256()
        self._file = path.open("xb")
        self.is_kept = False
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Append a piece."""
        with _explain_full_disk():
            self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def seal(self) -> str:
        """Sync and return the digest."""
        with _explain_full_disk():
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        return self.digest

    @property
    def digest(self) -> str:
        """Return the SHA-256 (hex) of the bytes so far."""
        return self._hash.hexdigest()

    def map(self) -> Buffer:
        """Return the sealed bytes without copying them."""
        return map_file(self.path)

    def prepare(self) -> None:
        """Do the slow part of :meth:`keep` before a transaction begins.

        For a local file this does nothing: :meth:`seal` has synced its bytes.
        """

    def keep(self) -> None:
        """Make the sealed bytes a durable blob; may be repeated."""
        if self.is_kept:
            return
        target = self._store.place(self.digest)
        self.path.replace(target)
        sync_folder(target.parent)
        self.is_kept = True

    def keep_pieces(self, pieces: Iterable[bytes], expected: str | None = None) -> str:
        """Make pieces a durable blob, and return its digest.

        Raises WrongDigest if the digest is not the expected one; nothing is stored then.
        """
        try:
            for piece in pieces:
                self.write(piece)
            digest = self.seal()
            if expected not in {None, digest}:
                raise WrongDigest(expected)
            self.prepare()
            self.keep()
        finally:
            self.discard()
        return digest

    def discard(self) -> None:
        """Close and remove the draft, unless it became a blob."""
        if self.is_kept:
            return
        with suppress(OSError):  # closing flushes, and fails on a full disk
            self._file.close()
        self.path.unlink(missing_ok=True)


def map_file(path: Path) -> Buffer:
    """Map a file into memory; an empty file, which cannot be mapped, is read instead."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _is_older(path: Path, before: float) -> bool:
    try:
        return path.stat().st_mtime < before
    except FileNotFoundError:  # it was just removed, or kept
        return False


@contextmanager
def _explain_full_disk() -> Iterator[None]:
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
    """Write a file durably."""
    with path.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def trim_pages(mapping: Buffer) -> Iterator[None]:
    """Drop a mapping's pages every millisecond while it is read.

    Pages that were read count towards the memory limit of this process.
    Dropped pages are read from the file again when they are needed.
    """
    if not isinstance(mapping, mmap.mmap) or len(mapping) < _TRIMMED_BYTES:
        yield
        return
    done = threading.Event()
    trimmer = threading.Thread(target=_trim, args=(mapping, done), name="trimmer")
    trimmer.start()
    try:
        yield
    finally:
        done.set()
        trimmer.join()


def _trim(mapping: mmap.mmap, done: threading.Event) -> None:
    while not done.wait(_TRIM_SECONDS):
        mapping.madvise(mmap.MADV_DONTNEED)
    mapping.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobPlace:
    """The place of a store of blobs; several processes may open the same store.

    folder: holds the files, or the cache in front of an object store.
    url: the address of the object store; empty for files alone.
    cache_bytes: the size to which a sweep shrinks the cache.
    """

    folder: Path
    url: str = ""
    cache_bytes: int = 0

    def open(self) -> FileBlobStore:
        """Return the store; raise :class:`Unavailable` if the address is not valid."""
        if not self.url:
            return FileBlobStore(self.folder)
        from analyst_service.object_store import ObjectBlobStore, open_objects

        return ObjectBlobStore(open_objects(self.url), self.folder, self.cache_bytes)

"""Blobs in an object store, with a folder as the cache in front of it.

The store only has to write an object whole or not at all, and to read, list and delete
objects. Every object is checked against its digest when it arrives here, and the database
decides between concurrent writers. A blob is in the store before a row names it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import Buffer

from analyst_service.blobs import FileBlobStore, FileDraft, WrongDigest
from analyst_service.secret_files import credential_files, read_secret
from clustering_protocols.common.errors import StorageFull, Unavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore

log = logging.getLogger(__name__)

_PIECE: Final = 4 << 20
_PARTS_ABOVE: Final = 64 << 20
# Errors also quote addresses, digests and times, so a bare number would match too much.
_FULL: Final = ("quotaexceeded", "insufficientstorage", "code: 507", "no space left")
_PROBE: Final = "probe"
_MARK: Final = "mark"
_SHRINKS: Final = 8  # the cache is shrunk when fetched parts add an eighth of its size
_LOOKUPS: Final = 16  # most lookups at the same time
_CLIENT: Final = {"connect_timeout": "5s", "timeout": "120s"}
_RETRIES: Final = {"max_retries": 4}


def open_objects(url: str) -> ObjectStore:
    """Return the store at an address: ``s3://bucket/prefix``, ``file:///folder``, ….

    Keys, region and endpoint come from the environment variables of the store's own tools
    (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, …), credentials also from files
    (``AWS_ACCESS_KEY_ID_FILE``, …).

    Raises Unavailable if the address is not valid, or no store is there.
    """
    from obstore.store import from_url

    options: dict[str, Any] = {}
    if not url.startswith(("file:", "memory:")):
        # read here, because client options replace the environment
        is_plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"true", "1"}
        client = {**_CLIENT, "allow_http": is_plain}
        options = {"client_options": client, "retry_config": dict(_RETRIES)}
        options |= _credentials()
    try:
        return from_url(url, **options)
    except Exception as error:
        raise Unavailable(
            "COTERIE_BLOB_STORE is not the address of a usable object store."
        ) from error


def _credentials() -> dict[str, str]:
    """Return credentials from files; raise :class:`Unavailable` if one cannot be read."""
    try:
        return {
            variable.removesuffix("_FILE").lower(): read_secret(variable, path)
            for variable, path in credential_files(os.environ)
        }
    except ValueError as error:
        raise Unavailable(f"{error}.") from None


class ObjectBlobStore(FileBlobStore):
    """Blobs in an object store, cached in a folder as long as there is room.

    cache_bytes: the size to which a sweep shrinks the cache.
    """

    def __init__(self, objects: ObjectStore, cache: Path, cache_bytes: int) -> None:
        super().__init__(cache)
        self._objects = objects
        self._cache_bytes = cache_bytes
        self._fetched = 0

    def draft(self) -> ObjectDraft:
        """Begin to receive bytes."""
        return ObjectDraft(self.draft_path(), self)

    def map(self, digest: str) -> Buffer:
        """Return a blob without copying it."""
        self.file(digest)
        return super().map(digest)

    def part(self, digest: str, begin: int, size: int, check: str | None) -> Buffer:
        """Return a range of a blob, which is cached under its own digest."""
        if check is None or super().has(digest):
            self.file(digest)
            return super().part(digest, begin, size, None)
        if not super().has(check):
            self._fetch_part(digest, begin, size, check)
        return super().map(check)

    def file(self, digest: str) -> Path:
        """Return the cached file of a blob, which is fetched if necessary."""
        path = self.path(digest)
        with suppress(FileNotFoundError):
            os.utime(path)  # the cache evicts the least recently used
            return path
        self._cache(self._pieces(digest), digest)
        return path

    def has(self, digest: str) -> bool:
        """Return whether the store itself, not only the cache, has a blob."""
        import obstore

        try:
            with _translate_errors():
                obstore.head(self._objects, _key(digest))
        except KeyError:
            return False
        return True

    def has_all(self, digests: Collection[str]) -> bool:
        """Return whether the store has all these blobs; looked up in parallel."""
        return all(self._lookups.map(self.has, digests))

    @cached_property
    def _lookups(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_LOOKUPS)

    def remove(self, digest: str) -> None:
        """Remove a blob from the store and from this cache."""
        import obstore

        with suppress(KeyError), _translate_errors():
            obstore.delete(self._objects, _key(digest))
        super().remove(digest)

    def older_than(self, before: float) -> Iterator[str]:
        """Yield the digests of blobs that were last written before a time (POSIX)."""
        import obstore

        with _translate_errors():
            for objects in obstore.list(self._objects):
                for meta in objects:
                    name = str(meta["path"]).rpartition("/")[2]
                    is_old = meta["last_modified"].timestamp() < before
                    if self.is_digest(name) and is_old:
                        yield name

    def sweep(self, before: float, live: Collection[str]) -> None:
        """Remove old drafts, copies not ``live``, and copies used least recently."""
        super().sweep(before, live)
        for digest in super().older_than(before):
            if digest not in live:
                super().remove(digest)
        self.shrink(self._cache_bytes)

    def mark(self) -> str | None:
        """Return the store's mark; the cache has none."""
        import obstore

        try:
            with _translate_errors():
                return bytes(obstore.get(self._objects, _MARK).bytes()).decode()
        except KeyError:
            return None

    def set_mark(self, name: str) -> None:
        """Write the store's mark."""
        import obstore

        with _translate_errors():
            obstore.put(self._objects, _MARK, name.encode(), use_multipart=False)

    def check(self) -> None:
        """Raise :class:`Unavailable` unless store and cache can be written."""
        import obstore

        super().check()
        with _translate_errors():
            obstore.put(self._objects, _PROBE, b"", use_multipart=False)

    def upload(self, digest: str, path: Path) -> None:
        """Write a cached file into the store, whole or not at all."""
        import obstore

        in_parts = path.stat().st_size > _PARTS_ABOVE
        with _translate_errors():
            obstore.put(
                self._objects,
                _key(digest),
                path if in_parts else path.read_bytes(),
                use_multipart=in_parts,
            )

    def _pieces(self, digest: str) -> Iterator[bytes]:
        import obstore

        with _translate_errors():
            blob = obstore.get(self._objects, _key(digest))
            for piece in blob.stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def _fetch_part(self, digest: str, begin: int, size: int, check: str) -> None:
        """Bring a range of a blob into the cache, if it matches its digest."""
        import obstore

        with _translate_errors():
            part = obstore.get_range(
                self._objects, _key(digest), start=begin, length=size
            )
        self._cache([bytes(part)], check)
        self._fetched += size
        if self._fetched > self._cache_bytes // _SHRINKS:
            self.shrink(self._cache_bytes)
            self._fetched = 0

    def _cache(self, pieces: Iterable[bytes], digest: str) -> None:
        """Store bytes in the cache, if they match a digest."""
        try:
            super().draft().keep_pieces(pieces, digest)
        except WrongDigest:
            log.error("object store: an object does not match its digest")  # noqa: TRY400  no traceback: the text suffices
            raise Unavailable("A blob does not match its digest.") from None


class ObjectDraft(FileDraft):
    """A draft in the cache; keeping it makes an object, and its cached copy."""

    _store: ObjectBlobStore

    def prepare(self) -> None:
        """Write the object."""
        self._store.upload(self.digest, self.path)

    def keep(self) -> None:
        """Move the file into the cache; upload it again if a sweep removed the object."""
        if not self.is_kept and not self._store.has(self.digest):
            self.prepare()
        super().keep()


def _key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Replace the store's exceptions, whose text may hold addresses, by our own."""
    from obstore.exceptions import (
        BaseError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    try:
        yield
    except FileNotFoundError as error:
        raise KeyError("there is no such object") from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        if _is_full(error):
            raise StorageFull("The analyst's object store has no room left.") from None
        log.error("object store: credentials are refused")  # noqa: TRY400  its text may hold addresses
        raise Unavailable("The object store refuses this analyst.") from None
    except (BaseError, OSError) as error:
        if _is_full(error):
            raise StorageFull("The analyst's object store has no room left.") from None
        log.error("object store: %s", type(error).__name__)  # noqa: TRY400  its text may hold addresses
        raise Unavailable("The object store does not answer.") from None


def _is_full(error: BaseException) -> bool:
    text = str(error).lower().replace(" ", "")
    return any(part.replace(" ", "") in text for part in _FULL)

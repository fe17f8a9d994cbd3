"""Blobs in an object store, with a local folder as a cache in front of it.

The object store only has to write objects completely or not at all, and to read, list
and delete them. Each object is verified against its digest when this process has
fetched it. The database arbitrates between writers. A blob is written before any row
refers to it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, from_url
from typing_extensions import Buffer

from analyst_service.blobs import FileBlobStore, FileDraft, WrongDigest
from analyst_service.secret_files import CREDENTIAL_FILES, read_secret
from clustering_protocols.common.errors import StorageFull, Unavailable

log = logging.getLogger(__name__)

_PIECE: Final = 4 << 20
_PARTS_ABOVE: Final = 64 << 20
# Not just the number 507, which addresses, digests and times in an error may contain.
_FULL: Final = ("quotaexceeded", "insufficientstorage", "code: 507", "no space left")
_NO_BUCKET: Final = ("nosuchbucket", "containernotfound")
_PROBE: Final = "probe"
_MARK: Final = "mark"
_SHRINKS: Final = 8  # the cache is shrunk after an eighth of its size has been fetched
_LOOKUPS: Final = 16  # maximum number of simultaneous lookups
_CLIENT: Final = {"connect_timeout": "5s", "timeout": "120s"}
_RETRIES: Final = {"max_retries": 4}


def open_objects(url: str) -> ObjectStore:
    """Return the object store at an address, such as ``s3://bucket/prefix``.

    Keys, region and endpoint come from the environment variables that the store's own
    tools use (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, …). Credentials may also
    come from files (``AWS_ACCESS_KEY_ID_FILE``, …).

    Raises Unavailable if the address is not that of a usable store.
    """
    options: dict[str, Any] = {}
    if not url.startswith(("file:", "memory:")):
        # Client options replace the environment variable, so it is read here.
        is_plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"true", "1"}
        client = {**_CLIENT, "allow_http": is_plain}
        options = {"client_options": client, "retry_config": dict(_RETRIES)}
        options |= _read_credentials()
    try:
        return from_url(url, **options)
    except Exception as error:
        raise Unavailable(
            "COTERIE_BLOB_STORE is not the address of a usable object store."
        ) from error


def _read_credentials() -> dict[str, str]:
    """Read credentials from files; raise :class:`Unavailable` if one cannot be read."""
    try:
        return {
            variable.removesuffix("_FILE").lower(): read_secret(variable, Path(path))
            for variable in CREDENTIAL_FILES
            if (path := os.environ.get(variable))
        }
    except ValueError as error:
        raise Unavailable(f"{error}.") from None


class ObjectBlobStore(FileBlobStore):
    """A blob store in an object store, with a cache in a local folder.

    cache_bytes: the size to which a sweep shrinks the cache.
    """

    def __init__(self, objects: ObjectStore, cache: Path, cache_bytes: int) -> None:
        super().__init__(cache)
        self._objects = objects
        self._cache_bytes = cache_bytes
        self._fetched = 0
        self._lookups = ThreadPoolExecutor(_LOOKUPS)

    def create_draft(self) -> ObjectDraft:
        """Create an empty draft in the cache."""
        return ObjectDraft(self.draft_path(), self)

    def map(self, digest: str) -> Buffer:
        """Return the content of a blob, which is fetched unless it is cached."""
        self.local_file(digest)
        return super().map(digest)

    def read_range(
        self, digest: str, begin: int, size: int, check: str | None
    ) -> Buffer:
        """Return a range of a blob, which is cached under the digest of the range."""
        if check is None or super().has(digest):
            self.local_file(digest)
            return super().read_range(digest, begin, size, None)
        if not super().has(check):
            self._fetch_range(digest, begin, size, check)
        return super().map(check)

    def local_file(self, digest: str) -> Path:
        """Return the path of a blob's cached copy, and fetch the blob first if needed."""
        path = self.path(digest)
        with suppress(FileNotFoundError):
            os.utime(path)  # so that it is not evicted soon
            return path
        self._store_in_cache(self._stream_object(digest), digest)
        return path

    def has(self, digest: str) -> bool:
        """Return whether the object store itself, not just the cache, has a blob."""
        try:
            with _translate_errors():
                obstore.head(self._objects, _object_key(digest))
        except KeyError:
            return False
        return True

    def has_all(self, digests: Collection[str]) -> bool:
        """Return whether the object store has all of these blobs, asking in parallel."""
        return all(self._lookups.map(self.has, digests))

    def remove(self, digest: str) -> None:
        """Remove a blob from the object store and from the cache."""
        with suppress(KeyError), _translate_errors():
            obstore.delete(self._objects, _object_key(digest))
        super().remove(digest)

    def find_older_than(self, seconds: float) -> Iterator[str]:
        """Yield the digests of all blobs last written longer ago than ``seconds``.

        A full object store cannot store a new probe, so the time of the earlier probe
        is used. If there is none, no blob is old.
        """
        with suppress(StorageFull), _translate_errors():
            obstore.put(self._objects, _PROBE, b"", use_multipart=False)
        try:
            with _translate_errors():
                now = obstore.head(self._objects, _PROBE)["last_modified"]
        except KeyError:
            return
        with _translate_errors():
            before = now.timestamp() - seconds  # by the clock of the object store
            for objects in obstore.list(self._objects):
                for meta in objects:
                    name = str(meta["path"]).rpartition("/")[2]
                    is_old = meta["last_modified"].timestamp() < before
                    if self.is_digest(name) and is_old:
                        yield name

    def sweep(self, seconds: float, live: Collection[str]) -> None:
        """Remove old drafts and cached blobs that are not ``live``; shrink the cache."""
        super().sweep(seconds, live)
        for digest in super().find_older_than(seconds):
            if digest not in live:
                super().remove(digest)
        self.shrink_to(self._cache_bytes)

    def read_mark(self) -> str | None:
        """Return the mark of the object store, or None; the cache has no mark."""
        try:
            with _translate_errors():
                return bytes(obstore.get(self._objects, _MARK).bytes()).decode()
        except KeyError:
            return None

    def write_mark(self, name: str) -> None:
        """Write the mark of the object store."""
        with _translate_errors():
            obstore.put(self._objects, _MARK, name.encode(), use_multipart=False)

    def check_writable(self) -> None:
        """Raise unless both the object store and the cache are writable."""
        super().check_writable()
        with _translate_errors():
            obstore.put(self._objects, _PROBE, b"", use_multipart=False)

    def upload(self, digest: str, path: Path) -> None:
        """Write a local file to the object store, completely or not at all."""
        in_parts = path.stat().st_size > _PARTS_ABOVE
        with _translate_errors():
            obstore.put(
                self._objects,
                _object_key(digest),
                path if in_parts else path.read_bytes(),
                use_multipart=in_parts,
            )

    def _stream_object(self, digest: str) -> Iterator[bytes]:
        with _translate_errors():
            blob = obstore.get(self._objects, _object_key(digest))
            for piece in blob.stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def _fetch_range(self, digest: str, begin: int, size: int, check: str) -> None:
        """Fetch a range of a blob into the cache, after verifying its digest."""
        with _translate_errors():
            part = obstore.get_range(
                self._objects, _object_key(digest), start=begin, length=size
            )
        self._store_in_cache([bytes(part)], check)
        self._fetched += size
        if self._fetched > self._cache_bytes // _SHRINKS:
            self.shrink_to(self._cache_bytes)
            self._fetched = 0

    def _store_in_cache(self, pieces: Iterable[bytes], digest: str) -> None:
        try:
            super().create_draft().store_pieces(pieces, digest)
        except WrongDigest:
            log.error("object store: an object does not match its digest")  # noqa: TRY400  no traceback: the text suffices
            raise Unavailable("A blob does not match its digest.") from None


class ObjectDraft(FileDraft):
    """A draft in the cache, which becomes an object and its cached copy."""

    _store: ObjectBlobStore

    def prepare_to_store(self) -> None:
        """Upload the content to the object store."""
        self._store.upload(self.digest, self.path)

    def store_as_blob(self) -> None:
        """Move the draft into the cache; upload it again if a sweep removed the object."""
        if not self.is_stored and not self._store.has(self.digest):
            self.prepare_to_store()
        super().store_as_blob()


def _object_key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Replace the exceptions of the object store, whose messages may contain addresses."""
    try:
        yield
    except (BaseError, OSError) as error:
        if _contains_code(error, _NO_BUCKET):
            log.error("object store: the bucket does not exist")  # noqa: TRY400  its text may hold addresses
            raise Unavailable(
                "The bucket of the object store does not exist: correct "
                "COTERIE_BLOB_STORE."
            ) from None
        if isinstance(error, FileNotFoundError):
            raise KeyError("there is no such object") from error
        if _contains_code(error, _FULL):
            raise StorageFull("The analyst's object store has no room left.") from None
        if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
            log.error("object store: credentials are refused")  # noqa: TRY400  its text may hold addresses
            raise Unavailable("The object store refuses this analyst.") from None
        log.error("object store: %s", type(error).__name__)  # noqa: TRY400  its text may hold addresses
        raise Unavailable("The object store does not answer.") from None


def _contains_code(error: BaseException, codes: Iterable[str]) -> bool:
    text = str(error).lower().replace(" ", "")
    return any(code.replace(" ", "") in text for code in codes)

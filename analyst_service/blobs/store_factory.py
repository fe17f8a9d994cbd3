"""Which store an analyst uses: files, or an object store with files in front."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analyst_service.blobs import BlobStore
from analyst_service.blobs.files import FileBlobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobPlace:
    """Where blobs lie; it may go to another process, which opens the same.

    folder: of the files, or of the cache.
    url: of the object store; empty for files alone.
    cache_bytes: how much of the cache stays.
    """

    folder: Path
    url: str = ""
    cache_bytes: int = 0

    def open(self) -> BlobStore:
        """Return the store; :class:`Unavailable` if the address is none."""
        files = FileBlobStore(self.folder)
        if not self.url:
            return files
        from analyst_service.blobs.objects import ObjectBlobStore, open_objects

        return ObjectBlobStore(open_objects(self.url), files, self.cache_bytes)

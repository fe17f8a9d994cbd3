"""Where arrays lie: bytes by their SHA-256."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Protocol

from typing_extensions import Buffer


class BlobDraft(Protocol):
    """Bytes that are arriving and do not count yet."""

    @property
    def size(self) -> int:
        """Return how many bytes have arrived."""
        ...

    def write(self, piece: bytes) -> None:
        """Append a piece; :class:`StorageFull` where there is no room."""
        ...

    def seal(self) -> str:
        """Sync what arrived and return its digest; nothing can be appended now."""
        ...

    def map(self) -> Buffer:
        """Return the sealed bytes without copying them."""
        ...

    def ready(self) -> None:
        """Bring sealed bytes to where they will lie, as far as that takes long.

        Apart from :meth:`keep`, which others may be waiting for.
        """
        ...

    def keep(self) -> None:
        """Make the sealed bytes a blob. Durable when it returns; may be repeated."""
        ...

    def discard(self) -> None:
        """Forget what arrived; harmless after :meth:`keep`."""
        ...


class BlobStore(Protocol):
    """Bytes by digest; equal bytes are kept once.

    Where the bytes lie elsewhere, every method may raise :class:`Unavailable`.
    """

    def draft(self) -> BlobDraft:
        """Begin to receive bytes."""
        ...

    def put(self, content: bytes) -> str:
        """Store bytes and return their digest. Durable when it returns."""
        ...

    def map(self, digest: str) -> Buffer:
        """Return a blob without copying it; :class:`KeyError` if there is none."""
        ...

    def part(self, digest: str, begin: int, size: int, check: str | None) -> Buffer:
        """Return some bytes of a blob, without the others where they lie elsewhere.

        ``check`` is their SHA-256: without it they are had with the whole blob alone,
        and held against its digest. :class:`KeyError` if there is no such blob,
        :class:`Unavailable` if it ends before them.
        """
        ...

    def file(self, digest: str) -> Path:
        """Return a file of this machine that holds a blob; :class:`KeyError` if none."""
        ...

    def has(self, digest: str) -> bool:
        """Return whether there is such a blob, for all who share the store."""
        ...

    def have(self, digests: Collection[str]) -> bool:
        """Return whether there are all these blobs, for all who share the store."""
        ...

    def remove(self, digest: str) -> None:
        """Remove a blob; who has mapped it may read on."""
        ...

    def older(self, before: float) -> Iterator[str]:
        """Yield the digests of blobs that were last written before a time (POSIX)."""
        ...

    def sweep(self, before: float, live: Collection[str]) -> None:
        """Remove what a crash left before a time, and copies of blobs nobody names."""
        ...

    def free_bytes(self) -> int:
        """Return how much room is left on this machine."""
        ...

    def mark(self) -> str | None:
        """Return the name that the store was given; None if it has none."""
        ...

    def set_mark(self, name: str) -> None:
        """Give the store a name, in place of any before. Durable when it returns."""
        ...

    def check(self) -> None:
        """Raise :class:`Unavailable` unless blobs can be written and read now."""
        ...

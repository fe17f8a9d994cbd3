"""Where arrays lie: bytes by their SHA-256."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import Buffer


class Draft(Protocol):
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

    def keep(self) -> None:
        """Make the sealed bytes a blob. Durable when it returns; may be repeated."""
        ...

    def discard(self) -> None:
        """Forget what arrived; harmless after :meth:`keep`."""
        ...


class BlobStore(Protocol):
    """Bytes by digest; equal bytes are kept once."""

    def draft(self) -> Draft:
        """Begin to receive bytes."""
        ...

    def put(self, content: bytes) -> str:
        """Store bytes and return their digest. Durable when it returns."""
        ...

    def map(self, digest: str) -> Buffer:
        """Return a blob without copying it; :class:`KeyError` if there is none."""
        ...

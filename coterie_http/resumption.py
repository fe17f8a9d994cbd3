"""One large contribution in pieces, after the draft on resumable uploads for HTTP.

Names and forms are those of draft-ietf-httpbis-resumable-upload; fields are structured
(RFC 9651), digests those of RFC 9530.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

MEDIA_TYPE: Final = "application/partial-upload"
OFFSET: Final = "Upload-Offset"
COMPLETE: Final = "Upload-Complete"
LENGTH: Final = "Upload-Length"
LIMIT: Final = "Upload-Limit"
WHOLE_DIGEST: Final = "Repr-Digest"
PIECE_DIGEST: Final = "Content-Digest"
MAX_PIECES: Final = 4096
"""How many pieces an upload has at most: what is smaller than that is refused."""

_DIGEST: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_LARGEST: Final = re.compile(r"(?:^|,)\s*max-append-size=(\d{1,15})\s*(?:,|$)")


def digest_field(digest: str) -> str:
    """Return a digest field of a SHA-256 (hex)."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


def digest_in(field: str) -> str | None:
    """Return the SHA-256 (hex) of a digest field; None where it holds none."""
    found = _DIGEST.fullmatch(field.strip())
    try:
        return (
            None if found is None else base64.b64decode(found[1], validate=True).hex()
        )
    except binascii.Error:
        return None


def boolean(*, value: bool) -> str:
    """Return a boolean of structured fields."""
    return "?1" if value else "?0"


def least_piece(size: int) -> int:
    """Return how many bytes a piece of an upload has at least; the last may have less."""
    return -(-size // MAX_PIECES)


def largest_piece(headers: Mapping[str, str]) -> int | None:
    """Return how many bytes an analyst takes in a piece; None if it does not say."""
    found = _LARGEST.search(headers.get(LIMIT, ""))
    return None if found is None else int(found[1])

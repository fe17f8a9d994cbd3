"""HTTP headers that the service and the SDK share; they never import each other.

An upload may wait for the next task, so that a round takes one request. The client
states how long it is willing to wait (``Prefer: wait=20``, RFC 7240). The body of the
response is then the next task, or empty (204), and the receipt is in a header, as a
byte sequence of structured fields (RFC 9651). Without ``Prefer`` the receipt is the
body.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from clustering_protocols.wire.answers import Receipt

RECEIPT_HEADER: Final = "Coterie-Receipt"
_WAIT: Final = re.compile(
    r'(?:^|,)\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:[;,]|$)', re.IGNORECASE
)
_BYTES: Final = re.compile(r":([A-Za-z0-9+/]*={0,2}):")
_DIGEST: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")


def wait_header(seconds: float) -> dict[str, str]:
    """Return the header with which a client asks for the next task."""
    return {"Prefer": f"wait={round(seconds)}"}


def parse_wait_preference(prefer: str) -> int | None:
    """Return how long a client is willing to wait; None if its header does not say."""
    match = _WAIT.search(prefer)
    return None if match is None else int(match[1])


def receipt_headers(receipt: Receipt) -> dict[str, str]:
    """Return headers with the receipt, for a response with another body."""
    text = base64.b64encode(receipt.model_dump_json().encode()).decode()
    return {RECEIPT_HEADER: f":{text}:", "Preference-Applied": "wait"}


def receipt_in(headers: Mapping[str, str]) -> bytes | None:
    """Return the receipt, as JSON, from response headers; None if there is none."""
    return _decode_base64(_BYTES.fullmatch(headers.get(RECEIPT_HEADER, "")))


def digest_field(digest: str) -> str:
    """Return the Content-Digest header (RFC 9530) for a SHA-256 (hex)."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


def digest_in(field: str) -> str | None:
    """Return the SHA-256 (hex) in a Content-Digest header; None if it has none."""
    digest = _decode_base64(_DIGEST.fullmatch(field.strip()))
    return None if digest is None else digest.hex()


def _decode_base64(match: re.Match[str] | None) -> bytes | None:
    """Decode the base64 in a match; return None without a match or valid base64."""
    try:
        return None if match is None else base64.b64decode(match[1], validate=True)
    except binascii.Error:
        return None


def is_this_machine(host: str) -> bool:
    """Return whether a host is the loopback interface, which needs no TLS."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

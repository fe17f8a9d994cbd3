"""An upload that waits for the next task: one request for each round.

The client says how long it would wait (``Prefer: wait=20``, RFC 7240). The body of the
answer is then the next task, or there is none (204), and the receipt stands in a header,
as a byte sequence of structured fields (RFC 9651). Who does not prefer to wait gets the
receipt as the body.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from clustering_protocols.wire.answers import Receipt

RECEIPT_HEADER: Final = "Coterie-Receipt"
_WAIT: Final = re.compile(
    r'(?:^|,)\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:[;,]|$)', re.IGNORECASE
)
_BYTES: Final = re.compile(r":([A-Za-z0-9+/]*={0,2}):")


def prefer(seconds: float) -> dict[str, str]:
    """Return the header that asks for the next task."""
    return {"Prefer": f"wait={round(seconds)}"}


def seconds_of(prefer: str) -> int | None:
    """Return how long a client would wait; None where it does not say so."""
    found = _WAIT.search(prefer)
    return None if found is None else int(found[1])


def headers_of(receipt: Receipt) -> dict[str, str]:
    """Return the headers of an answer whose body is no receipt."""
    text = base64.b64encode(receipt.model_dump_json().encode()).decode()
    return {RECEIPT_HEADER: f":{text}:", "Preference-Applied": "wait"}


def receipt_in(headers: Mapping[str, str]) -> bytes | None:
    """Return the receipt, as JSON, in the headers of an answer; None without one."""
    found = _BYTES.fullmatch(headers.get(RECEIPT_HEADER, ""))
    try:
        return None if found is None else base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return None

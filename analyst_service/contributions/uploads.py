"""Receiving a body: bounded, streamed, hashed; what is kept does not grow with it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from analyst_service.blobs import Draft
from clustering_protocols.codec import MEDIA_TYPE
from clustering_protocols.errors import (
    DigestMismatch,
    LengthRequired,
    Malformed,
    TooLarge,
    UnsupportedMedia,
)

_PIECE_BYTES = 1 << 18
_CONTENT_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")


def check_headers(headers: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Return announced length and SHA-256 (hex) of a body of arrays.

    Raises
    ------
    UnsupportedMedia, LengthRequired, TooLarge, Malformed
        Before the first byte of the body is read.
    """
    if headers.get("content-type", "").partition(";")[0].strip() != MEDIA_TYPE:
        raise UnsupportedMedia(f"Expected Content-Type {MEDIA_TYPE}.")
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia("Expected no Content-Encoding.")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        raise LengthRequired("Expected Content-Length.")
    if int(length) > max_bytes:
        raise TooLarge(f"{length} bytes; at most {max_bytes}.")
    return int(length), _announced(headers.get("content-digest", ""))


async def receive(body: AsyncIterator[bytes], draft: Draft, length: int) -> str:
    """Write a body to a draft and return its SHA-256 (hex).

    Pieces of 256 KiB go to a thread: hashing and writing hold up no other request, and a
    thousand uploads at once wait in little memory.
    """
    pending: list[bytes] = []
    waiting = 0
    try:
        async for piece in body:
            pending.append(piece)
            waiting += len(piece)
            if draft.size + waiting > length:
                raise Malformed("The body is longer than its Content-Length.")
            if waiting >= _PIECE_BYTES:
                await run_in_threadpool(draft.write, b"".join(pending))
                pending, waiting = [], 0
    except ClientDisconnect:
        raise Malformed("The connection ended within the body.") from None
    if draft.size + waiting != length:
        raise Malformed("The body is shorter than its Content-Length.")
    return await run_in_threadpool(_seal, draft, b"".join(pending))


def _seal(draft: Draft, last: bytes) -> str:
    draft.write(last)
    return draft.seal()


def check_digest(announced: str, found: str) -> None:
    """Refuse a body that is not the announced one."""
    if announced != found:
        raise DigestMismatch("The SHA-256 of the body is another.")


def _announced(header: str) -> str:
    found = _CONTENT_DIGEST.fullmatch(header.strip())
    try:
        return base64.b64decode(found[1], validate=True).hex() if found else _missing()
    except binascii.Error:
        return _missing()


def _missing() -> str:
    raise Malformed("Expected 'Content-Digest: sha-256=:…:' (RFC 9530).")

"""Uploads: a body is bounded, streamed and hashed; then it is stored, or was before.

What is kept in memory does not grow with the body.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from typing_extensions import Buffer

from analyst_service.auth.service import Caller
from analyst_service.blobs import BlobDraft
from analyst_service.contributions.service import (
    ContributionService,
    Stored,
    Upload,
    UploadRequirements,
    check_draft,
)
from analyst_service.process_context import Service
from analyst_service.requests import negotiation
from analyst_service.settings import Settings
from analyst_service.storage.database import claim
from analyst_service.storage.models import Contribution
from clustering_protocols.common.errors import (
    CoterieError,
    DigestMismatch,
    LengthRequired,
    Malformed,
    TooLarge,
    UnsupportedMedia,
)
from clustering_protocols.common.limits import JSON_BYTES
from clustering_protocols.records import codec, json_form
from clustering_protocols.wire.http_headers import digest_in

_PIECE_BYTES = 1 << 18
_CUT = "The connection ended within the body."


class Body(NamedTuple):
    """Encoded arrays that are arriving, with their length and SHA-256 (hex)."""

    pieces: AsyncIterator[bytes]
    length: int
    announced: str


async def open_body(request: Request, settings: Settings) -> Body:
    """Return the arrays of a request; those that come as JSON are encoded here.

    Raises UnsupportedMedia, LengthRequired, TooLarge, Malformed: before the first byte
        of the body is read.
    Raises DigestMismatch, InvalidArray if a body of JSON is not what was announced, or
        not arrays. Clients that are made from the OpenAPI document do not see its
        bytes, so it may go unannounced.
    """
    headers = request.headers
    if negotiation.media_type(headers) != json_form.MEDIA_TYPE:
        length, announced = check_headers(headers, settings.max_body_bytes)
        return Body(request.stream(), length, announced)
    _check_json(headers)
    try:
        text = await request.body()
    except ClientDisconnect:
        raise Malformed(_CUT) from None
    if "content-digest" in headers:
        check_digest(_read_digest(headers), sha256(text).hexdigest())
    content = await run_in_threadpool(json_form.to_bytes, text)
    return Body(_whole(content), len(content), sha256(content).hexdigest())


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _check_json(headers: Mapping[str, str]) -> None:
    try:
        _check_length(headers, JSON_BYTES)
    except TooLarge as error:
        raise TooLarge(
            f"{error.detail} Use the binary form: 'Content-Type: {codec.MEDIA_TYPE}'."
        ) from None


def check_headers(headers: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Return announced length and SHA-256 (hex) of a body of arrays.

    Raises UnsupportedMedia, LengthRequired, TooLarge, Malformed: before the first byte
        of the body is read.
    """
    if negotiation.media_type(headers) != codec.MEDIA_TYPE:
        raise UnsupportedMedia(f"Expected Content-Type {codec.MEDIA_TYPE}.")
    return _check_length(headers, max_bytes), _read_digest(headers)


def _check_length(headers: Mapping[str, str], max_bytes: int) -> int:
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia("Expected no Content-Encoding.")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        raise LengthRequired("Expected Content-Length.")
    if int(length) > max_bytes:
        raise TooLarge(f"{length} bytes; at most {max_bytes}.")
    return int(length)


async def store(
    service: Service,
    caller: Caller,
    session: str,
    round_: int,
    attempt: int,
    body: Body,
) -> Stored:
    """Receive a contribution and store it; return it and whether it is new.

    What cannot be stored is refused before the body is read; a body that was stored
    before is read all the same, for it may not be what it says it is.
    """
    draft = service.blobs.draft()
    try:
        upload = Upload(
            caller, session, round_, attempt, body.announced, body.length, draft.keep
        )
        admitted = await service.admitting.do(partial(_admit, service), upload)
        asked = admitted if isinstance(admitted, UploadRequirements) else None
        if asked is not None:
            service.require_room(body.length)
        last = await receive(body.pieces, draft, body.length)
        whole = partial(seal, draft, last, body.announced, asked, service.blobs.map)
        await run_in_threadpool(whole)
        if isinstance(admitted, Contribution):
            return admitted, False
        return await service.storing.do(partial(_keep, service), upload)
    finally:
        draft.discard()


def _admit(
    service: Service, arriving: Sequence[Upload]
) -> list[Contribution | UploadRequirements | CoterieError]:
    with service.database.read() as transaction:
        return _contributions(service, transaction).admit(arriving)


def _contributions(service: Service, transaction: Transaction) -> ContributionService:
    quota = service.settings.quota_bytes
    return ContributionService(transaction, service.clock, quota)


def _keep(service: Service, arrived: Sequence[Upload]) -> list[Stored | CoterieError]:
    """Make checked bytes blobs, and store their rows: one transaction for all."""

    def keep(transaction: Transaction) -> tuple[list[Stored | CoterieError], bool]:
        claim(transaction, [each.digest for each in arrived])
        contributions = _contributions(service, transaction)
        found = contributions.store(arrived)
        moved = {each[0].session_id for each in found if isinstance(each, tuple)}
        return found, contributions.any_complete(moved)

    found, is_complete = service.database.transact(keep)
    if is_complete:
        service.notifier.notify_driver()
    return found


async def receive(body: AsyncIterator[bytes], draft: BlobDraft, length: int) -> bytes:
    """Write a body to a draft but for its last bytes, and return these.

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
        raise Malformed(_CUT) from None
    if draft.size + waiting != length:
        raise Malformed("The body is shorter than its Content-Length.")
    return b"".join(pending)


def seal(
    draft: BlobDraft,
    last: bytes,
    announced: str,
    asked: UploadRequirements | None,
    read: Callable[[str], Buffer],
) -> None:
    """Write the last bytes; check all of them, before anything is kept.

    All of it in one thread: to go to one and back costs more than each of these takes.
    """
    draft.write(last)
    check_digest(announced, draft.seal())
    if asked is not None:
        check_draft(asked, draft, read)
        draft.ready()


def check_digest(announced: str, found: str) -> None:
    """Refuse a body that is not the announced one."""
    if announced != found:
        raise DigestMismatch("The SHA-256 of the body is another.")


def _read_digest(headers: Mapping[str, str]) -> str:
    digest = digest_in(headers.get("content-digest", ""))
    if digest is None:
        raise Malformed("Expected 'Content-Digest: sha-256=:…:' (RFC 9530).")
    return digest

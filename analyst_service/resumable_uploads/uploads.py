"""Pieces come in, each as one bounded body; the last request makes them a contribution.

Each piece is a blob of its own before a row names it, so any analyst continues where
another stopped. Put together they pass the very checks of a contribution in one body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final, TypeVar

from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool

from analyst_service.auth.service import Caller
from analyst_service.blobs import BlobDraft, BlobStore
from analyst_service.blobs.claims import claim
from analyst_service.contributions import uploads as contributions
from analyst_service.contributions.service import (
    AnnouncedUpload,
    AnswerPlace,
    Stored,
    UploadRequirements,
)
from analyst_service.contributions.uploads import admit, keep, receive
from analyst_service.process_context import Service
from analyst_service.resumable_uploads.service import (
    ClaimedPieces,
    IncomingPiece,
    PieceService,
    UploadProgress,
)
from analyst_service.storage.models import Contribution
from clustering_protocols.common.errors import (
    CoterieError,
    StorageFull,
    TooLarge,
    Unavailable,
)

_T = TypeVar("_T")
_SLICE: Final = 1 << 20


async def begin(
    service: Service, caller: Caller, place: AnswerPlace, digest: str, size: int
) -> UploadProgress:
    """Begin an upload, or return how far it has come; see :meth:`PieceService.begin`."""
    if size > service.settings.max_body_bytes:
        raise TooLarge(f"{size} bytes; at most {service.settings.max_body_bytes}.")
    admitted = await admit(service, AnnouncedUpload(caller, place, digest, size))
    if isinstance(admitted, Contribution):
        return UploadProgress.of(admitted)
    room = service.blobs.free_bytes() - service.settings.least_free_bytes
    return await run_in_threadpool(
        _write, service, lambda pieces: pieces.begin(caller, place, digest, size, room)
    )


async def append(
    service: Service,
    caller: Caller,
    place: AnswerPlace,
    piece: IncomingPiece,
    body: AsyncIterator[bytes],
) -> UploadProgress:
    """Receive a piece and add it; return how far the upload has come then.

    What cannot be added is refused before the body is read.
    """
    before = await run_in_threadpool(_check, service, caller, place, piece)
    if before.offset == piece.offset:
        service.require_room(piece.length)
    draft = service.blobs.draft()
    try:
        last = await receive(body, draft, piece.length)
        read = service.blobs.map
        await run_in_threadpool(
            contributions.seal, draft, last, piece.digest, None, read
        )
        if before.offset != piece.offset or piece.length == 0:
            return before  # it was added before, or there is nothing to add
        await run_in_threadpool(draft.ready)
        return await run_in_threadpool(_add, service, caller, place, piece, draft)
    finally:
        draft.discard()


async def seal(service: Service, caller: Caller, place: AnswerPlace) -> Stored:
    """Make of all pieces the contribution; return it and whether it is new.

    An upload whose bytes are not what was announced, or do not answer the task, has
    ended: to refuse it once more would cost as much again.
    """
    patience = timedelta(seconds=service.settings.lease_seconds)
    taken = await run_in_threadpool(
        _write, service, lambda pieces: pieces.take(caller, place, patience)
    )
    if isinstance(taken, Contribution):
        return taken, False
    try:
        async with _keep_claim(service, taken):
            stored = await _put_together(service, caller, place, taken)
    except (StorageFull, Unavailable):
        await run_in_threadpool(_write, service, lambda p: p.release(taken.key))
        raise
    except KeyError:
        await run_in_threadpool(_write, service, lambda p: p.end(taken.key))
        raise Unavailable("A piece of it was lost; begin the upload again.") from None
    except CoterieError:
        await run_in_threadpool(_write, service, lambda p: p.end(taken.key))
        raise
    await run_in_threadpool(_write, service, lambda p: p.end(taken.key))
    return stored


@asynccontextmanager
async def _keep_claim(service: Service, taken: ClaimedPieces) -> AsyncIterator[None]:
    """Give signs of life as long as pieces are put together."""
    beats = asyncio.create_task(_beat(service, taken))
    try:
        yield
    finally:
        beats.cancel()


async def _beat(service: Service, taken: ClaimedPieces) -> None:
    while True:
        await asyncio.sleep(service.settings.lease_seconds / 3)
        with suppress(Unavailable):  # the next one tries again
            await run_in_threadpool(_write, service, lambda p: p.renew(taken.key))


async def _put_together(
    service: Service, caller: Caller, place: AnswerPlace, taken: ClaimedPieces
) -> Stored:
    arriving = AnnouncedUpload(caller, place, taken.digest, taken.size)
    admitted = await admit(service, arriving)
    if isinstance(admitted, Contribution):
        return admitted, False
    draft = service.blobs.draft()
    try:
        await run_in_threadpool(_copy, service.blobs, taken, admitted, draft)
        return await keep(service, arriving, draft)
    finally:
        draft.discard()


def _copy(
    blobs: BlobStore, taken: ClaimedPieces, asked: UploadRequirements, draft: BlobDraft
) -> None:
    """Write pieces one after the other, and check the whole as one body."""
    for digest in taken.pieces:
        content = memoryview(blobs.map(digest))
        for start in range(0, len(content), _SLICE):
            draft.write(bytes(content[start : start + _SLICE]))
    contributions.seal(draft, b"", taken.digest, asked, blobs.map)


def _check(
    service: Service, caller: Caller, place: AnswerPlace, piece: IncomingPiece
) -> UploadProgress:
    with service.database.read() as transaction:
        return PieceService(transaction, service.clock).check(caller, place, piece)


def read_progress(
    service: Service, caller: Caller, place: AnswerPlace
) -> UploadProgress:
    """Return how far an upload has come."""
    with service.database.read() as transaction:
        return PieceService(transaction, service.clock).read_progress(caller, place)


def give_up(service: Service, caller: Caller, place: AnswerPlace) -> None:
    """End an upload."""
    _write(service, lambda pieces: pieces.give_up(caller, place))


def _add(
    service: Service,
    caller: Caller,
    place: AnswerPlace,
    piece: IncomingPiece,
    draft: BlobDraft,
) -> UploadProgress:
    def add(transaction: Transaction) -> UploadProgress:
        claim(transaction, [piece.digest])
        pieces = PieceService(transaction, service.clock)
        return pieces.add(caller, place, piece, draft.keep)

    return service.database.transact(add)


def _write(service: Service, work: Callable[[PieceService], _T]) -> _T:
    return service.database.transact(
        lambda transaction: work(PieceService(transaction, service.clock))
    )

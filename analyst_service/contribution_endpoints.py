"""HTTP endpoints for fetching tasks and uploading contributions.

An upload is limited in size, hashed while it arrives, and written to disk only once.
The memory that it needs does not depend on its size.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from typing_extensions import Buffer

from analyst_service.blobs import ROW_BYTES, FileDraft, trim_pages
from analyst_service.contributions import (
    OpenTask,
    Stored,
    TaskRequest,
    Upload,
    UploadRequirements,
    admit_uploads,
    find_open_tasks,
    record_first_sending,
    store_uploads,
)
from analyst_service.database import Transaction, lock_digests
from analyst_service.middleware import PoolPlace
from analyst_service.models import Contribution
from analyst_service.process_context import Service
from analyst_service.requests import (
    ARRAYS,
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
    build_blob_response,
)
from analyst_service.waiting import Waiter
from clustering_protocols.common.errors import (
    CoterieError,
    DigestMismatch,
    LengthRequired,
    Malformed,
    SessionOver,
    TooLarge,
    UnsupportedMedia,
)
from clustering_protocols.engine import check_contribution
from clustering_protocols.records import codec
from clustering_protocols.terms.signed_logs import sign_receipt
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import (
    digest_in,
    parse_wait_preference,
    receipt_headers,
)

MAX_WAIT_SECONDS: Final = 25.0  # shorter than the timeouts of proxies
_QUERY_SECONDS = 5.0  # a waiting request also polls, in case a notification is missed


def fetch_open_tasks(
    service: Service, requests: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return the open task of each request; audit tasks when they are first sent."""
    tasks = service.database.query(find_open_tasks, requests)
    fresh = {
        task for task in tasks if isinstance(task, OpenTask) and task.sent_at is None
    }
    if fresh:
        service.database.transact(record_first_sending, fresh)
    return tasks


async def wait_for_task(
    service: Service,
    request: TaskRequest,
    waiter: Waiter,
    seconds: float,
    place: PoolPlace,
    *,
    query_first: bool = True,
) -> OpenTask | None:
    """Return the caller's open task, waiting up to ``seconds`` until there is one.

    Returns None if there still is no task. Returns without waiting if too many of the
    caller's requests are waiting already, or if this process is shutting down: the
    caller then asks another process. While a request waits, it does not count as one of
    those being served.

    waiter: must have been subscribed before the caller's last answer was stored.
    query_first: whether to query the database before the first wait.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(seconds, MAX_WAIT_SECONDS)
    query, task = partial(fetch_open_tasks, service), None
    while True:
        if query_first:
            task = await service.handing_out.submit(query, request)
        remaining = 0 if service.draining.is_set() else deadline - loop.time()
        if task is not None or remaining <= 0:
            return task
        with place.release_while_waiting() as may_wait:
            if not may_wait:
                return None
            await waiter.wait(min(remaining, _QUERY_SECONDS))
        query_first = True


_PIECE_BYTES = 1 << 18


def parse_body_headers(headers: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Return the length and SHA-256 (hex) that the headers of an upload announce.

    Raises UnsupportedMedia, LengthRequired, TooLarge or Malformed if a header is
    missing or unacceptable.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip()
    if media_type != codec.MEDIA_TYPE:
        raise UnsupportedMedia(f"Expected Content-Type {codec.MEDIA_TYPE}.")
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia("Expected no Content-Encoding.")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        raise LengthRequired("Expected Content-Length.")
    if int(length) > max_bytes:
        raise TooLarge(f"{length} bytes; at most {max_bytes}.")
    digest = digest_in(headers.get("content-digest", ""))
    if digest is None:
        raise Malformed("Expected 'Content-Digest: sha-256=:…:' (RFC 9530).")
    return int(length), digest


async def receive_and_store(
    service: Service, upload: Upload, pieces: AsyncIterator[bytes]
) -> Stored:
    """Receive a contribution and store it; return its row and whether it is new.

    A short body is checked in the transaction that stores it, unless its task is a
    blob, which would take too long to read there. A long body that could not be stored
    is refused before it is read. A repeated upload is read as well, to verify that its
    body matches the announced digest.
    """
    store = partial(_check_and_store, service)
    draft, last = None, b""
    if upload.size < ROW_BYTES:
        last = await receive_body(pieces, upload.size, None)
        with suppress(TaskIsBlob):
            return await service.storing.submit(store, replace(upload, content=last))
    else:
        draft = service.blobs.create_draft()
    try:
        quota = service.settings.quota_bytes
        admitted: Contribution | UploadRequirements = await service.admitting.submit(
            lambda uploads: service.database.query(admit_uploads, uploads, quota),
            upload,
        )
        requirements = None if isinstance(admitted, Contribution) else admitted
        if requirements is not None:
            service.require_room(upload.size)
        if draft is not None:
            last = await receive_body(pieces, upload.size, draft)
        await run_in_threadpool(
            finish_and_check_body,
            draft,
            last,
            upload.digest,
            requirements,
            service.blobs.map,
        )
        if isinstance(admitted, Contribution):
            return admitted, False
        content = last if draft is None else None
        checked = replace(upload, content=content, draft=draft, is_checked=True)
        return await service.storing.submit(store, checked)
    finally:
        if draft is not None:
            draft.discard()


class TaskIsBlob(Exception):
    """A short contribution cannot be checked in a transaction, as its task is a blob."""


def _check_and_store(
    service: Service, uploads: Sequence[Upload]
) -> list[Stored | Exception]:
    """Check the uploads that have not been checked yet, and store those that pass."""

    def check_upload(
        upload: Upload, requirements: UploadRequirements | None
    ) -> Exception | None:
        if upload.is_checked or upload.content is None:
            return None
        if requirements is not None and requirements.task.content is None:
            return TaskIsBlob()
        try:
            finish_and_check_body(
                None, upload.content, upload.digest, requirements, service.blobs.map
            )
            if requirements is not None:
                service.require_room(upload.size)
        except Exception as error:  # noqa: BLE001  only this upload is refused
            return error
        return None

    def store_checked(db: Transaction) -> tuple[list[Stored | Exception], bool]:
        lock_digests(db, [upload.digest for upload in uploads if upload.draft])
        return store_uploads(db, uploads, service.settings.quota_bytes, check_upload)

    stored, is_complete = service.database.transact(store_checked)
    if is_complete:
        service.notifier.notify_driver()
    return stored


async def receive_body(
    pieces: AsyncIterator[bytes], length: int, draft: FileDraft | None
) -> bytes:
    """Write a body to a draft as it arrives, and return the bytes not written yet.

    A short body has no draft, so all of it is returned. Hashing and writing run in a
    thread, 256 KiB at a time, so that other requests need not wait and a thousand
    simultaneous uploads need little memory.

    Raises Malformed if the body is longer or shorter than announced.
    """
    pending: list[bytes] = []
    pending_bytes = arrived = 0
    try:
        async for piece in pieces:
            pending.append(piece)
            pending_bytes += len(piece)
            arrived += len(piece)
            if arrived > length:
                raise Malformed("The body is longer than its Content-Length.")
            if draft is not None and pending_bytes >= _PIECE_BYTES:
                await run_in_threadpool(draft.write, b"".join(pending))
                pending, pending_bytes = [], 0
    except ClientDisconnect:
        raise Malformed("The connection ended before the end of the body.") from None
    if arrived != length:
        raise Malformed("The body is shorter than its Content-Length.")
    return b"".join(pending)


def finish_and_check_body(
    draft: FileDraft | None,
    last: bytes,
    announced: str,
    requirements: UploadRequirements | None,
    read: Callable[[str], Buffer],
) -> None:
    """Write the last bytes of a body and check all of it, before anything is stored.

    One function does all steps, because starting a thread for each step would take
    longer than the step itself.

    draft: the file with the preceding bytes; None for a short body.
    requirements: the agreement and the task to check against; None for a repeated
        upload, of which only the digest is checked.
    read: returns the content of the blob with this digest.
    """
    if draft is not None:
        draft.write(last)
    check_digest(announced, draft.seal() if draft else sha256(last).hexdigest())
    if requirements is None:
        return
    agreement, task = requirements
    content = draft.map() if draft else last
    with trim_pages(content):
        check_contribution(agreement, task.content or read(task.digest), content)
    if draft is not None:
        draft.prepare_to_store()


def check_digest(announced: str, actual: str) -> None:
    """Raise DigestMismatch if the digest of a body differs from the announced one."""
    if announced != actual:
        raise DigestMismatch("The body does not have the announced SHA-256.")


router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["rounds"], route_class=AdmittingRoute
)

Number = Annotated[int, Path(ge=1, lt=2**31)]
Prefer = Annotated[
    str,
    Header(description="'wait=20': hold the request for the next task (RFC 7240)."),
]
ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    201: {"model": Receipt},
    204: {
        "description": "With `Prefer: wait`: stored, and nothing to do yet. A task that "
        "is ready in time is the body of a 200 or 201, in the same form as from GET "
        "task. In both cases the header Coterie-Receipt has the receipt."
    },
}


@router.get(
    "/task",
    response_class=Response,
    responses={
        200: ARRAYS,
        204: {"description": "Nothing to do yet; ask again."},
    },
)
async def get_task(
    session_id: SessionID,
    request: Request,
    caller: CallerDep,
    service: ServiceDep,
    wait: Annotated[float, Query(ge=0, description="Seconds to hold the request.")] = 0,
) -> Response:
    """Return the caller's open task, waiting up to ``wait`` seconds until there is one."""
    place = PoolPlace.from_scope(request.scope)
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        task = await wait_for_task(service, (caller, session_id), waiter, wait, place)
    if task is None:
        return Response(status_code=204, headers={"Retry-After": "1"})
    return await build_task_response(service, task)


@router.put(
    "/rounds/{round_}/attempts/{attempt}/contribution",
    response_model=Receipt,
    responses=ANSWERS,
    openapi_extra={"requestBody": {"required": True, **ARRAYS}},
)
async def put_contribution(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    request: Request,
    response: Response,
    caller: CallerDep,
    service: ServiceDep,
    prefer: Prefer = "",
) -> Receipt | Response:
    """Store the caller's contribution to a round, and return a signed receipt.

    A new contribution is answered with 201. Sending the same bytes again is answered
    with 200 and the same receipt. With ``Prefer: wait`` the response also carries the
    next task, so that a round takes a single request.
    """
    max_bytes = service.settings.max_body_bytes
    length, announced = parse_body_headers(request.headers, max_bytes)
    upload = Upload(caller, session_id, round_, attempt, announced, length)
    # Subscribe before storing the answer, because the next task may follow immediately.
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        stored, is_new = await receive_and_store(service, upload, request.stream())
        response.status_code = 201 if is_new else 200
        fields = {name: getattr(stored, name) for name in _RECEIPT_FIELDS}
        receipt = Receipt(session=session_id, **fields)
        receipt = sign_receipt(service.institution, receipt)
        if (seconds := parse_wait_preference(prefer)) is None:
            return receipt
        task = None
        with suppress(SessionOver):  # the answer is stored, so send its receipt anyway
            # There is no task right after a new answer; the driver notifies the waiter.
            task = await wait_for_task(
                service,
                (caller, session_id),
                waiter,
                seconds,
                PoolPlace.from_scope(request.scope),
                query_first=not is_new,
            )
    headers = receipt_headers(receipt)
    if task is None:
        return Response(status_code=204, headers=headers)
    answer = await build_task_response(service, task)
    answer.status_code = response.status_code
    answer.headers.update(headers)
    return answer


async def build_task_response(service: Service, task: OpenTask) -> Response:
    """Return a response whose body is the task.

    A blob that may have to be fetched from an object store is read in a thread. Bytes
    from the database and local files are sent without one, which is faster.
    """
    if task.content is not None:
        return Response(task.content, media_type=codec.MEDIA_TYPE)
    if not service.settings.blob_store:
        return build_blob_response(service, task.digest)
    return await asyncio.to_thread(build_blob_response, service, task.digest)


_RECEIPT_FIELDS = Receipt.model_fields.keys() - {"session", "signature"}

"""Tasks and contributions over HTTP.

A body is limited in size, hashed while it arrives, and stored once. Memory does not grow
with the size of the body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final, NamedTuple

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
    admit,
    find_tasks,
    record_first_sending,
    store,
)
from analyst_service.credentials import Caller
from analyst_service.database import Transaction, claim
from analyst_service.middleware import PoolPlace
from analyst_service.models import Contribution
from analyst_service.process_context import Service
from analyst_service.requests import (
    REQUEST,
    RESPONSE,
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
    media_type,
    send_blob,
    send_bytes,
)
from analyst_service.settings import Settings
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
from clustering_protocols.common.limits import JSON_BYTES
from clustering_protocols.engine import check_contribution
from clustering_protocols.records import codec, json_form
from clustering_protocols.terms.signed_logs import sign_receipt
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import (
    digest_in,
    receipt_headers,
    wait_seconds,
)

StepAside = Callable[[], AbstractContextManager[bool]]
MAX_WAIT_SECONDS: Final = 25.0  # longest long poll; proxies time out later
_QUERY_SECONDS = 5.0  # a held request queries at this interval, even unnotified


def open_tasks(
    service: Service, requests: Sequence[TaskRequest]
) -> list[OpenTask | CoterieError | None]:
    """Return the open task of each request; audit those handed out for the first time."""
    tasks = service.database.query(find_tasks, requests)
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
    step_aside: StepAside,
    *,
    query_first: bool = True,
) -> OpenTask | None:
    """Return the caller's open task; wait for one for at most ``seconds``.

    Returns None if there is none by then. Does not wait if too many requests wait, or
    if this process is about to end: the caller then asks another process. A waiting
    request gives up its place among those that are served.

    waiter: subscribed before the caller's last answer was stored.
    query_first: whether to query before the first wait.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(seconds, MAX_WAIT_SECONDS)
    query, task = partial(open_tasks, service), None
    while True:
        if query_first:
            task = await service.handing_out.submit(query, request)
        remaining = 0 if service.draining.is_set() else deadline - loop.time()
        if task is not None or remaining <= 0:
            return task
        with step_aside() as may_wait:
            if not may_wait:
                return None
            await waiter.wait(min(remaining, _QUERY_SECONDS))
        query_first = True


_PIECE_BYTES = 1 << 18
_INTERRUPTED = "The connection ended before the end of the body."


class Body(NamedTuple):
    """Encoded arrays that are arriving, with their announced length and SHA-256 (hex)."""

    pieces: AsyncIterator[bytes]
    length: int
    announced: str


async def open_body(request: Request, settings: Settings) -> Body:
    """Return the body of a request as encoded arrays; arrays in JSON are encoded here.

    JSON may come without a digest, because clients generated from the OpenAPI document
    cannot compute one of the body's bytes.

    Raises UnsupportedMedia, LengthRequired, TooLarge, Malformed: before the first byte
        of the body is read.
    Raises DigestMismatch, InvalidArray if a JSON body does not match its digest, or
        holds no arrays.
    """
    headers = request.headers
    if media_type(headers) != json_form.MEDIA_TYPE:
        length, announced = check_headers(headers, settings.max_body_bytes)
        return Body(request.stream(), length, announced)
    try:
        _check_length(headers, JSON_BYTES)
    except TooLarge as error:
        binary = f"'Content-Type: {codec.MEDIA_TYPE}'"
        raise TooLarge(f"{error.detail} Use the binary form: {binary}.") from None
    try:
        text = await request.body()
    except ClientDisconnect:
        raise Malformed(_INTERRUPTED) from None
    if "content-digest" in headers:
        check_digest(_read_digest(headers), sha256(text).hexdigest())
    content = await run_in_threadpool(json_form.to_bytes, text)
    return Body(_as_stream(content), len(content), sha256(content).hexdigest())


async def _as_stream(content: bytes) -> AsyncIterator[bytes]:
    yield content


def check_headers(headers: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Return the announced length and SHA-256 (hex) of a body of arrays.

    Raises UnsupportedMedia, LengthRequired, TooLarge, Malformed: before the first byte
        of the body is read.
    """
    if media_type(headers) != codec.MEDIA_TYPE:
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


async def receive_and_store(
    service: Service,
    caller: Caller,
    session: str,
    round_: int,
    attempt: int,
    body: Body,
) -> Stored:
    """Receive a contribution and store it; return it and whether it is new.

    A short body is checked in the transaction that stores it, unless its task is a blob:
    to read the blob would keep the transaction open. A long body that cannot be stored is
    refused before it is read. The body of a repeat is read too, because it may not match
    its digest.
    """
    upload = Upload(caller, session, round_, attempt, body.announced, body.length)
    keep = partial(_store_all, service)
    draft, last = None, b""
    if body.length < ROW_BYTES:
        last = await receive(body, None)
        with suppress(TaskIsBlob):
            return await service.storing.submit(keep, replace(upload, content=last))
    else:
        draft = service.blobs.draft()
    try:
        quota = service.settings.quota_bytes
        admitted: Contribution | UploadRequirements = await service.admitting.submit(
            lambda uploads: service.database.query(admit, uploads, quota), upload
        )
        requirements = None if isinstance(admitted, Contribution) else admitted
        if requirements is not None:
            service.require_room(body.length)
        if draft is not None:
            last = await receive(body, draft)
        await run_in_threadpool(
            finish_and_check_body,
            draft,
            last,
            body.announced,
            requirements,
            service.blobs.map,
        )
        if isinstance(admitted, Contribution):
            return admitted, False
        content = last if draft is None else None
        checked = replace(upload, content=content, draft=draft, is_checked=True)
        return await service.storing.submit(keep, checked)
    finally:
        if draft is not None:
            draft.discard()


class TaskIsBlob(Exception):
    """The task of a short contribution is a blob, so the check precedes the transaction."""


def _store_all(service: Service, uploads: Sequence[Upload]) -> list[Stored | Exception]:
    """Check the contributions that are not checked yet, and store all that pass."""

    def check(
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
        except Exception as error:  # noqa: BLE001  it refuses one upload only
            return error
        return None

    def work(db: Transaction) -> tuple[list[Stored | Exception], bool]:
        claim(db, [upload.digest for upload in uploads if upload.draft])
        return store(db, uploads, service.settings.quota_bytes, check)

    stored, is_complete = service.database.transact(work)
    if is_complete:
        service.notifier.notify_driver()
    return stored


async def receive(body: Body, draft: FileDraft | None) -> bytes:
    """Write a body into a draft, except for its last bytes, which are returned.

    A short body has no draft and is returned whole.

    A thread hashes and writes 256 KiB at a time, so that no other request has to wait
    and a thousand simultaneous uploads need little memory.
    """
    pending: list[bytes] = []
    pending_bytes = arrived = 0
    try:
        async for piece in body.pieces:
            pending.append(piece)
            pending_bytes += len(piece)
            arrived += len(piece)
            if arrived > body.length:
                raise Malformed("The body is longer than its Content-Length.")
            if draft is not None and pending_bytes >= _PIECE_BYTES:
                await run_in_threadpool(draft.write, b"".join(pending))
                pending, pending_bytes = [], 0
    except ClientDisconnect:
        raise Malformed(_INTERRUPTED) from None
    if arrived != body.length:
        raise Malformed("The body is shorter than its Content-Length.")
    return b"".join(pending)


def finish_and_check_body(
    draft: FileDraft | None,
    last: bytes,
    announced: str,
    requirements: UploadRequirements | None,
    read: Callable[[str], Buffer],
) -> None:
    """Write the last bytes of a draft and check the whole, before anything is stored.

    One function, which runs in one thread: to start a thread for each of these steps
    would cost more than the step.
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
        draft.prepare()


def check_digest(announced: str, actual: str) -> None:
    """Raise DigestMismatch if a body does not have the announced digest."""
    if announced != actual:
        raise DigestMismatch("The body does not have the announced SHA-256.")


def _read_digest(headers: Mapping[str, str]) -> str:
    digest = digest_in(headers.get("content-digest", ""))
    if digest is None:
        raise Malformed("Expected 'Content-Digest: sha-256=:…:' (RFC 9530).")
    return digest


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
        200: RESPONSE,
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
    """Return the caller's open task; hold the request for a while if there is none."""
    step_aside = PoolPlace.of(request.scope).step_aside
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        task = await wait_for_task(
            service, (caller, session_id), waiter, wait, step_aside
        )
    if task is None:
        return Response(status_code=204, headers={"Retry-After": "1"})
    return await send_task(service, task, request.headers)


@router.put(
    "/rounds/{round_}/attempts/{attempt}/contribution",
    response_model=Receipt,
    responses=ANSWERS,
    openapi_extra={"requestBody": REQUEST},
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
    """Store the caller's answer: 201; the same bytes again: 200 and the same receipt.

    With ``Prefer: wait`` the response also carries the next task: one request a round.
    """
    body = await open_body(request, service.settings)
    step_aside = PoolPlace.of(request.scope).step_aside
    # subscribed before the answer is stored, because the next task may follow at once
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        stored, is_new = await receive_and_store(
            service, caller, session_id, round_, attempt, body
        )
        response.status_code = 201 if is_new else 200
        fields = {name: getattr(stored, name) for name in _RECEIPT_FIELDS}
        receipt = Receipt(session=session_id, **fields)
        receipt = sign_receipt(service.institution, receipt)
        if (seconds := wait_seconds(prefer)) is None:
            return receipt
        task = None
        with suppress(SessionOver):  # the answer is stored, so its receipt is due
            # after a new answer there is no task yet; the driver notifies the waiter
            task = await wait_for_task(
                service,
                (caller, session_id),
                waiter,
                seconds,
                step_aside,
                query_first=not is_new,
            )
    headers = receipt_headers(receipt)
    if task is None:
        return Response(status_code=204, headers=headers)
    answer = await send_task(service, task, request.headers)
    answer.status_code = response.status_code
    answer.headers.update(headers)
    return answer


async def send_task(
    service: Service, task: OpenTask, headers: Mapping[str, str]
) -> Response:
    """Return a response with a task.

    Bytes and a local file are sent without a thread, which would cost more; a blob that
    may have to be fetched is read in a thread.
    """
    if task.content is not None:
        return send_bytes(task.content, headers)
    if not service.settings.blob_store:
        return send_blob(service, task.digest, headers)
    return await asyncio.to_thread(send_blob, service, task.digest, headers)


_RECEIPT_FIELDS = Receipt.model_fields.keys() - {"session", "signature"}

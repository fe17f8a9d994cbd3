"""Uploads in pieces over HTTP, after draft-ietf-httpbis-resumable-upload."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request, Response

from analyst_service.configuration.settings import Settings
from analyst_service.contributions.endpoints import ANSWERS, Number, Prefer
from analyst_service.contributions.responses import UploadResponse, answer_upload
from analyst_service.contributions.service import AnswerPlace, TaskRequest
from analyst_service.contributions.uploads import check_headers
from analyst_service.requests.deps import (
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
)
from analyst_service.resumable_uploads import uploads
from analyst_service.resumable_uploads.service import IncomingPiece, UploadProgress
from clustering_protocols.common.errors import Malformed
from clustering_protocols.wire.answers import Receipt
from coterie_http import resumption

router = APIRouter(
    prefix="/v1/sessions/{session_id}/rounds/{round_}/attempts/{attempt}/contribution",
    tags=["rounds"],
    route_class=AdmittingRoute,
)

_STANDING: Final[dict[str, Any]] = {
    "description": "How far it has come: Upload-Offset bytes of Upload-Length. "
    "Upload-Limit says how large the whole and a piece may be, and for how many seconds "
    "it is kept. Upload-Complete is ?1 once the contribution is stored.",
    "headers": {
        name: {"schema": {"type": "string"}}
        for name in (
            resumption.OFFSET,
            resumption.LENGTH,
            resumption.COMPLETE,
            resumption.LIMIT,
            resumption.WHOLE_DIGEST,
        )
    },
}
_PIECE: Final = {
    "required": True,
    "content": {
        resumption.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}
    },
}
# generators of clients know texts in headers, and nothing narrower
Complete = Annotated[
    str,
    Header(pattern=r"^\?[01]$", description="?1: these are the last bytes, or none."),
]


@router.put(
    "/upload", status_code=201, response_class=Response, responses={201: _STANDING}
)
async def put_upload(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    request: Request,
    caller: CallerDep,
    service: ServiceDep,
    upload_complete: Annotated[
        str,
        Header(pattern=r"^\?0$", description="?0: more follows; the body is empty."),
    ],
    upload_length: Annotated[
        int, Header(ge=1, lt=2**63, description="Bytes of the contribution.")
    ],
    repr_digest: Annotated[
        str, Header(description="'sha-256=:…:' over all of it (RFC 9530).")
    ],
) -> Response:
    """Begin an upload in pieces, or learn how far it has come; the body is empty.

    One for each attempt: an upload of other bytes has to be deleted first.
    """
    del upload_complete
    digest = resumption.digest_in(repr_digest)
    if digest is None:
        raise Malformed("Expected 'Repr-Digest: sha-256=:…:' (RFC 9530).")
    if request.headers.get("content-length", "0") != "0":
        raise Malformed("An upload in pieces begins with an empty body.")
    place = AnswerPlace(session_id, round_, attempt)
    found = await uploads.begin(service, caller, place, digest, upload_length)
    headers = {"Location": request.url.path, **_headers(found, service.settings)}
    return Response(status_code=201, headers=headers)


@router.head("/upload", status_code=204, responses={204: _STANDING})
def head_upload(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    caller: CallerDep,
    service: ServiceDep,
) -> Response:
    """Return how far an upload has come."""
    found = uploads.read_progress(
        service, caller, AnswerPlace(session_id, round_, attempt)
    )
    return Response(status_code=204, headers=_headers(found, service.settings))


@router.patch(
    "/upload",
    response_model=Receipt,
    responses={
        **ANSWERS,
        204: {
            **_STANDING,
            "description": f"The piece is stored. {_STANDING['description']} With the "
            f"last piece as of PUT contribution: {ANSWERS[204]['description']}",
        },
    },
    openapi_extra={"requestBody": _PIECE},
)
async def patch_upload(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    request: Request,
    response: Response,
    caller: CallerDep,
    service: ServiceDep,
    upload_offset: Annotated[
        int, Header(ge=0, lt=2**63, description="Bytes before this piece.")
    ],
    upload_complete: Complete,
    prefer: Prefer = "",
) -> Receipt | Response:
    """Add a piece behind those that came; with the last one get the receipt.

    A piece is stored whole or not at all; the same piece again changes nothing. It has
    Content-Digest and Content-Length, and a 4096th of the upload or more.
    """
    length, digest = check_headers(
        request.headers, service.settings.max_piece_bytes, resumption.MEDIA_TYPE
    )
    place = AnswerPlace(session_id, round_, attempt)
    piece = IncomingPiece(
        upload_offset, length, digest, is_last=upload_complete == "?1"
    )
    found = await uploads.append(service, caller, place, piece, request.stream())
    if not piece.is_last:
        return Response(status_code=204, headers=_headers(found, service.settings))
    return await answer_upload(
        UploadResponse(
            service, request, response, TaskRequest(caller, session_id), prefer
        ),
        lambda: uploads.seal(service, caller, place),
    )


@router.delete("/upload", status_code=204)
def delete_upload(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Give an upload up; what came of it is removed within a minute or so."""
    uploads.give_up(service, caller, AnswerPlace(session_id, round_, attempt))


def _headers(found: UploadProgress, settings: Settings) -> dict[str, str]:
    limits = {
        "max-size": settings.max_body_bytes,
        "max-append-size": settings.max_piece_bytes,
        "min-append-size": resumption.least_piece(found.size),
        "max-age": settings.upload_seconds,
    }
    return {
        resumption.OFFSET: str(found.offset),
        resumption.LENGTH: str(found.size),
        resumption.COMPLETE: resumption.boolean(value=found.is_complete),
        resumption.WHOLE_DIGEST: resumption.digest_field(found.digest),
        resumption.LIMIT: ", ".join(
            f"{name}={limit}" for name, limit in limits.items()
        ),
        "Cache-Control": "no-store",
    }

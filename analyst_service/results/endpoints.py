"""Results over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse

from analyst_service.deps import CallerDep, Reading, ServiceDep, SessionID
from analyst_service.results.service import ResultService
from clustering_protocols.codec import MEDIA_TYPE

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["results"])


def _reading(unit: Reading, service: ServiceDep) -> ResultService:
    return ResultService(unit, service.clock)


ReadingResults = Annotated[ResultService, Depends(_reading)]


@router.get(
    "/result",
    response_class=FileResponse,
    responses={200: {"content": {MEDIA_TYPE: {}}}},
)
def get_result(
    session_id: SessionID,
    caller: CallerDep,
    results: ReadingResults,
    service: ServiceDep,
) -> FileResponse:
    """Return a party's own result; to the coordinator, the summary."""
    digest = results.digest(caller, session_id)
    return FileResponse(service.blobs.path(digest), media_type=MEDIA_TYPE)

"""Results over HTTP."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import FileResponse
from sqlalchemy.orm import Session as Unit

from analyst_service.deps import CallerDep, ServiceDep, SessionID
from analyst_service.results.service import ResultService
from clustering_protocols.codec import MEDIA_TYPE

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["results"])


@router.get(
    "/result",
    response_class=FileResponse,
    responses={200: {"content": {MEDIA_TYPE: {}}}},
)
def get_result(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> FileResponse:
    """Return a party's own result; to the coordinator, the summary."""

    def hand_out(unit: Unit) -> str:
        return ResultService(unit, service.clock).hand_out(caller, session_id)

    return service.blob(service.database.transact(hand_out))

"""Deleting a session over HTTP."""

from __future__ import annotations

from fastapi import APIRouter

from analyst_service.requests import AdmittingRoute, CallerDep, ServiceDep, SessionID
from analyst_service.retention.service import RetentionService

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=AdmittingRoute)


@router.delete("/{session_id}", status_code=204)
def delete_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> None:
    """Remove all of a session but its audit; its id is never free again."""
    RetentionService(service).delete(caller, session_id)

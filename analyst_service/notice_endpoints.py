"""HTTP endpoints for the mail addresses to which a caller wants notices about a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from analyst_service import notices
from analyst_service.requests import (
    AdmittingRoute,
    CallerDep,
    Posted,
    ServiceDep,
    SessionID,
    StrictModel,
)
from clustering_protocols.wire.answers import MAX_ADDRESS, ReceiverAdded, Receivers

router = APIRouter(
    prefix="/v1/sessions/{session_id}/receivers",
    tags=["notices"],
    route_class=AdmittingRoute,
)


class ReceiverWrite(StrictModel):
    """The mail address to which to send notices."""

    address: str = Field(
        min_length=3, max_length=MAX_ADDRESS, description="A mail address."
    )


ReceiverID = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


@router.post("", status_code=201)
def post_receiver(
    session_id: SessionID,
    body: Posted[ReceiverWrite],
    caller: CallerDep,
    service: ServiceDep,
) -> ReceiverAdded:
    """Add an address for notices. Adding it again replaces it under a new id."""
    return service.database.transact(
        notices.add_receiver,
        caller,
        session_id,
        body.read().address,
        is_offered=service.settings.sends_mail,
    )


@router.get("")
def list_receivers(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Receivers:
    """List the caller's addresses, with the delivery state of their notices."""
    return service.database.query(
        notices.list_receivers,
        caller,
        session_id,
        is_offered=service.settings.sends_mail,
    )


@router.delete("/{receiver_id}", status_code=204)
def delete_receiver(
    session_id: SessionID,
    receiver_id: ReceiverID,
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Remove an address. Removing it again changes nothing."""
    service.database.transact(notices.remove_receiver, caller, session_id, receiver_id)

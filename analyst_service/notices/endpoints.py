"""Addresses of mail over HTTP: each caller's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session as Transaction

from analyst_service.notices.service import NoticeService
from analyst_service.requests import (
    AdmittingRoute,
    CallerDep,
    Posted,
    ServiceDep,
    SessionID,
)
from clustering_protocols.wire.notices import MAX_ADDRESS, ReceiverAdded, Receivers

router = APIRouter(
    prefix="/v1/sessions/{session_id}/receivers",
    tags=["notices"],
    route_class=AdmittingRoute,
)


class ReceiverWrite(BaseModel):
    """An address to be told at."""

    model_config = ConfigDict(extra="forbid")

    address: str = Field(
        min_length=3, max_length=MAX_ADDRESS, description="An address of mail."
    )


ReceiverID = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


@router.post("", status_code=201)
def post_receiver(
    session_id: SessionID,
    body: Posted[ReceiverWrite],
    caller: CallerDep,
    service: ServiceDep,
) -> ReceiverAdded:
    """Leave an address to be told at; left again, it has a new id."""
    address = body.read().address

    def add(transaction: Transaction) -> ReceiverAdded:
        return NoticeService(transaction, service).add(caller, session_id, address)

    return service.database.transact(add)


@router.get("")
def list_receivers(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Receivers:
    """List the caller's own addresses, and how telling them went."""
    with service.database.read() as transaction:
        return NoticeService(transaction, service).own(caller, session_id)


@router.delete("/{receiver_id}", status_code=204)
def delete_receiver(
    session_id: SessionID,
    receiver_id: ReceiverID,
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Tell an address no more, and forget it; a repeat changes nothing."""

    def remove(transaction: Transaction) -> None:
        NoticeService(transaction, service).remove(caller, session_id, receiver_id)

    service.database.transact(remove)

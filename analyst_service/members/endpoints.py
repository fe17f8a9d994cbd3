"""Invitations and joining over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.deps import (
    AdmittingRoute,
    CallerDep,
    Reading,
    ServiceDep,
    SessionID,
)
from analyst_service.members.schemas import (
    CodeWrite,
    DeclineWrite,
    InvitationWrite,
    JoinWrite,
    preview_of,
)
from analyst_service.members.service import MemberService
from analyst_service.models import Session
from analyst_service.strict_json import Posted
from clustering_protocols.wire.answers import Codes, Joined, Preview

router = APIRouter(tags=["members"], route_class=AdmittingRoute)


def _members(transaction: Transaction, service: ServiceDep) -> MemberService:
    return MemberService(transaction, service.clock, service.settings)


async def _reading(transaction: Reading, service: ServiceDep) -> MemberService:
    return _members(transaction, service)


ReadingMembers = Annotated[MemberService, Depends(_reading)]


@router.post("/v1/sessions/{session_id}/invitations", status_code=201)
def post_invitations(
    session_id: SessionID,
    body: Posted[InvitationWrite],
    caller: CallerDep,
    service: ServiceDep,
) -> Codes:
    """Make one-time codes; earlier unused codes of the same slots end."""
    slots = body.read().slots

    def invite(transaction: Transaction) -> dict[str, str]:
        return _members(transaction, service).invite(caller, session_id, slots)

    return Codes(codes=service.database.transact(invite))


@router.post("/v1/join/preview")
def preview(body: Posted[CodeWrite], members: ReadingMembers) -> Preview:
    """Show what an invitation is for; nothing is used up."""
    return preview_of(*members.preview(body.read().code))


@router.post("/v1/join/decline", status_code=204)
def decline(body: Posted[DeclineWrite], service: ServiceDep) -> None:
    """Say why the party of an invitation does not join; it may join later."""
    asked = body.read()

    def note(transaction: Transaction) -> None:
        _members(transaction, service).decline(asked.code, asked.state, asked.reason)

    service.database.transact(note)


@router.post("/v1/join")
def join(body: Posted[JoinWrite], service: ServiceDep, response: Response) -> Joined:
    """Take the slot; with the same keys and a new proof again, for another token."""
    asked = body.read()

    def take(transaction: Transaction) -> tuple[Session, str]:
        return _members(transaction, service).join(
            asked.code, asked.member, asked.proof
        )

    session, token = service.database.transact(take)
    service.notifier.notify_driver()
    response.headers["Cache-Control"] = "no-store"
    return Joined(session=session.name, slot=asked.member.slot, token=token)

"""Invitations and joining over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from analyst_service.deps import CallerDep, Reading, ServiceDep, SessionID, Writing
from analyst_service.members.schemas import (
    CodeWrite,
    InvitationsRead,
    InvitationWrite,
    JoinRead,
    JoinWrite,
    PreviewRead,
)
from analyst_service.members.service import MemberService

router = APIRouter(tags=["members"])


def _reading(unit: Reading, service: ServiceDep) -> MemberService:
    return MemberService(unit, service.clock, service.settings)


def _writing(unit: Writing, service: ServiceDep) -> MemberService:
    return MemberService(unit, service.clock, service.settings)


ReadingMembers = Annotated[MemberService, Depends(_reading)]
WritingMembers = Annotated[MemberService, Depends(_writing)]


@router.post("/v1/sessions/{session_id}/invitations", status_code=201)
def post_invitations(
    session_id: SessionID,
    body: InvitationWrite,
    caller: CallerDep,
    members: WritingMembers,
) -> InvitationsRead:
    """Make one-time codes; earlier unused codes of the same slots end."""
    return InvitationsRead(codes=members.invite(caller, session_id, body.slots))


@router.post("/v1/join/preview")
def preview(body: CodeWrite, members: ReadingMembers) -> PreviewRead:
    """Show what an invitation is for; nothing is used up."""
    session, slot = members.preview(body.code)
    return PreviewRead.of(session, slot)


@router.post("/v1/join")
def join(body: JoinWrite, members: WritingMembers, response: Response) -> JoinRead:
    """Take the slot; the same code with the same keys again succeeds again."""
    session, token = members.join(body.code, body.member, body.proof)
    response.headers["Cache-Control"] = "no-store"
    return JoinRead(session=session.id, slot=body.member.slot, token=token)

"""HTTP endpoints for inviting parties and for joining a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from analyst_service import members
from analyst_service.logs import STRANGER, Act, log_act
from analyst_service.requests import (
    AdmittingRoute,
    CallerDep,
    Posted,
    ServiceDep,
    SessionID,
    StrictModel,
)
from clustering_protocols import session_terms
from clustering_protocols.common.errors import (
    InvitationExpired,
    InvitationUsed,
    KeyNotAuthentic,
    NotFound,
)
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.session_risks import risk_sentences
from clustering_protocols.terms.terms import Name, Text, read_terms
from clustering_protocols.wire.answers import Codes, Joined, Preview
from clustering_protocols.wire.states import SessionState, SlotState


class InvitationWrite(StrictModel):
    """The slots for which to create invitations."""

    slots: list[Name] | None = Field(
        default=None, description="By default every slot that nobody has taken."
    )


class CodeWrite(StrictModel):
    """The one-time code of an invitation."""

    code: str = Field(min_length=16, max_length=128, description="From the invitation.")


class DeclineWrite(CodeWrite):
    """The code of an invitation, and the reason why the invited party does not join."""

    state: Literal[SlotState.REFUSED, SlotState.DECLINED] = Field(
        description="Whether a check of the party refused, or its people declined."
    )
    reason: Text = Field(description="The check that refused, or people's own words.")


class JoinWrite(CodeWrite):
    """The code of an invitation, and the party's entry for the roster."""

    member: Member
    proof: str = Field(
        pattern=r"^[0-9a-f]{128}$",
        description="Ed25519 signature (hex) with the member's key over the join: see "
        "spec/terms.md.",
    )


router = APIRouter(tags=["members"], route_class=AdmittingRoute)

_REFUSALS: Final = (NotFound, InvitationExpired, InvitationUsed, KeyNotAuthentic)


@contextmanager
def _log_refusals(code: str, service: ServiceDep) -> Iterator[None]:
    """Log a refusal of an invitation's code, or of the proof that comes with it."""
    try:
        yield
    except _REFUSALS as error:
        session, slot = service.database.query(members.find_slot_of_code, code)
        log_act(
            Act.INVITATION_REFUSED,
            STRANGER,
            reason=error.problem.slug,
            session=session,
            slot=slot,
        )
        raise


@router.post("/v1/sessions/{session_id}/invitations", status_code=201)
def post_invitations(
    session_id: SessionID,
    body: Posted[InvitationWrite],
    caller: CallerDep,
    service: ServiceDep,
) -> Codes:
    """Create a one-time code per slot, replacing the unused codes of these slots."""
    slots = body.read().slots
    codes = service.database.transact(members.invite_parties, caller, session_id, slots)
    return Codes(codes=codes)


@router.post("/v1/join/preview")
def preview(body: Posted[CodeWrite], service: ServiceDep) -> Preview:
    """Return the session and terms of an invitation, without using up its code."""
    code = body.read().code
    with _log_refusals(code, service):
        session, slot = service.database.query(members.preview_invitation, code)
    if slot.read_at is None:
        service.database.transact(members.record_first_reading, session.id, slot.slot)
    return Preview(
        session=session.name,
        slot=slot.slot,
        state=SessionState(session.state),
        terms=session.terms.decode(),
        risks=risk_sentences(session_terms.risks_of_terms(read_terms(session.terms))),
        joins=slot.joins,
    )


@router.post("/v1/join/decline", status_code=204)
def decline(body: Posted[DeclineWrite], service: ServiceDep) -> None:
    """Record why the invited party does not join. The party may still join later."""
    form = body.read()
    with _log_refusals(form.code, service):
        service.database.transact(
            members.decline_invitation, form.code, form.state, form.reason
        )


@router.post("/v1/join")
def join(body: Posted[JoinWrite], service: ServiceDep, response: Response) -> Joined:
    """Join a session in the slot of an invitation, and return the party's token.

    A party that has already joined gets a new token if it sends the same keys with a
    new proof.
    """
    form = body.read()
    with _log_refusals(form.code, service):
        session, token = service.database.transact(
            members.join_session,
            form.code,
            form.member,
            form.proof,
            service.settings.max_body_bytes,
        )
    service.notifier.notify_driver()
    response.headers["Cache-Control"] = "no-store"
    return Joined(session=session.name, slot=form.member.slot, token=token)

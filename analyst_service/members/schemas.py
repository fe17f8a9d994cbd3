"""JSON of invitations and joining."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from analyst_service.storage.models import Session
from clustering_protocols import session_terms
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.risks import sentences_of
from clustering_protocols.terms.terms import Name, Text, read_terms
from clustering_protocols.wire.answers import Preview
from clustering_protocols.wire.states import SessionState, SlotState

_CODE = Field(min_length=16, max_length=128, description="From the invitation.")


class InvitationWrite(BaseModel):
    """For whom to make invitations."""

    model_config = ConfigDict(extra="forbid")

    slots: list[Name] | None = Field(
        default=None, description="By default every slot that nobody has taken."
    )


class CodeWrite(BaseModel):
    """A one-time code."""

    model_config = ConfigDict(extra="forbid")

    code: str = _CODE


class DeclineWrite(BaseModel):
    """A code, and why its party does not join."""

    model_config = ConfigDict(extra="forbid")

    code: str = _CODE
    state: Literal[SlotState.REFUSED, SlotState.DECLINED] = Field(
        description="Whether a check of the party refused, or its people declined."
    )
    reason: Text = Field(description="The name of the check; or what people say.")


class JoinWrite(BaseModel):
    """A code, and the party's line of the roster."""

    model_config = ConfigDict(extra="forbid")

    code: str = _CODE
    member: Member
    proof: str = Field(
        pattern=r"^[0-9a-f]{128}$",
        description="Ed25519 signature (hex) with the member's key over the join: see "
        "docs/security.md.",
    )


def preview_of(session: Session, slot: str, joins: int) -> Preview:
    """Return the preview of a slot."""
    terms = read_terms(session.terms)
    return Preview(
        session=session.name,
        slot=slot,
        state=SessionState(session.state),
        terms=session.terms.decode(),
        risks=sentences_of(session_terms.risks_in(terms)),
        joins=joins,
    )

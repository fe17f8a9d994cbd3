"""JSON of invitations and joining."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from analyst_service.models import Session
from clustering_protocols import registry
from clustering_protocols.terms import Member, Name, read_terms
from clustering_protocols.wire.answers import Preview
from clustering_protocols.wire.states import SessionState

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
    sentences = registry.risk_sentences(terms.protocol.name)
    return Preview(
        session=session.id,
        slot=slot,
        state=SessionState(session.state),
        terms=session.terms.decode(),
        risks={code: sentences[code] for code in terms.risks},
        joins=joins,
    )

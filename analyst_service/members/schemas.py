"""JSON of invitations and joining."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from analyst_service.models import Session
from clustering_protocols import registry
from clustering_protocols.terms import Member, Name, read_terms

_CODE = Field(min_length=16, max_length=128, description="From the invitation.")


class InvitationWrite(BaseModel):
    """For whom to make invitations."""

    model_config = ConfigDict(extra="forbid")

    slots: list[Name] | None = Field(
        default=None, description="By default every slot that nobody has taken."
    )


class InvitationsRead(BaseModel):
    """One-time codes; they are shown only here."""

    codes: dict[str, str]


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


class PreviewRead(BaseModel):
    """What an invitation is for; reading it uses nothing up."""

    session: str
    slot: str
    state: str
    terms: str = Field(description="Exact text: hash these bytes, never a copy.")
    risks: dict[str, str] = Field(description="Code and sentence of each risk.")
    joins: int = Field(
        description="How often the slot was joined so far: the proof of a join covers it."
    )

    @classmethod
    def of(cls, session: Session, slot: str, joins: int) -> Self:
        """Return the preview of a slot."""
        terms = read_terms(session.terms)
        return cls(
            session=session.id,
            slot=slot,
            state=session.state,
            terms=session.terms.decode(),
            risks=registry.risks_in(terms),
            joins=joins,
        )


class JoinRead(BaseModel):
    """What a party needs from here on."""

    session: str
    slot: str
    token: str = Field(description="Bearer token; shown only here.")

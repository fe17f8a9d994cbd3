"""JSON of the session endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model

from analyst_service.models import AuditLine, Member, Session
from clustering_protocols import registry
from clustering_protocols.terms import (
    About,
    Deadlines,
    Guards,
    Identities,
    Layout,
    digest,
    read_terms,
)


class _Choice(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _choices() -> Iterable[type[BaseModel]]:
    """Yield one model per protocol of the catalogue: its name and its parameters."""
    for name, known in registry.catalogue().items():
        yield create_model(
            f"{name}-protocol",
            __base__=_Choice,
            name=(Literal[name], ...),  # type: ignore[arg-type]  # a literal of a value
            params=(known.params, known.params.model_construct()),
        )


_AnyChoice: Any = reduce(or_, _choices())


class SessionWrite(BaseModel):
    """What a coordinator asks for."""

    model_config = ConfigDict(extra="forbid")

    about: About = About()
    protocol: Annotated[_AnyChoice, Field(discriminator="name")]
    layout: Layout
    identities: Identities = Identities()
    seed: int = Field(default=0, ge=0, lt=2**53, description="Of random starts.")
    deadlines: Deadlines = Deadlines()
    guards: Guards = Guards()

    def proposal(self) -> registry.Proposal:
        """Return the same in the words of the protocol package."""
        return registry.Proposal(
            about=self.about,
            protocol=self.protocol.name,
            params=self.protocol.params.model_dump(mode="json"),
            layout=self.layout,
            identities=self.identities,
            seed=self.seed,
            deadlines=self.deadlines,
            guards=self.guards,
        )


class SlotRead(BaseModel):
    """One slot: who is in it and whether it is awaited."""

    name: str
    row: int
    column: int
    joined_at: datetime | None
    n_rows: int | None
    awaited: bool


class SessionRead(BaseModel):
    """Where a session stands."""

    id: str
    title: str
    protocol: str
    state: str
    reason: str | None = Field(description="The problem that ended it early.")
    detail: str | None
    round: int = Field(description="Counted through all stages; 0 while recruiting.")
    attempt: int
    stage: str | None
    stage_index: int = Field(description="From 0.")
    n_stages: int
    progress: dict[str, Any] = Field(
        description="Where a protocol of many rounds tells how far it has come: updates "
        "done, of at most how many, and by how much each moved the result."
    )
    slots: list[SlotRead]
    waiting_since: datetime
    deadline: datetime
    created_at: datetime
    risks: list[str]
    terms_digest: str = Field(description="SHA-256 of the exact text of the terms.")

    @classmethod
    def of(cls, session: Session, members: Iterable[Member], awaited: set[str]) -> Self:
        """Return the public face of a session."""
        terms = read_terms(session.terms)
        return cls(
            id=session.id,
            title=session.title,
            protocol=terms.protocol.name,
            state=session.state,
            reason=session.reason,
            detail=session.detail,
            round=session.round,
            attempt=session.attempt,
            stage=session.stage,
            stage_index=session.stage_index,
            n_stages=session.n_stages,
            progress=session.progress or {},
            slots=[_slot(member, awaited) for member in members],
            waiting_since=session.changed_at,
            deadline=session.deadline,
            created_at=session.created_at,
            risks=list(terms.risks),
            terms_digest=digest(session.terms),
        )


class SessionLine(BaseModel):
    """A session in a list."""

    id: str
    title: str
    state: str
    round: int
    created_at: datetime

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return a session's line."""
        return cls.model_validate(session, from_attributes=True)


class SessionPage(BaseModel):
    """Some sessions, and where to go on."""

    sessions: list[SessionLine]
    next: str | None = Field(description="Pass as ?after= for the next page.")


class AuditPage(BaseModel):
    """Some lines of a session's audit, and where to go on."""

    lines: list[str] = Field(
        description="JSON texts. Each names the SHA-256 of the exact text before it as "
        "`previous`; the first names 64 zeros."
    )
    next: int | None = Field(description="Pass as ?after= for the next page.")

    @classmethod
    def of(cls, lines: list[AuditLine], limit: int) -> Self:
        """Return a page of lines."""
        following = lines[-1].number if len(lines) == limit else None
        return cls(lines=[found.line for found in lines], next=following)


def _slot(member: Member, awaited: set[str]) -> SlotRead:
    return SlotRead(
        name=member.slot,
        row=member.row_group,
        column=member.column_group,
        joined_at=member.joined_at,
        n_rows=member.n_rows,
        awaited=member.slot in awaited,
    )

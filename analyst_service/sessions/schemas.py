"""JSON of the session endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model

from analyst_service.models import AuditLine, Member, Session
from clustering_protocols import registry
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.proofs import sign_audit
from clustering_protocols.recipe import Preparation
from clustering_protocols.release import Release
from clustering_protocols.schema import Schema
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import (
    About,
    Deadlines,
    Guards,
    Identities,
    Layout,
    Terms,
    Text,
    digest,
    read_terms,
)
from clustering_protocols.wire.answers import (
    AuditPage,
    RunLine,
    SessionLine,
    SessionPage,
    SessionStatus,
    SlotStatus,
)
from clustering_protocols.wire.states import SessionState, SlotState


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
    dictionary: tuple[Schema, ...] | None = Field(
        default=None, description="What columns mean, of each column group."
    )
    preparation: tuple[Preparation, ...] | None = Field(
        default=None, description="How these columns become those that are clustered."
    )
    evaluation: Evaluation | None = Field(
        default=None,
        description="Several numbers of clusters, of which the protocol's own is the "
        "largest, and how one of them is chosen.",
    )
    release: Release | None = Field(
        default=None, description="What is let out beside labels."
    )
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
            dictionary=self.dictionary,
            preparation=self.preparation,
            evaluation=self.evaluation,
            release=self.release,
            seed=self.seed,
            deadlines=self.deadlines,
            guards=self.guards,
        )


class Extension(BaseModel):
    """Until when the session waits."""

    model_config = ConfigDict(extra="forbid")

    deadline: AwareDatetime = Field(description="Later than the present one.")


class Cancellation(BaseModel):
    """Why a session is ended."""

    model_config = ConfigDict(extra="forbid")

    reason: Text = Field(default="", description="What the parties read.")


class Choice(BaseModel):
    """Which run counts."""

    model_config = ConfigDict(extra="forbid")

    n_clusters: int = Field(ge=1, description="Of the run.")


def status_of(
    session: Session, session_id: str, members: Iterable[Member], awaited: set[str]
) -> SessionStatus:
    """Return the public face of a session, under the id that its reader knows."""
    terms = read_terms(session.terms)
    return SessionStatus(
        id=session_id,
        title=session.title,
        protocol=terms.protocol.name,
        state=SessionState(session.state),
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
        runs=_runs(session, terms),
        profiles=terms.release is not None and terms.release.profiles == "everybody",
    )


def list_page(sessions: Mapping[str, Session], limit: int) -> SessionPage:
    """Return a page of a list, under the ids that its reader knows."""
    lines = [
        SessionLine(
            id=session_id,
            title=session.title,
            state=SessionState(session.state),
            round=session.round,
            created_at=session.created_at,
        )
        for session_id, session in sessions.items()
    ]
    return SessionPage(
        sessions=lines, next=lines[-1].id if len(lines) == limit else None
    )


def audit_page(
    session: str, found: list[AuditLine], limit: int, analyst: Institution
) -> AuditPage:
    """Return a page of the audit of a session, as its parties name it, signed."""
    following = found[-1].number if len(found) == limit else None
    lines = [each.line for each in found]
    signature = sign_audit(analyst, session, lines) if lines else ""
    return AuditPage(lines=lines, next=following, signature=signature)


def _runs(session: Session, terms: Terms) -> list[RunLine]:
    if not session.figures:
        return []
    several = terms.evaluation
    asked = several.n_clusters if several else [session.figures[0]["n_clusters"]]
    return [
        RunLine(n_clusters=k, figures=figures, chosen=number == session.chosen)
        for number, (k, figures) in enumerate(zip(asked, session.figures, strict=True))
    ]


def _slot(member: Member, awaited: set[str]) -> SlotStatus:
    return SlotStatus(
        name=member.slot,
        row=member.row_group,
        column=member.column_group,
        state=SlotState(member.state),
        reason=member.reason,
        joined_at=member.joined_at,
        n_rows=member.n_rows,
        awaited=member.slot in awaited,
    )

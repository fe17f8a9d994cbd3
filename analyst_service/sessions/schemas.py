"""JSON of the session endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model

from analyst_service.sessions.session_lists import (
    CURSOR,
    STATES,
    ListedSession,
    Page,
    WantedSessions,
)
from analyst_service.storage.models import AuditLine, Member, Session
from clustering_protocols import catalogue
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.signed_logs import sign_audit
from clustering_protocols.terms.terms import SessionRequest, Terms, Text, read_terms
from clustering_protocols.wire.answers import (
    AuditPage,
    RunLine,
    SessionLine,
    SessionPage,
    SessionStatus,
    SlotStatus,
)
from clustering_protocols.wire.progress import run_progress
from clustering_protocols.wire.states import SessionState, SlotState, StopReason


class _Choice(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _choices() -> Iterable[type[BaseModel]]:
    """Yield one model per protocol of the catalogue: its name and its parameters."""
    for name, known in catalogue.catalogue().items():
        yield create_model(
            f"{name}-protocol",
            __base__=_Choice,
            name=(Literal[name], ...),  # type: ignore[arg-type]  # a literal of a value
            params=(known.params, known.params.model_construct()),
        )


_AnyChoice: Any = reduce(or_, _choices())


class SessionWrite(SessionRequest):
    """What a coordinator asks for."""

    protocol: Annotated[_AnyChoice, Field(discriminator="name")]
    seed: int = Field(default=0, ge=0, lt=2**53, description="Of random starts.")


_EARLIEST, _LATEST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 9000))
_Bound = Annotated[AwareDatetime, Field(ge=_EARLIEST, le=_LATEST)]


class ListQuery(BaseModel):
    """Which sessions a list is of, and where its page begins."""

    model_config = ConfigDict(extra="ignore")  # as every query

    after: str = Field(
        default="",
        pattern=rf"^({CURSOR})?$",
        description="`next` of the page before; nothing for the first page.",
    )
    limit: int = Field(default=50, ge=1, le=100)
    state: str = Field(
        default="",
        pattern=rf"^({'|'.join(STATES)})?$",
        description="`open`, `over`, or one state.",
    )
    owner: str = Field(
        default="",
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="Id of a principal, or label of its key.",
    )
    awaited: str = Field(
        default="",
        pattern=rf"^({NAME_PATTERN[1:-1]})?$",
        description="A slot for which they wait.",
    )
    changed_since: _Bound | None = Field(
        default=None, description="Last moved on then or later."
    )
    changed_before: _Bound | None = Field(
        default=None, description="Last moved on earlier."
    )

    def build_filter(self) -> WantedSessions:
        """Return the same in the words of the list."""
        return WantedSessions(
            state=self.state,
            owner=self.owner,
            awaited=self.awaited,
            since=self.changed_since,
            before=self.changed_before,
        )


class Extension(BaseModel):
    """Until when the session waits."""

    model_config = ConfigDict(extra="forbid")

    deadline: AwareDatetime = Field(description="Later than the present one.")


class Cancellation(BaseModel):
    """Why a session is ended."""

    model_config = ConfigDict(extra="forbid")

    reason: Text = Field(default="", description="What the parties read.")


class PartyStop(BaseModel):
    """Why a party stopped for good."""

    model_config = ConfigDict(extra="forbid")

    reason: StopReason = Field(
        description="All that others read: which check refused is not among the words."
    )


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
        progress={**(session.progress or {}), **_run_of(session, terms)},
        slots=[_slot(member, awaited) for member in members],
        waiting_since=session.changed_at,
        deadline=session.deadline,
        created_at=session.created_at,
        risks=list(terms.risks),
        terms_digest=digest(session.terms),
        runs=_runs(session, terms),
        profiles=terms.release is not None and terms.release.profiles == "everybody",
    )


def list_page(page: Page) -> SessionPage:
    """Return a page of a list."""
    return SessionPage(
        sessions=[_line(each) for each in page.lines], next=page.following or None
    )


def _line(listed: ListedSession) -> SessionLine:
    session = listed.session
    return SessionLine(
        id=listed.name,
        title=session.title,
        state=SessionState(session.state),
        round=session.round,
        created_at=session.created_at,
        protocol=listed.protocol,
        owner=listed.owner,
        reason=session.reason,
        awaited=list(listed.awaited),
        waiting_since=session.changed_at,
        deadline=session.deadline,
    )


def audit_page(
    session: str, found: list[AuditLine], limit: int, analyst: Institution
) -> AuditPage:
    """Return a page of the audit of a session, as its parties name it, signed."""
    following = found[-1].number if len(found) == limit else None
    lines = [each.line for each in found]
    signature = sign_audit(analyst, session, lines) if lines else ""
    return AuditPage(lines=lines, next=following, signature=signature)


def _run_of(session: Session, terms: Terms) -> Mapping[str, int]:
    several = terms.evaluation
    return run_progress(session.stage, len(several.n_clusters) if several else 1)


def _runs(session: Session, terms: Terms) -> list[RunLine]:
    if not session.figures:
        return []
    several = terms.evaluation
    asked = several.n_clusters if several else [session.figures[0]["n_clusters"]]
    return [
        RunLine(
            n_clusters=k,
            figures={name: each for name, each in figures.items() if name != "sizes"},
            sizes=figures.get("sizes", ()),
            chosen=number == session.chosen,
        )
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
        stopped=None if member.stopped is None else StopReason(member.stopped),
    )

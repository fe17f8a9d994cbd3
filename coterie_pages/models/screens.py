"""Pages that are served: each model names the template that shows it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from coterie_pages.models.reports import SessionReport


class Screen(Value):
    """A served page; ``template`` is its name under ``templates``."""

    template: ClassVar[str]


class Refusal(Screen):
    """That something is not, or may not be, and what to do.

    request: by which number an administrator finds it in the log.
    """

    template = "refusal.html.j2"
    title: str
    detail: str
    remedy: str = ""
    request: str = ""


class SignIn(Screen):
    """The form that takes a key."""

    template = "analyst/sign-in.html.j2"


class SessionRow(Value):
    """A session in a list.

    owner: the label of its owner's key.
    awaited: the names of the slots for which it waits, the first few.
    n_awaited: how many there are.
    since: since when it has been where it is.
    """

    id: str
    title: str
    owner: str
    protocol: str
    state: str
    reason: str = ""
    round: int = Field(ge=0)
    awaited: tuple[str, ...] = ()
    n_awaited: int = Field(default=0, ge=0)
    since: AwareDatetime
    deadline: AwareDatetime
    created_at: AwareDatetime
    over: bool


class SessionFilter(Value):
    """Which sessions a list shows, as the form said it; empty fields limit nothing.

    older, since: times of the last change, as :mod:`coterie_pages.times` reads them.
    """

    state: str = ""
    owner: str = ""
    awaited: str = ""
    since: str = ""
    older: str = ""

    @property
    def is_set(self) -> bool:
        """Return whether it limits anything."""
        return any(self.model_dump().values())


class Sessions(Screen):
    """The sessions that a key may see, those that moved on last first.

    now: when the page was made, from which ages count.
    states: what may stand in the filter's state.
    by_owner: whether the sessions may be of several owners.
    first, following: queries of the first page and of the next one; empty where the
        page is the first, or the last.
    """

    template = "analyst/sessions.html.j2"
    rows: tuple[SessionRow, ...]
    states: tuple[str, ...]
    filter: SessionFilter = SessionFilter()
    by_owner: bool = False
    first: str = ""
    following: str = ""
    now: AwareDatetime


class Work(Value):
    """A stretch of time in which rounds continued, or somebody was awaited.

    rounds: how many rounds it holds; 0 while parties join.
    """

    begin: AwareDatetime
    end: AwareDatetime
    first_round: int = Field(ge=0)
    rounds: int = Field(default=0, ge=0)


class StageSpan(Value):
    """A stretch of time in which the rounds of one stage continued."""

    name: str
    begin: AwareDatetime
    end: AwareDatetime


class SlotAnswer(Value):
    """An answer of a slot: when it came, and to which round."""

    slot: str
    at: AwareDatetime
    round: int = Field(ge=0)


class Timeline(Value):
    """When stages and rounds were open, and when each slot answered.

    stages: none where the audit is of a release that did not name them.
    """

    stages: tuple[StageSpan, ...] = ()
    work: tuple[Work, ...] = ()
    answers: tuple[SlotAnswer, ...] = ()
    slots: tuple[str, ...] = ()
    joined: tuple[SlotAnswer, ...] = ()


class Progress(Value):
    """How far a protocol of many rounds has come.

    changes: by how much each update moved the result.
    """

    done: int = Field(ge=0)
    most: int = Field(ge=0)
    changes: tuple[float, ...] = ()


class Chain(Value):
    """Whether the audit hangs together.

    lines: how many there are.
    broken: what was found where it does not; empty where it does.
    """

    lines: int = Field(ge=0)
    broken: str = ""


class SessionStatusView(Value):
    """Where a session stands, and what may be done with it.

    stage, stage_index, n_stages, round, attempt: where it is; the index counts from 0.
    awaited: slots for which it waits.
    now: when the page was made, from which ages count.
    pace: which of several runs continues, and the time left, in words.
    may: what may be done with it now: ``cancel``, ``extend``, ``choose``.
    """

    stage: str = ""
    stage_index: int = Field(ge=0)
    n_stages: int = Field(ge=0)
    round: int = Field(ge=0)
    attempt: int = Field(ge=0)
    awaited: tuple[str, ...] = ()
    since: AwareDatetime
    deadline: AwareDatetime
    now: AwareDatetime
    over: bool
    progress: Progress | None = None
    pace: str = ""
    may: tuple[Literal["cancel", "extend", "choose"], ...] = ()


class OneSession(Screen):
    """A session, as its coordinator sees it at the analyst.

    report: what its report says; without a sheet where terms are of another release.
    n_clusters: of the runs, where one may be chosen.
    """

    template = "analyst/session.html.j2"
    report: SessionReport
    standing: SessionStatusView
    timeline: Timeline = Timeline()
    chain: Chain
    n_clusters: tuple[int, ...] = ()


class KeyRow(Value):
    """A key; never its secret."""

    id: str
    role: str
    label: str
    created_at: AwareDatetime
    last_used_at: AwareDatetime | None
    expires_at: AwareDatetime
    state: Literal["valid", "ended", "revoked"]
    own: bool = False


class Keys(Screen):
    """The keys of a service, for its administrator.

    made: a secret that is shown this once.
    """

    template = "analyst/keys.html.j2"
    rows: tuple[KeyRow, ...]
    made: str = Field(default="", repr=False)
    made_for: str = ""


class VisitRow(Value):
    """A browser that is signed in.

    ends: when it does, where nobody uses it.
    """

    id: str
    key: str
    began: AwareDatetime
    ends: AwareDatetime
    own: bool = False


class Visits(Screen):
    """The browsers that are signed in with somebody's keys."""

    template = "analyst/visits.html.j2"
    rows: tuple[VisitRow, ...]

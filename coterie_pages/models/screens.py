"""Pages that are served: each model names the template that shows it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value


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

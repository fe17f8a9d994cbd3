"""The analyst's answers as JSON models. Fields that a newer analyst adds are ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, Field

from clustering_protocols.wire.states import OVER, SessionState, SlotState, StopReason


class SlotStatus(BaseModel):
    """One slot: its party, and whether the session is waiting for it."""

    name: str
    row: int
    column: int
    state: SlotState
    reason: str | None = Field(
        description="Why a party does not join: the check that refused, or its operator's words."
    )
    read_at: AwareDatetime | None = Field(
        default=None, description="When its invitation was first read."
    )
    joined_at: AwareDatetime | None
    n_rows: int | None
    awaited: bool
    stopped: StopReason | None = Field(
        default=None, description="Why its party stopped, if it did."
    )


class RunLine(BaseModel):
    """One of a session's runs: number of clusters, quality figures and cluster sizes."""

    n_clusters: int
    figures: dict[str, float | int | bool | None]
    chosen: bool = Field(description="Whether parties get the labels of this run.")
    sizes: tuple[int, ...] = Field(
        default=(),
        description="In a session with several runs, the number of rows of each cluster "
        "that is large enough, rounded to the nearest five; the largest comes first.",
    )


class SessionStatus(BaseModel):
    """The status of a session."""

    id: str
    title: str
    protocol: str
    state: SessionState
    reason: str | None = Field(description="The problem that ended the session early.")
    detail: str | None
    round: int = Field(description="Number across stages; 0 while recruiting.")
    attempt: int
    stage: str | None
    stage_index: int = Field(description="From 0.")
    n_stages: int
    progress: dict[str, Any] = Field(
        description="Progress of a protocol with many rounds: the updates done, their "
        "maximum number, and how far each moved the result. A session with several runs "
        "also states the current run's number."
    )
    slots: list[SlotStatus]
    waiting_since: AwareDatetime
    deadline: AwareDatetime
    created_at: AwareDatetime
    risks: list[str]
    terms_digest: str = Field(description="SHA-256 of the exact text of the terms.")
    runs: list[RunLine] = Field(
        default=[],
        description="Figures, once all runs are done; empty if there are none.",
    )
    profiles: bool = Field(
        default=False,
        description="Whether everybody may read profiles of the clusters at the end.",
    )

    short_of_room: bool = Field(
        default=False,
        description="Whether the analyst's storage is nearly full: it accepts no upload, and "
        "a step may wait until its administrator frees space.",
    )

    @property
    def awaited_slots(self) -> list[str]:
        """Return the names of the slots that the session is waiting for."""
        return [slot.name for slot in self.slots if slot.awaited]

    @property
    def all_joined(self) -> bool:
        """Return whether every slot is taken, so that an agreement exists."""
        return all(slot.joined_at for slot in self.slots)

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended, with or without a result."""
        return self.state in OVER


class SessionLine(BaseModel):
    """One session in a list of sessions."""

    id: str
    title: str
    state: SessionState
    round: int
    created_at: AwareDatetime
    protocol: str = ""
    owner: str = Field(
        default="",
        description="Label of the owner's key, or its id if it has no label.",
    )
    reason: str | None = Field(
        default=None, description="The problem that ended the session early."
    )
    awaited: list[str] = Field(
        default=[], description="Names of the slots that it waits for."
    )
    waiting_since: AwareDatetime | None = Field(
        default=None, description="Time of its last change: lists are in this order."
    )
    deadline: AwareDatetime | None = None


class SessionPage(BaseModel):
    """One page of a list of sessions."""

    sessions: list[SessionLine]
    next: str | None = Field(description="Pass as ?after= for the next page.")


class AuditPage(BaseModel):
    """One page of a session's audit."""

    lines: list[str] = Field(
        description="JSON texts. Each names the SHA-256 of the exact text before it as "
        "`previous`; the first names 64 zeros."
    )
    next: int | None = Field(description="Pass as ?after= for the next page.")
    signature: str = Field(
        description="The analyst's signature of the last of these lines (Ed25519, hex); "
        "empty if there is none."
    )


class AnalystIdentity(BaseModel):
    """The identity of the analyst."""

    key: str = Field(
        pattern=r"^[0-9a-f]{64}$",
        description="The Ed25519 key (hex) with which it signs receipts and audits.",
    )


class Codes(BaseModel):
    """One-time codes, which the analyst shows only in this answer."""

    codes: dict[str, str]


class Preview(BaseModel):
    """The session and slot of an invitation; a preview does not use up the invitation."""

    session: str
    slot: str
    state: SessionState
    terms: str = Field(description="Exact text: hash these bytes, never a copy.")
    risks: dict[str, str] = Field(description="Code and sentence of each risk.")
    joins: int = Field(
        ge=0,
        lt=2**31,
        description="How often the slot was joined so far: the proof of a join covers it.",
    )


class Joined(BaseModel):
    """The credentials of a party that has just joined."""

    session: str
    slot: str
    token: str = Field(description="Bearer token; shown only here.", repr=False)


class Receipt(BaseModel):
    """The analyst's receipt for a stored upload; repeated uploads get the same receipt."""

    session: str
    slot: str
    round: int
    attempt: int
    digest: str
    size: int
    received_at: AwareDatetime
    sequence: int = Field(description="The number of its line in the session's audit.")
    entry: str = Field(description="The SHA-256 of that line.")
    signature: str = Field(
        default="",
        description="Ed25519 (hex), by the key that the terms name, over "
        "length_prefixed('coterie/receipt/1', session, slot, round, attempt, digest, "
        "size, sequence, entry), all as texts.",
    )


MAX_ADDRESS: Final = 320  # characters


class Failure(StrEnum):
    """Why a notice could not be delivered."""

    NOT_TAKEN = "not-taken"
    MAIL_SERVER = "mail-server"
    INTERNAL = "internal"


SENTENCES: Final[Mapping[str, str]] = {
    Failure.NOT_TAKEN: "The mail server does not accept mail for this address.",
    Failure.MAIL_SERVER: "The analyst's mail server did not accept the mail: ask its "
    "administrator.",
    Failure.INTERNAL: "The analyst failed: ask its administrator.",
}


class ReceiverAdded(BaseModel):
    """A new receiver of notices."""

    id: str


class ReceiverLine(BaseModel):
    """One of the caller's receivers, and whether its notices were delivered."""

    id: str
    address: str
    created_at: AwareDatetime
    sent: int = Field(description="Notifications that were sent.")
    given_up: int = Field(description="Notifications that failed for good.")
    retrying: int = Field(description="Notifications that will be retried.")
    failure: str | None = Field(description="Error of the last failed notification.")


class Receivers(BaseModel):
    """The caller's receivers of notices about a session.

    offered: whether the analyst sends mail at all.
    """

    offered: bool
    receivers: list[ReceiverLine]


_RUN: Final = re.compile(r".+-([1-9]\d{0,8})")
_UNITS: Final = (("hour", 3600.0), ("minute", 60.0))
_LEAST_SECONDS: Final = 10
_COUNT_LIMIT: Final = 2**31


def name_run_stage(stage: str, run: int) -> str:
    """Return the name of a stage in one of several runs; runs are counted from 0."""
    return f"{stage}-{run + 1}"


def run_progress(stage: str | None, n_runs: int) -> Mapping[str, int]:
    """Return the current run's number and the number of runs, for a session's progress.

    stage: the name of the current stage; if it belongs to no run, the mapping is empty.
    """
    match = _RUN.fullmatch(stage or "")
    if n_runs < 2 or match is None or int(match[1]) > n_runs:
        return {}
    return {"run": int(match[1]), "of_runs": n_runs}


def updates_done(status: SessionStatus) -> tuple[int, int]:
    """Return how many updates of the stage are finished, and how many there can be.

    Both numbers are 0 if the progress has no updates or belongs to an earlier stage.
    """
    if status.progress.get("stage", status.stage) != status.stage:
        return 0, 0
    n_updates = _read_count(status, "updates")
    return n_updates, max(n_updates, _read_count(status, "of_at_most"))


def describe_pace(status: SessionStatus) -> str:
    """Return the run and the time left, e.g. ``run 2 of 6, about 3 minutes left``.

    Returns "" if neither is known.
    """
    if status.is_over or status.state is SessionState.CHOOSING:
        return ""
    run, n_runs = _read_count(status, "run"), _read_count(status, "of_runs")
    position = f"run {run} of {n_runs}" if run and n_runs else ""
    return ", ".join(filter(None, [position, _describe_time_left(status)]))


def _describe_time_left(status: SessionStatus) -> str:
    """Return the time left in words, or "" if it cannot be estimated.

    The mean time of a run is the time since all parties joined, divided by the number
    of finished runs plus half of the current one. In the first run, each update that
    the terms still allow is assumed to take the mean time of the previous ones.
    """
    join_times = [slot.joined_at for slot in status.slots if slot.joined_at]
    if not join_times or len(join_times) < len(status.slots):
        return ""
    elapsed = (status.waiting_since - max(join_times)).total_seconds()
    run, n_runs = (
        max(1, _read_count(status, "run")),
        max(1, _read_count(status, "of_runs")),
    )
    if elapsed < _LEAST_SECONDS or run > n_runs:
        return ""
    if run > 1:
        seconds = elapsed / (run - 0.5) * (n_runs - run + 0.5)
        return f"about {_format_duration(seconds)} left"
    n_updates, limit = updates_done(status)
    if not n_updates:
        return ""
    seconds = elapsed / n_updates * (limit * n_runs - n_updates)
    return f"at most {_format_duration(seconds)} left"


def _read_count(status: SessionStatus, name: str) -> int:
    """Return a count in the progress, or 0 if the analyst sent anything but a count."""
    value = status.progress.get(name)
    return value if type(value) is int and 0 < value < _COUNT_LIMIT else 0


def _format_duration(seconds: float) -> str:
    for unit, length in _UNITS:
        if seconds >= 1.5 * length:
            return f"{round(seconds / length):,} {unit}s"
    return f"{max(10, round(seconds / 10) * 10)} seconds"

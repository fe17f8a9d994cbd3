"""How far a session has come, in words: its run, and the time that is left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from clustering_protocols.wire.states import SessionState

if TYPE_CHECKING:
    from clustering_protocols.wire.answers import SessionStatus

_RUN: Final = re.compile(r".+-([1-9]\d{0,8})")
_UNITS: Final = (("hour", 3600.0), ("minute", 60.0))
_LEAST_SECONDS: Final = 10
_MOST: Final = 2**31


def name_run_stage(stage: str, run: int) -> str:
    """Return the name of a stage in one of several runs; runs count from 0."""
    return f"{stage}-{run + 1}"


def run_progress(stage: str | None, n_runs: int) -> Mapping[str, int]:
    """Return which of several runs continues, as a session's progress tells it.

    stage: the name of the stage; the mapping is empty where it belongs to no run.
    """
    found = _RUN.fullmatch(stage or "")
    if n_runs < 2 or found is None or int(found[1]) > n_runs:
        return {}
    return {"run": int(found[1]), "of_runs": n_runs}


def updates_done(status: SessionStatus) -> tuple[int, int]:
    """Return how many updates of the stage are done, of at most how many.

    Zeros where the protocol tells none, or told them of an earlier stage.
    """
    told = status.progress
    if told.get("stage", status.stage) != status.stage:
        return 0, 0
    done = _count(status, "updates")
    return done, max(done, _count(status, "of_at_most"))


def describe_pace(status: SessionStatus) -> str:
    """Return the run and the time left, e.g. ``run 2 of 6, about 3 minutes left``.

    Empty where neither is known.
    """
    if status.is_over or status.state is SessionState.CHOOSING:
        return ""
    run, n_runs = _count(status, "run"), _count(status, "of_runs")
    said = [f"run {run} of {n_runs}"] if run and n_runs else []
    return ", ".join(filter(None, [*said, _describe_left(status)]))


def _describe_left(status: SessionStatus) -> str:
    """Return the time left in words; empty where it cannot be told.

    The time since all joined is shared by the runs that are done, half of the one that
    continues among them. In the first run each update takes as long as those before it,
    and as many as the terms allow may follow.
    """
    if not status.all_joined:
        return ""
    begun = max(
        (slot.joined_at for slot in status.slots if slot.joined_at), default=None
    )
    if begun is None:
        return ""
    elapsed = (status.waiting_since - begun).total_seconds()
    run, n_runs = max(1, _count(status, "run")), max(1, _count(status, "of_runs"))
    if elapsed < _LEAST_SECONDS or run > n_runs:
        return ""
    if run > 1:
        return f"about {_name_span(elapsed / (run - 0.5) * (n_runs - run + 0.5))} left"
    done, most = updates_done(status)
    if not done:
        return ""
    return f"at most {_name_span(elapsed / done * (most * n_runs - done))} left"


def _count(status: SessionStatus, name: str) -> int:
    """Return a count of the progress; 0 for what is none: the analyst writes it."""
    found = status.progress.get(name)
    return found if type(found) is int and 0 < found < _MOST else 0


def _name_span(seconds: float) -> str:
    """Return a length of time in whole hours or minutes, or in tens of seconds."""
    for unit, length in _UNITS:
        if seconds >= 1.5 * length:
            return f"{round(seconds / length):,} {unit}s"
    return f"{max(10, round(seconds / 10) * 10)} seconds"

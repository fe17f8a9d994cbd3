"""Which run continues and how long it takes, told from a session's progress alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.progress import describe_pace, run_progress, updates_done

BEGUN = datetime(2030, 1, 1, tzinfo=UTC)


def status(seconds: float, progress: dict[str, Any], **said: Any) -> SessionStatus:
    slot = {"row": 0, "column": 0, "state": "joined", "reason": None, "awaited": True}
    fields: dict[str, Any] = {
        "id": "s",
        "title": "",
        "protocol": "llf",
        "state": "collecting",
        "reason": None,
        "detail": None,
        "round": 9,
        "attempt": 1,
        "stage": "update-2",
        "stage_index": 4,
        "n_stages": 9,
        "progress": progress,
        "slots": [
            {**slot, "name": name, "n_rows": 9, "joined_at": BEGUN - ago}
            for name, ago in (("a", timedelta(hours=3)), ("b", timedelta()))
        ],
        "waiting_since": BEGUN + timedelta(seconds=seconds),
        "deadline": BEGUN + timedelta(days=1),
        "created_at": BEGUN - timedelta(days=1),
        "risks": [],
        "terms_digest": "",
    }
    return SessionStatus.model_validate({**fields, **said})


@pytest.mark.parametrize(
    ("seconds", "progress", "said"),
    [
        (60, {"run": 2, "of_runs": 6}, "run 2 of 6, about 3 minutes left"),
        (1100, {"run": 6, "of_runs": 6}, "run 6 of 6, about 2 minutes left"),
        (5, {"run": 2, "of_runs": 6}, "run 2 of 6"),
        (60, {"updates": 10, "of_at_most": 20}, "at most 60 seconds left"),
        (
            60,
            {"updates": 10, "of_at_most": 20, "run": 1, "of_runs": 2},
            "run 1 of 2, at most 3 minutes left",
        ),
        (60, {"updates": 10, "of_at_most": 20, "stage": "start"}, ""),
        (7200, {"run": 2, "of_runs": 3}, "run 2 of 3, about 2 hours left"),
        (60, {}, ""),
    ],
)
def test_run_and_time_left_follow_from_the_time_since_all_joined(
    seconds: float, progress: dict[str, Any], said: str
) -> None:
    assert describe_pace(status(seconds, progress)) == said


def test_nothing_is_left_of_a_session_that_is_over() -> None:
    told = {"run": 2, "of_runs": 6}
    assert describe_pace(status(60, told, state="completed")) == ""
    assert describe_pace(status(60, told, state="choosing")) == ""


@pytest.mark.parametrize("lie", ["2", -1, 0, 1.5, True, None, 2**70, [3], {}])
def test_progress_of_a_lying_analyst_breaks_no_line(lie: Any) -> None:
    told = dict.fromkeys(("run", "of_runs", "updates", "of_at_most"), lie)
    assert describe_pace(status(60, told)) == ""
    assert updates_done(status(60, told)) == (0, 0)


def test_a_stage_of_several_runs_names_its_run() -> None:
    assert run_progress("update-3", 5) == {"run": 3, "of_runs": 5}
    assert run_progress("update-6", 5) == {}
    assert run_progress("update-1", 1) == {}
    assert run_progress("profiles", 5) == {}
    assert run_progress(None, 5) == {}

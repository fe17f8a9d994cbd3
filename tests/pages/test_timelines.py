"""When stages and rounds were open, from the lines of an audit to a picture."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coterie_pages import svg
from coterie_pages.views.session_progress import timeline_of

BEGIN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
STAGES = ("opening", "rounds", "rounds", "closing")


def entries(*stages: str | None) -> list[dict[str, Any]]:
    """A round of a minute for each stage; the last one is open still."""
    found: list[dict[str, Any]] = []
    for number, stage in enumerate(stages):
        at = BEGIN + timedelta(minutes=number)
        said = {"round": number + 1, "at": at.isoformat()}
        if number:
            found.append(said | {"event": "round-complete"})
        told = {} if stage is None else {"stage": stage}
        found.append(said | told | {"event": "round-opened"})
    return found


def test_consecutive_rounds_of_a_stage_form_one_span() -> None:
    now = BEGIN + timedelta(minutes=10)
    told = timeline_of(entries(*STAGES), ["north"], now)
    minutes = [
        (
            each.name,
            (each.begin - BEGIN).seconds // 60,
            (each.end - BEGIN).seconds // 60,
        )
        for each in told.stages
    ]
    assert minutes == [("opening", 0, 1), ("rounds", 1, 3), ("closing", 3, 10)]
    assert [work.rounds for work in told.work] == [1, 1, 1, 1]
    drawn = svg.timeline("t", "When", told)
    assert all(f"<title>{name}</title>" in drawn for name in set(STAGES))
    assert ">rounds</text>" in drawn
    assert ">stages</text>" in drawn


def test_an_audit_that_names_no_stages_is_drawn_without_them() -> None:
    told = timeline_of(entries(None, None), ["north"], BEGIN + timedelta(minutes=2))
    assert told.stages == ()
    assert len(told.work) == 2
    assert "stages" not in svg.timeline("t", "When", told)
